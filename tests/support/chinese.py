"""What must not be in a text that is Chinese."""

from __future__ import annotations

import re

# Three English words in a row are a sentence that nobody translated.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){2}\b[a-z]{2,}\b")
_COMMAND = re.compile(r"\bgrade [a-z]+ \S+")
_SIGN = re.compile(r"[\u4e00-\u9fff]")
# A space between two signs (columns have two between them), ASCII punctuation beside one.
_H = r"[\u3001-\u303f\u4e00-\u9fff\uff01-\uff65]"
_ODD = re.compile(rf"{_H} (?={_H})|{_H}[,;!?(]|[,;!?]{_H}|[^(]\){_SIGN.pattern}")


def assert_chinese(said: str) -> None:
    assert _SIGN.search(said), said
    assert not (found := _ENGLISH.search(_COMMAND.sub("", said))), found
    assert oddities(said) == []


def oddities(said: str) -> list[str]:
    """Places whose spaces or punctuation are not Chinese."""
    return [said[max(0, odd.start() - 30) : odd.end() + 30] for odd in _ODD.finditer(said)]
