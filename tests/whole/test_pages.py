"""Every kind of page, in every language, on every screen: by axe-core and by eye of the browser."""

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path

import msgspec
import pytest

from grader.base.language import ENGLISH, Language, known_languages, language
from grader.base.records import Verdict
from grader.course import board_rendering as board_render
from grader.course import term
from grader.course.leaderboard import make_boards
from grader.course.roster import Person
from grader.course.rubric import Marks, RubricGrade, student_page
from grader.judge import scoring
from grader.labs.course_rules import Late, Rubric, RubricQuestion, TimeRules, Weights
from grader.labs.lab import Case, Term, TermLab, find_lab, load_lab
from grader.model.records import BankMap
from grader.report import charts, html
from grader.results import store
from grader.results.entries import read_entries
from grader.study import history_render, ladder_render, sweep_render
from grader.study.sweep import Estimate, Point
from grader.study.versions import MainKernel
from ptxsim.findings import SENTENCES
from ptxsim.plan import Size
from ptxsim.text import NOTHING, counted, phrase, verbatim
from tests.support.boards import climbing, keep
from tests.support.browser import A4, PHONE, Browser, assert_readable, fonts, sheets
from tests.support.catalogues import oddities
from tests.support.explained import explained
from tests.support.pages import (
    H200,
    LINES,
    RUNGS,
    SOURCE,
    gpu_result,
    sample_ladder,
    standing_at,
    timed,
)
from tests.support.places import ALICE, ROOT
from tests.support.product import GEMM, shipped_ladder
from tests.support.results import RACE, RIGHT, WRONG, make_result

BARRIER = msgspec.structs.replace(
    RACE,
    message=phrase(SENTENCES["RACE"]["in shared memory"]).given(
        this_thread=phrase("thread {thread}", thread="(7,0,0)"),
        that_thread=phrase("thread {thread}", thread="(31,31,0)"),
        does=phrase("reads"),
        did=phrase("wrote"),
        element="Bs[1023]",
        here=phrase("line {line}", line=4),
        there="a/file/of/a_long_name.cuh:12",
        in_block=phrase("(block {block})", block="(1,0,0)"),
        gap=NOTHING,
    ),
)
WRONG_RESULT = make_result(
    cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(BARRIER, RACE), lines=LINES
)
STYLE = (ROOT / "grader" / "report" / "templates" / "style.css").read_text()
FONTS = re.findall(r'"([^"]+)"', STYLE[STYLE.index("--chinese:") : STYLE.index("--chinese-mono:")])
CHINESE_SIGN = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


def measured(language: Language) -> str:
    result = gpu_result(lines=LINES, standing=standing_at(0.86), explanation=explained(ALICE))
    return html.render(result, {"sgemm.cu": SOURCE}, language)


def wrong(language: Language) -> str:
    return html.render(WRONG_RESULT, {"sgemm.cu": SOURCE}, language)


def ladder(language: Language) -> str:
    return ladder_render.html(shipped_ladder(), language)


def simulated_ladder(language: Language) -> str:
    return ladder_render.html(sample_ladder(RUNGS, None), language)


def curve(language: Language) -> str:
    """With the picture of a course's curve of points."""
    rules = load_lab(find_lab("sgemm-curve")).scoring
    cases = tuple(timed(edge, speed, 50.0) for edge, speed in ((4096, 37.5), (8192, 25.0)))
    asked = [Case(id=case.id, size=Size.of(**case.size)) for case in cases]
    times = {case.id: case.timing for case in cases}
    score = scoring.score(Verdict.AC, asked, times, rules)
    return html.render(gpu_result(cases=cases, score=score), {}, language)


def board(language: Language) -> str:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for number, name in enumerate(("alice", "张伟", "<b>zoë</b>")):
            for attempt in range(3):
                keep(out, name, 50 + 9 * number + attempt, attempt=attempt)
        store.save(out, make_result("bob", cases=(RIGHT, WRONG), verdict=Verdict.WA))
        entries, _ = read_entries(out)
        return board_render.html(make_boards(entries), None, language)


def of_a_term(language: Language) -> str:
    """Of eight labs with long names, one of them still without results."""
    names = [f"week{number}" + "-reduction" * (number % 2) for number in range(1, 9)]
    known = Term(
        labs=tuple(TermLab(lab=name, weight=1.5) for name in names), drop_lowest=2, late_days=5
    )
    rules = TimeRules(due="2026-01-01T12:00:00Z", late=Late(percent=10))
    lab = load_lab(find_lab("sgemm-curve"))
    labs = [msgspec.structs.replace(lab, id=name, time=rules) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(names[:-1]):
            ref = msgspec.structs.replace(make_result().lab, id=name)
            for student in ("alice", "张伟", "<b>zoë</b>")[i % 2 :]:
                keep(Path(folder), student, 50 + 6 * i, attempt=i % 4, lab=ref)
        boards, _, _ = term.term_boards(known, labs, read_entries(Path(folder))[0])
    people = {
        "alice": Person(student="alice", name="Alice Liddell"),
        "dora": Person(student="dora"),
    }
    return term.html(term.add_up(boards, known, people), known, language)


def history(language: Language) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return history_render.html(climbing(Path(folder)), language)


def rubric(language: Language) -> str:
    """Of a group that handed in late: marked, but for one question."""
    questions = tuple(
        RubricQuestion(id=f"q{number}", points=10 * number, text=text)
        for number, text in enumerate(("What limits it, and <why>?", "计算量是多少？"), 1)
    )
    members = Person("team", "Ben, 张伟", None, None, {}, members=("ben", "wei"))
    with tempfile.TemporaryDirectory() as folder:
        keep(Path(folder), "team", 70)
        (board,) = make_boards(read_entries(Path(folder))[0])
    (row,) = (row for row in board.rows if row.kind == "student")
    row = msgspec.structs.replace(
        row, adjusted=63.0, lateness=counted("{count} day late", "{count} days late", 2)
    )
    sheet = Rubric(questions=questions, weights=Weights(measured=60, report=40))
    marks = Marks(
        points={"q1": 7.5}, comments={"q1": "well\nreasoned"}, comment="See <b>me</b> about q2."
    )
    grade = RubricGrade(
        student="team", measured=0.63, report=0.25, total=47.8, missing=NOTHING, marks=marks
    )
    return student_page(row, board, members, sheet, grade, language)


def point(defines: tuple[str, ...], edge: int, speed: float | None) -> Point:
    """speed: None where the variant was dropped."""
    kernel = MainKernel(
        name="sgemm",
        tile="128×64",
        block="256",
        registers=168,
        shared_bytes=33_792,
        spill_bytes=0,
        resident=verbatim("16 (registers)"),
    )
    expected = Estimate(gpu=H200.name, speed=speed or 0.0, most=66.9, resource="shared")
    return Point(
        schema="",
        version=1,
        defines=defines,
        size={"m": edge, "n": edge, "k": edge},
        verdict=Verdict.AC,
        dropped=NOTHING if speed else phrase("not timed"),
        gpu=None,
        kernel=kernel,
        measured=None,
        estimates=(expected,) if speed else (),
    )


def sweep(points: Sequence[Point], language: Language) -> str:
    shown = sweep_render.SweepFacts(
        student="张伟", problem=GEMM.info(), arch="sm_90", card=H200.name
    )
    return sweep_render.html(points, shown, language)


def sizes(language: Language) -> str:
    return sweep([point((), 512 * i, 40 - 30 / i) for i in range(1, 17)], language)


def macros(language: Language) -> str:
    variants = [(f"BM={m}", f"TN={n}") for m in (32, 64, 128, 256) for n in (2, 4, 8)]
    points = [point(each, 8192, 2.5 * i or None) for i, each in enumerate(variants)]
    return sweep(points, language)


PAGES: dict[str, Callable[[Language], str]] = {
    "measured": measured,
    "wrong": wrong,
    "curve": curve,
    "board": board,
    "term": of_a_term,
    "history": history,
    "rubric": rubric,
    "sweep of sizes": sizes,
    "sweep of macros": macros,
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


def test_a_phone_cuts_nothing(browser: Browser, tmp_path: Path) -> None:
    """Of long names either; tables alone may scroll, each in its own box."""
    name = "student_of_a_long_name_1_in_a_group_of_four_who_work_together"
    file = tmp_path / "page.html"
    for kind, make in PAGES.items():
        page = make(ENGLISH)
        for each in ("alice", "张伟", "Ben"):
            page = page.replace(f">{each}<", f">{name}<")
        file.write_text(page, encoding="utf-8")
        browser.open(file, width=PHONE)
        browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), kind
        assert browser.faults() == [], kind


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_in_chinese_has_chinese_punctuation(kind: str) -> None:
    page = PAGES[kind](language("zh_CN"))
    for theirs in (r"<(style|script|pre)>.*?</\1>", r'<div class="code".*?</div>\n</div>'):
        page = re.sub(theirs, "", page, flags=re.DOTALL)
    said = map(unescape, re.findall(r">([^<]+)", page))
    assert [odd for text in said for odd in oddities(text)] == []
    assert not re.search(r"[\u4e00-\u9fff]\.\s*<", page)


@pytest.mark.sampled
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
            pytest.skip(
                "which font draws Chinese is not checked: apt-get install fonts-wqy-microhei"
            )
        assert sum(count for name, count in drawn.items() if name in FONTS) >= signs > 0, words


@pytest.mark.parametrize(("kind", "first"), [("measured", "speed"), ("wrong", "findings")])
def test_what_counts_is_on_the_first_screen_and_on_four_sheets(
    kind: str, first: str, browser: Browser, tmp_path: Path
) -> None:
    """Verdict, score, a picture and the next step, or what was found; answers stay folded."""
    file = tmp_path / "page.html"
    file.write_text(PAGES[kind](ENGLISH), encoding="utf-8")
    browser.open(file, width=1280, height=800)
    shown = [".hero .stamp", ".finding"] if kind == "wrong" else [".hero a", ".stamp", "svg"]
    for each in shown:
        below = f"document.querySelector({each!r}).getBoundingClientRect().bottom"
        assert browser.evaluate(below) <= 800, each
    assert (
        browser.evaluate("document.querySelector('section').getAttribute('aria-labelledby')")
        == first
    )
    browser.open(file, width=A4, paper=True)
    assert sheets(browser) <= 4
    if kind == "measured":
        answers = "document.querySelector('#why ~ .aside dl.answers')"
        assert browser.evaluate(f"{answers}.checkVisibility()") is False


def test_what_people_would_rather_see_is_drawn() -> None:
    """The barrier that is missing, where one helps, and the banks of an access."""
    picture = charts.race(BARRIER.message, language("zh_CN"))
    assert picture and ">缺少 __syncthreads()</text>" in picture.image
    assert "写入过 Bs[1023]" in picture.image and "a/file/of/a_long_name…" in picture.image
    assert charts.race(RACE.message, ENGLISH) is None
    for width, red in ((1, 4), (4, 0)):  # a wide access takes four turns of eight lanes
        lanes = tuple(4 * lane if lane % 8 == 0 else None for lane in range(32))
        drawn = charts.bank_map(BankMap(lanes=lanes, width=width), ENGLISH).image
        assert drawn.count('class="wrong"') == red


def test_lines_break_as_chinese_does(browser: Browser, tmp_path: Path) -> None:
    """The check of page_checks sees a line that begins with a full stop."""
    file = tmp_path / "page.html"
    head = '<!doctype html><html lang="zh-CN"><meta charset="utf-8"><title>x</title>'
    narrow = f"{head}<p style='width: 64px; font-size: 16px;%s'>线程束分。线程束分。</p>"
    for style, broken in (("line-break: anywhere", True), ("line-break: strict", False)):
        file.write_text(narrow % style, encoding="utf-8")
        browser.open(file, width=PHONE)
        assert bool(browser.ask("brokenLines")) == broken


def test_a_page_in_english_holds_no_chinese() -> None:
    assert not CHINESE_SIGN.search(re.sub(r"<style>.*?</style>", "", wrong(ENGLISH), flags=re.S))


def test_a_board_is_sorted_by_a_click(browser: Browser, tmp_path: Path) -> None:
    """What has no number, such as the baseline's rank, stays last in either order."""
    file = tmp_path / "board.html"
    file.write_text(board(ENGLISH), encoding="utf-8")
    browser.open(file, width=PHONE)
    orders = []
    for _ in range(2):
        browser.evaluate("document.querySelector('thead button').click()")
        cells = "document.querySelectorAll('table')[0].querySelectorAll('tbody td:first-child')"
        orders.append(browser.evaluate(f"[...{cells}].map(cell => cell.textContent)"))
    assert orders == [["1", "2", "3", ""], ["3", "2", "1", ""]]
