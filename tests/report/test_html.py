"""The student's page: in a real browser, with everything a student may have written."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from grader.base.finding import Finding, Kind
from grader.base.native import CACHE_VARIABLE
from grader.base.records import BuildInfo, KernelInfo, Verdict
from grader.labs.submission import SourceFile
from grader.report import environments, html
from grader.report.drawing import coloured
from grader.results.case import ThreadTile
from grader.results.result import Result
from grader.sandbox import bubblewrap
from ptxsim.findings import Severity
from ptxsim.text import verbatim
from tests.support.bench import needs_bubblewrap
from tests.support.boards import climbing
from tests.support.browser import MOST_BYTES, PHONE, Browser, accessibility, assert_readable
from tests.support.files import values
from tests.support.pages import LINES, SOURCE, gpu_result, standing_at
from tests.support.results import RACE, RIGHT, WRONG, make_result

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e'


def wrong_result() -> Result:
    maps = ("#" * 24 + "+" * 8,) * 3 + ("." * 32,) * 9
    assert WRONG.error
    large = msgspec.structs.replace(
        WRONG,
        id="cpu-2",
        size={"m": 96, "n": 256, "k": 64},
        error=msgspec.structs.replace(WRONG.error, tile_map=maps, tile_edge=8),
    )
    return make_result(
        "mallory",
        cases=(RIGHT, WRONG, large),
        verdict=Verdict.WA,
        findings=(RACE, msgspec.structs.replace(RACE, line=4, severity=Severity.WARNING)),
        lines=LINES,
    )


def evil_result() -> Result:
    finding = Finding(
        kind=Kind.RACE, severity=Severity.ERROR, message=verbatim(EVIL), file=EVIL, line=2
    )
    build = BuildInfo(
        ok=False,
        command=EVIL,
        log=EVIL,
        seconds=1,
        kernels=(KernelInfo(name=EVIL, registers=255, shared_bytes=0, spill_bytes=16),),
    )
    submission = msgspec.structs.replace(
        make_result().submission,
        student=EVIL,
        files=(SourceFile(name=EVIL, sha256="0" * 64, size=1),),
    )
    return make_result(
        build=build,
        findings=(finding,),
        submission=submission,
        cases=(msgspec.structs.replace(WRONG, message=verbatim(EVIL)),),
        verdict=Verdict.CE,
        error=verbatim(EVIL),
    )


PAGES = {
    "gpu": lambda: html.render(
        gpu_result(lines=LINES, standing=standing_at(0.86)), {"sgemm.cu": SOURCE}
    ),
    "wrong": lambda: html.render(wrong_result(), {"sgemm.cu": SOURCE}),
    "evil": lambda: html.render(evil_result(), {EVIL: f"{EVIL}\n" * 3}),
    "bare": lambda: html.render(
        make_result(
            build=None, cases=(), verdict=Verdict.FE, error=verbatim("sgemm.cu is missing")
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_in_a_browser(name: str, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(PAGES[name]())
    assert_readable(browser, file)


@pytest.mark.parametrize(("rule", "before", "after"), values(__file__, "axe.txt"))
def test_axe_core_sees_what_is_wrong(
    rule: str, before: str, after: str, browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    page = PAGES["gpu"]()
    assert before in page
    file.write_text(page.replace(before, after))
    browser.open(file, width=PHONE)
    assert rule in " ".join(accessibility(browser))


def test_the_keyboard_reaches_everything(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES["wrong"]())
    browser.open(file, width=PHONE)
    reachable = "[...document.querySelectorAll('a, summary, .scroll, .code')]"
    reachable += ".filter(each => each.checkVisibility())"
    browser.evaluate(f"window.order = {reachable}")
    for number in range(browser.evaluate("order.length")):
        browser.press("Tab")
        assert browser.evaluate(f"document.activeElement === order[{number}]"), number
        assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.evaluate("document.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.querySelector('details').open")
    browser.evaluate("document.querySelector('.skip').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.id") == "content"


def test_a_page_works_without_javascript_and_prints(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES["gpu"]())
    browser.open(file, width=1280, script=False)
    assert browser.complaints == []
    assert browser.print_pages().startswith(b"%PDF")
    assert "<script" not in file.read_text()


class Balance(HTMLParser):
    """Notices elements closed in another order than they were opened."""

    VOID = ("meta", "link", "br", "rect", "line", "circle", "polyline")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.crossed: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and self.open.pop() != tag:
            self.crossed.append(f"{tag} at line {self.getpos()[0]}")


def test_a_page_shows_which_elements_threads_compute() -> None:
    """Neighbours in a row are one rectangle."""
    tile = ThreadTile(operand="C", rows=4, columns=8, threads=((0, 1, 8, 9), (2, 3, 10, 11)))
    right = msgspec.structs.replace(RIGHT, tile=tile)
    kernel = KernelInfo(name="k", registers=8, shared_bytes=0, spill_bytes=0)
    made = BuildInfo(ok=True, command="", log="", seconds=0.0, kernels=(kernel,))
    said = html.render(make_result(cases=(right,), build=made), {})

    assert re.findall(r'width="([\d.]+)" height="[\d.]+" class="tile series(\d)"', said) == [
        *(("64.0", "0"), ("64.0", "0"), ("64.0", "1"), ("64.0", "1")),
        *(("10.0", "0"), ("10.0", "1")),  # what the colours mean
    ]
    assert "4 × 8 elements of C" in said
    for wrong in (
        {"rows": 0},
        {"columns": -8},
        {"rows": 1 << 20},
        {"threads": ((32,),)},
        {"threads": ((-1,),)},
        {"threads": ((0,),) * 5},
        {"threads": ((0,) * 257,)},
    ):
        document = msgspec.json.encode({**msgspec.structs.asdict(tile), **wrong})
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(document, type=ThreadTile)


@pytest.mark.parametrize("name", PAGES)
def test_elements_nest(name: str) -> None:
    """A comment over several lines must not leak its span from one line into the next."""
    balance = Balance()
    balance.feed(PAGES[name]())
    assert balance.crossed == []
    assert balance.open == []


@pytest.mark.parametrize("name", ["gpu", "wrong", "evil"])
def test_a_page_says_what_was_found_and_escapes_what_students_write(name: str) -> None:
    text = PAGES[name]()
    for page, says, words in values(__file__, "page_words.txt"):
        assert page != name or (words in text) == (says == "says"), words
    assert text.count("<figure>") == 3 or name != "wrong"  # roofline and two maps


def test_a_page_stays_small_whatever_comes() -> None:
    many = tuple(
        msgspec.structs.replace(RACE, message=verbatim("<" * 5000), line=1 + 7 * i)
        for i in range(2000)
    )
    case = msgspec.structs.replace(wrong_result().cases[2], message=verbatim("&" * 5000))
    kernel = KernelInfo(name="k" * 5000, registers=1, shared_bytes=0, spill_bytes=0)
    build = BuildInfo(
        ok=True, command="<" * 10**6, log="<" * 10**6, seconds=1, kernels=(kernel,) * 500
    )
    result = make_result(
        "x" * 5000,
        findings=many,
        cases=(case,) * 1000,
        build=build,
        lines=LINES,
        error=verbatim("<" * 10**6),
        verdict=Verdict.WA,
    )
    source = "float a = b<c, 1>(0) + '<' - 3;\n" * 30_000
    small = "".join(f"{'<>' * 14}\n" for _ in range(1000))
    page = html.render(result, {"sgemm.cu": source, "a.cuh": small})
    assert len(page.encode()) <= MOST_BYTES


# --- sources: every character stays, and no source takes long to mark ----------------------------

PIECES = st.sampled_from([*"\n\"'\\ \tx&é", "/*", "*/", "//", "#if", "float", "1.5e3f", "<b>"])


@given(st.lists(PIECES, max_size=60).map("".join))
def test_every_character_stays_in_its_line(text: str) -> None:
    lines = coloured(text)
    plain = [unescape(re.sub(r"</?span[^>]*>", "", line)) for line in lines]
    assert "\n".join(plain) == text
    for line in lines:
        assert line.count("<span") == line.count("</span>")
        assert not re.search(r"<(?!/?span)", line)


@pytest.mark.parametrize(("text", "marked"), values(__file__, "marked.txt"))
def test_what_is_marked(text: str, marked: str) -> None:
    assert coloured(text) == [marked]


@pytest.mark.parametrize("piece", ["\n", "'", '"\\\n', "(((((", "a::", "/*", "#if 0\n", "  \n"])
def test_time_grows_with_the_text_only(piece: str) -> None:
    started = time.process_time()
    coloured(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 10  # a second; a quadratic one takes hours


# --- compiled templates --------------------------------------------------------------------------


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """A page by an environment of its own, with a cache that is empty at first."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(environments, "environment", environments.environment.__wrapped__)
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


# --- a picture as PNG


FONTS = Path("/usr/share/fonts")
LATIN = next(FONTS.rglob("DejaVuSans.ttf"), None)
needs_latin = pytest.mark.skipif(
    LATIN is None and "CI" not in os.environ,
    reason="no PNG is drawn with a Latin font alone: apt-get install fonts-dejavu-core",
)


def history_with_fonts(
    fonts: tuple[Path, ...], tmp_path: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """``grade history --svg --png`` where only these fonts are, in the user's own folder."""
    climbing(tmp_path)
    own = tmp_path / "home/.local/share/fonts"
    own.mkdir(parents=True)
    for font in fonts:
        shutil.copy(font, own)
    found = bubblewrap.working()
    assert found is not None
    command = [str(found[0]), "--dev-bind", "/", "/"]
    for hidden in (FONTS, Path("/usr/local/share/fonts")):
        command += ["--tmpfs", str(hidden)] if hidden.exists() else []
    command += ["--setenv", "HOME", str(own.parents[2]), "--unsetenv", "XDG_DATA_HOME"]
    command += [sys.executable, "-m", "grader.cli", "history", "alice", "--out", str(tmp_path)]
    command += ["--svg", str(tmp_path / "c.svg"), "--png", str(tmp_path / "c.png"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def assert_all_but_the_png(tmp_path: Path) -> None:
    assert (tmp_path / "c.svg").exists()
    assert (tmp_path / "sgemm" / "alice" / "history-gpu.html").exists()
    assert not (tmp_path / "c.png").exists()


@pytest.mark.sampled
@needs_bubblewrap
def test_without_any_font_one_line_says_what_to_install(tmp_path: Path) -> None:
    done = history_with_fonts((), tmp_path)

    assert done.returncode == 3
    complaint = done.stderr.splitlines()[-1]
    assert "PNG: found no font for " in complaint and "fonts-dejavu-core" in complaint
    assert "fonts-wqy-microhei" in complaint and "--svg needs none" in complaint
    assert_all_but_the_png(tmp_path)


@pytest.mark.sampled
@needs_latin
@needs_bubblewrap
def test_a_font_in_the_users_own_folder_is_enough(tmp_path: Path) -> None:
    assert LATIN is not None, "apt-get install fonts-dejavu-core"
    done = history_with_fonts((LATIN,), tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@needs_latin
@needs_bubblewrap
def test_a_font_without_chinese_draws_no_boxes_for_it(tmp_path: Path) -> None:
    assert LATIN is not None, "apt-get install fonts-dejavu-core"
    done = history_with_fonts((LATIN,), tmp_path, "--language", "zh_CN")

    assert done.returncode == 3
    complaint = done.stderr.splitlines()[-1]
    assert "字体" in complaint and "fonts-wqy-microhei" in complaint
    named = complaint.partition("显示")[2].partition("的字体")[0]
    assert named and not any(each.isascii() and each.isalnum() for each in named)
    assert_all_but_the_png(tmp_path)
