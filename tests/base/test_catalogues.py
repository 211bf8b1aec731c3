"""Every text has its translation, and the translation keeps what is filled in."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Message as Entry

from grader.base.language import FOLDER, language
from grader.explain.advice import advice_title
from tests.support.catalogues import catalogues, extracted, oddities, read, updated
from tests.support.places import ROOT

_PLACE = re.compile(r"\{[a-z_][a-z0-9_]*(?::[^{}]*)?\}|%\([a-z_0-9]+\)[a-z]")
_MAKERS = ("phrase", "counted")


def entries(path: Path) -> Iterator[Entry]:
    return (entry for entry in read(path) if entry.id)


def texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple | list) else (str(value),)


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_a_catalogue_holds_the_texts_of_today(path: Path) -> None:
    """``python -m tests.language`` makes it so."""
    assert path.read_text(encoding="utf-8") == updated(path)
    assert not read(path).obsolete


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_what_is_filled_in_is_the_same(path: Path) -> None:
    """All of it; the count may be missing where English leaves it out in one of its forms."""
    for entry in entries(path):
        allowed = {place for text in texts(entry.id) for place in _PLACE.findall(text)}
        needed = set.intersection(*({*_PLACE.findall(text)} for text in texts(entry.id)))
        for string in texts(entry.string):
            assert string, f"no translation of {entry.id!r}"
            places = set(_PLACE.findall(string))
            assert needed <= places <= allowed, entry.id
        assert not entry.fuzzy


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_a_plural_has_all_its_forms(path: Path) -> None:
    forms = read(path).num_plurals
    for entry in entries(path):
        assert isinstance(entry.id, tuple) == isinstance(entry.string, tuple)
        assert not isinstance(entry.string, tuple) or len(entry.string) == forms, entry.id


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.stem)
def test_every_idea_of_the_advice_has_a_title(path: Path) -> None:
    rules = (ROOT / "grader" / "explain" / "advice").glob("*.py")
    text = "".join(each.read_text() for each in rules)
    ideas = set(
        re.findall(r'advice\(\w+, "(\w+)"|idea ?= ?"(\w+)"(?: if .* else f?"(\w+)")?', text)
    )
    for idea in filter(None, itertools.chain.from_iterable(ideas)):
        assert (title := advice_title(idea)).text != "{words}", idea
        assert language(path.stem)(title) != str(title)


def test_chinese_has_its_own_spaces_and_punctuation() -> None:
    strings = [text for entry in entries(FOLDER / "zh_CN.po") for text in texts(entry.string)]
    assert [odd for text in strings for odd in oddities(text)] == []


def test_babel_finds_every_text() -> None:
    """They are literals; a text that is put together at run time would have no translation."""
    known = {text for entry in extracted() if entry.id for text in texts(entry.id)}
    for path in (*(ROOT / "grader").rglob("*.py"), *(ROOT / "ptxsim" / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            count = {"phrase": 1, "counted": 2}.get(node.func.id, 0)
            for text in node.args[:count]:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                assert isinstance(text, ast.Constant) and text.value in known, where
