"""The pictures of docs/, from real gradings: ``python -m tests.support.screenshots``.

The ladder's is of the shipped document of an H200.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.base.language import language
from grader.course.similar import ComparedWork, find_pairs
from grader.course.similar_rendering import pages as similar_pages
from grader.report import html
from grader.results import kept_sources, store
from grader.study.ladder_render import html as ladder_page
from tests.support.browser import Browser, chromium
from tests.support.places import ALICE, BROKEN, CORRECT, ROOT
from tests.support.product import shipped_ladder

NAMES = {"missing_second_sync": "bob", "edge_not_written": "carol", "compile_error": "dave"}
IMAGES = ROOT / "docs" / "images"
# Where the tests expect a finding, and what they expect.
_MARKS = re.compile(r" *// BUG\d*|^// (CPU|GPU|Finding|Also|Log): .*\n", re.MULTILINE)
TWIN = ComparedWork(
    student="bob", files={"sgemm.cu": (ROOT / "tests" / "course" / "disguised.cu").read_text()}
)


def tiled() -> str:
    return (CORRECT / "tiled_template" / "sgemm.cu").read_text()


def report(
    browser: Browser, document: Path, name: str, *, width: int = 1280, dark: bool = False
) -> None:
    """In both languages."""
    result = store.load(document)
    sources = kept_sources(document, result.submission.files) or {}
    for code, suffix in (("en", ""), ("zh_CN", ".zh")):
        page = document.with_name("page.html")
        page.write_text(html.render(result, sources, language(code)))
        browser.open(page, width=width, height=800, dark=dark)
        browser.screenshot(IMAGES / f"{name}{suffix}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for fixture, student in NAMES.items():
            source = (BROKEN / fixture / "sgemm.cu").read_text()
            (place / "class" / student).mkdir(parents=True)
            (place / "class" / student / "sgemm.cu").write_text(_MARKS.sub("", source))
        shutil.copytree(ALICE, place / "class" / "alice")
        grade = [sys.executable, "-m", "grader.cli"]
        subprocess.run([*grade, "class", "--device", "cpu", "class"], cwd=place, check=True)
        board = place / "board.html"
        subprocess.run([*grade, "leaderboard", "--html", str(board)], cwd=place, check=True)
        found = {path.parent.name: path for path in store.stored(place / "results")}
        twins = place / "twins.html"
        works = [ComparedWork(student="ann", files={"sgemm.cu": tiled()}), TWIN]
        twins.write_text(*similar_pages(find_pairs([works], []), works, 2).values())
        with chromium() as browser:
            ladder = place / "ladder.html"
            ladder.write_text(ladder_page(shipped_ladder()))
            browser.open(ladder, width=900, height=2230)
            browser.screenshot(IMAGES / "ladder.png")
            browser.open(twins, width=1100, height=700)
            browser.screenshot(IMAGES / "similar.png")
            report(browser, found["bob"], "report")
            report(browser, found["alice"], "report-accepted", dark=True)
            report(browser, found["alice"], "report-390", width=390)
            browser.open(board, width=900, height=360)
            browser.screenshot(IMAGES / "leaderboard.png")


if __name__ == "__main__":
    main()
