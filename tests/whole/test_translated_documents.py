"""Students' documents in Chinese say what the English ones do: parts, code, links and figures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.places import ROOT

CHINESE = ".zh.md"
ENGLISH = (
    ROOT / "docs" / "student.md",
    ROOT / "docs" / "glossary.md",
    *sorted((ROOT / "starter").glob("README.md")),
    *sorted((ROOT / "starters").glob("*/README.md")),
)
CODE = re.compile(r"```.*?```", re.DOTALL)
# Four English words in a row are a sentence that nobody translated.
SENTENCE = re.compile(r"(?:\b[a-z]{2,}\b[ ,.;]+){3}\b[a-z]{2,}\b")


def prose(text: str) -> str:
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", " ", CODE.sub("", text))


def shape(text: str) -> list[str]:
    """What a document is made of, in order: headings, tables with their columns, items, code."""
    parts = []
    for line in CODE.sub(lambda found: f"\n{found[0]!r}\n", text).splitlines():
        if mark := re.match(r"#+ |- |!\[", line):
            parts.append(mark[0])
        elif line.startswith("|"):
            parts.append(f"row of {line.count('|')}")
        elif line.startswith("'```"):
            parts.append(line)
    return parts


def words_of_code(text: str) -> Counter[str]:
    return Counter(re.findall(r"`([^`\n]+)`", CODE.sub("", text)))


def links(text: str) -> Counter[str]:
    """Where links lead; to a translation or its picture is to the original."""
    return Counter(target.replace(".zh.", ".") for target in re.findall(r"\]\(([^)]+)\)", text))


def figures(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d[\d.]*\d", re.sub(r"(?<=\d) (?=\d)", "", prose(text))))


@pytest.mark.parametrize("english", ENGLISH, ids=lambda path: str(path.relative_to(ROOT)))
def test_both_say_the_same(english: Path) -> None:
    first = english.read_text(encoding="utf-8")
    second = english.with_suffix(CHINESE).read_text(encoding="utf-8")
    assert shape(first) == shape(second)
    assert words_of_code(first) == words_of_code(second)
    assert links(first) == links(second)
    assert figures(first) == figures(second)
    assert SENTENCE.findall(prose(second)) == []


@pytest.mark.parametrize("english", ENGLISH, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(english: Path) -> None:
    for document in (english, english.with_suffix(CHINESE)):
        for target in links(document.read_text(encoding="utf-8")):
            file = target.partition("#")[0]
            assert "://" in target or (document.parent / file).exists(), (document.name, target)
