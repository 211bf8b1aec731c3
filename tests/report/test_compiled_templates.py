"""Compiled templates in the cache: the same page from them, without them, from damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jinja2 import Environment

from grader.report import html, page
from grader.toolchain.native import CACHE_VARIABLE
from tests.support.results import make_result


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """A page by an environment of its own, with a cache that is empty at first."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(page, "_environment", page._environment.__wrapped__)
    return lambda: html.render(make_result(), {})


def test_a_template_is_compiled_once(
    rendered: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rendered()
    files = list((tmp_path / "templates").rglob("*.cache"))
    assert files and all(file.stat().st_mode & 0o022 == 0 for file in files)

    with monkeypatch.context() as patched:
        patched.delattr(Environment, "compile")
        assert rendered() == first
    for number, file in enumerate(files):
        file.write_bytes(b"no bytecode" if number % 2 else file.read_bytes()[:60])
    assert rendered() == first


def test_what_others_could_have_written_is_not_run(
    rendered: Callable[[], str], tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    assert "sgemm" in rendered()
    assert not (tmp_path / "templates").exists()


def test_a_page_needs_no_place_for_them(rendered: Callable[[], str], tmp_path: Path) -> None:
    (tmp_path / "templates").write_text("in the way")
    assert "sgemm" in rendered()
