"""What must not be in a text that is Chinese."""

from __future__ import annotations

import re

# Three English words in a row are a sentence that nobody translated.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){2}\b[a-z]{2,}\b")
_COMMAND = re.compile(r"\bgrade [a-z]+ \S+")
_SIGN = re.compile(r"[\u4e00-\u9fff]")


def assert_chinese(said: str) -> None:
    assert _SIGN.search(said), said
    assert not (found := _ENGLISH.search(_COMMAND.sub("", said))), found
