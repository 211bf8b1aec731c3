"""What must not be in a text that is Chinese."""

from __future__ import annotations

import re

# Three English words in a row are a sentence that nobody translated.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){2}\b[a-z]{2,}\b")
_SIGN = re.compile(r"[\u4e00-\u9fff]")
# A space between two signs (columns have two between them), ASCII punctuation beside one.
_H = r"[\u3001-\u303f\u4e00-\u9fff\uff01-\uff65]"
_ODD = re.compile(rf"{_H} (?={_H})|{_H}[,;!?(]|[,;!?]{_H}|[^(]\){_SIGN.pattern}")


def assert_chinese(said: str) -> None:
    assert _SIGN.search(said), said
    for pattern in (_ENGLISH, _ODD):
        assert not (found := pattern.search(said)), repr(
            said[max(0, found.start() - 30) : found.end() + 30]
        )
