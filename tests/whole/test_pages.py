"""Every kind of page, in every language, on every screen: by axe-core and by eye of the browser."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.ladder import ladder_render
from grader.ladder.document import shipped_ladders
from grader.language import ENGLISH, Language, known_languages, language
from grader.model import Verdict
from grader.report import html
from tests.support.browser import Browser
from tests.support.page_checks import BROKEN_LINES, PHONE, assert_readable, fonts
from tests.support.pages import LINES, RUNGS, SOURCE, gpu_result, sample_ladder, standing_at
from tests.support.places import ROOT
from tests.support.results import RACE, RIGHT, WRONG, make_result

WRONG_RESULT = make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(RACE,), lines=LINES)
STYLE = (ROOT / "grader" / "report" / "templates" / "style.css").read_text()
FONTS = re.findall(r'"([^"]+)"', STYLE[STYLE.index("--chinese:") : STYLE.index("--chinese-mono:")])
CHINESE_SIGN = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


def measured(language: Language) -> str:
    result = gpu_result(lines=LINES, standing=standing_at(0.86))
    return html.render(result, {"sgemm.cu": SOURCE}, language)


def wrong(language: Language) -> str:
    return html.render(WRONG_RESULT, {"sgemm.cu": SOURCE}, language)


def ladder(language: Language) -> str:
    return ladder_render.html(shipped_ladders()[0], language)


def simulated_ladder(language: Language) -> str:
    return ladder_render.html(sample_ladder(RUNGS, None), language)


PAGES: dict[str, Callable[[Language], str]] = {
    "measured": measured,
    "wrong": wrong,
    "ladder": ladder,
    "simulated ladder": simulated_ladder,
}


@pytest.mark.slow
@pytest.mark.parametrize("code", known_languages())
@pytest.mark.parametrize("kind", PAGES)
def test_every_page_in_every_language(
    kind: str, code: str, browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[kind](language(code)), encoding="utf-8")
    assert_readable(browser, file, thorough=True)


def test_a_page_in_chinese(browser: Browser, tmp_path: Path) -> None:
    """In a font of the style sheet's list, in lines that break as Chinese does."""
    file = tmp_path / "page.html"
    file.write_text(wrong(language("zh_CN")), encoding="utf-8")
    assert_readable(browser, file)
    assert browser.evaluate("document.documentElement.lang") == "zh-CN"
    for selector in ("h2", ".keys", "th.num"):
        words = browser.evaluate(f"document.querySelector({selector!r}).textContent")
        signs = len(CHINESE_SIGN.findall(words))
        drawn = fonts(browser, selector)
        if not any(name in FONTS for name in drawn):
            assert "CI" not in os.environ, "no Chinese font: apt-get install fonts-wqy-microhei"
            pytest.skip("no Chinese font is installed")
        assert sum(count for name, count in drawn.items() if name in FONTS) >= signs > 0, words


def test_lines_break_as_chinese_does(browser: Browser, tmp_path: Path) -> None:
    """The check of page_checks sees a line that begins with a full stop."""
    file = tmp_path / "page.html"
    head = '<!doctype html><html lang="zh-CN"><meta charset="utf-8"><title>x</title>'
    narrow = f"{head}<p style='width: 64px; font-size: 16px;%s'>线程束分。线程束分。</p>"
    for style, broken in (("line-break: anywhere", True), ("line-break: strict", False)):
        file.write_text(narrow % style, encoding="utf-8")
        browser.open(file, width=PHONE)
        assert bool(browser.evaluate(BROKEN_LINES)) == broken


def test_a_page_in_english_holds_no_chinese() -> None:
    assert not CHINESE_SIGN.search(re.sub(r"<style>.*?</style>", "", wrong(ENGLISH), flags=re.S))
