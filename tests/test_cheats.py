"""Submissions that try to fool the grader or to break it, each with what it must come to.

After each of them a classmate's work, the results, the lab and the instructor's notes lie there as
before, no process is left, and no secret stands in anything that a student could read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from grader import store
from grader.grading import Bench, Graded, grade
from grader.lab import Case, load_lab
from grader.model import Mnk, Verdict
from grader.report import html, terminal
from grader.sandbox import Sandbox
from grader.toolchain import find_toolchain
from tests import cheat_table
from tests.corpus import HONEST, Cheat, cheats, lay_out
from tests.results import make_result

ROOT = Path(__file__).parents[1]
SIZES = ((1, 1, 1), (9, 17, 33), (64, 64, 32))
SECRET = "SECRET-7f31c9"
LIVE_CODE = re.compile(r"\x1b(?!\[[0-9;]*m)|\x07")  # an escape code that is not colour
LIVE_TAG = re.compile(r"<script>alert|<img src=x")  # what the cheats would put into the page


@pytest.fixture(scope="module")
def bench() -> Bench:
    lab = load_lab()
    limits = msgspec.structs.replace(
        lab.limits, compile_s=10, record_s=2, simulate_s=2, memory_mb=2048
    )
    cases = tuple(Case(id=f"cpu-{i}", size=Mnk(m=m, n=n, k=k)) for i, (m, n, k) in enumerate(SIZES))
    return Bench(
        lab=msgspec.structs.replace(lab, cpu=cases, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
        explain=False,
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A classmate with a submission and a result, the instructor's notes, a lab file, a token."""
    monkeypatch.setenv("GRADER_TOKEN", SECRET)
    classmate = tmp_path / "submissions" / "bob"
    classmate.mkdir(parents=True)
    text = (HONEST / "sgemm.cu").read_text()
    (classmate / "sgemm.cu").write_text(f"{text}\n// {SECRET}\n")
    (tmp_path / "notes.txt").write_text(f'#error "{SECRET}"\n')
    (tmp_path / "lab.yaml").write_text("id: quick\n")
    store.save(tmp_path / "results", make_result())
    return tmp_path


@pytest.mark.parametrize("cheat", cheats(), ids=lambda cheat: cheat.folder.name)
def test_it_comes_to_what_it_declares(cheat: Cheat, bench: Bench, place: Path) -> None:
    if cheat.needs_bubblewrap and bench.sandbox.kind != "bubblewrap":
        pytest.skip("stopped by bubblewrap, which does not work here")
    result = graded_without_harm(lay_out(cheat, place), bench, place).result
    assert cheat.cpu.met_by(result), (result.verdict, result.error, result.cases, result.findings)
    assert result.score is None


def graded_without_harm(folder: Path, bench: Bench, place: Path) -> Graded:
    """Grade it and look round: nothing changed, nobody left, nothing told."""
    before, running = contents(place, folder), descendants()
    graded = grade(folder, bench, lambda _stage, _detail: None)
    assert contents(place, folder) == before
    assert descendants() <= running
    assert not Path("pwned").exists()
    text, page = shown(graded)
    document = store.encode(graded.result).decode()
    assert SECRET not in text + page + document + graded.printed
    assert "root:" not in text + page + document
    assert not LIVE_CODE.search(text + page)
    assert not LIVE_TAG.search(page)
    assert len(document) < 4 << 20
    return graded


def contents(place: Path, besides: Path) -> dict[str, bytes]:
    """Every file below ``place`` but those of the cheat itself."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_relative_to(besides)
    }


def descendants() -> set[int]:
    """The living processes below this one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def shown(graded: Graded) -> tuple[str, str]:
    """The terminal's text and the page."""
    console = Console(file=StringIO(), width=160, force_terminal=True)
    console.print(terminal.render(graded.result, graded.sources))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue(), html.render(graded.result, graded.sources)


# --- folders that are the cheat ----------------------------------------------------------------


def named(*names: str) -> Callable[[Path], None]:
    """Files of these names, executable, that would do harm if anybody ran or imported them."""

    def make(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("#error never read\nraise SystemExit('imported')\n")
            (folder / name).chmod(0o755)

    return make


def sparse(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(1 << 40)

    return make


FOLDERS: dict[str, tuple[Callable[[Path], None], Verdict]] = {
    "a header that links to the notes": (
        lambda folder: (folder / "x.cuh").symlink_to("../../notes.txt"),
        Verdict.FE,
    ),
    "a folder that links to the classmates": (
        lambda folder: (folder / "include").symlink_to(".."),
        Verdict.AC,
    ),
    "a pipe that nobody writes to": (lambda folder: os.mkfifo(folder / "x.cuh"), Verdict.FE),
    "a line break in a name": (named("x\nbob: AC accepted.cuh"), Verdict.FE),
    "an escape code in a name": (named("\x1b[2J.cuh"), Verdict.FE),
    "names for a shell": (
        named("$(touch pwned).cuh", "; touch pwned;.h", "-o pwned.h", "@pwned.h"),
        Verdict.AC,
    ),
    "a name for the page": (named("<img src=x onerror=alert(1)>.cuh"), Verdict.AC),
    "a sparse file of a terabyte": (sparse("x.cuh"), Verdict.FE),
    "a compressed bomb as a header": (
        lambda folder: (folder / "x.cuh").write_bytes(bytes.fromhex("504b0304ffffffff1400")),
        Verdict.FE,
    ),
    "a Thrust of its own": (named("thrust/device_vector.h", "thrust/device_ptr.h"), Verdict.AC),
    "a grader of its own": (
        named("grader/__init__.py", "sitecustomize.py", "numpy.py", "lab.yaml", "nvcc", "g++"),
        Verdict.AC,
    ),
}


@pytest.mark.parametrize(("make", "verdict"), FOLDERS.values(), ids=FOLDERS.keys())
def test_folders(make: Callable[[Path], None], verdict: Verdict, bench: Bench, place: Path) -> None:
    folder = place / "submissions" / "mallory"
    folder.mkdir()
    (folder / "sgemm.cu").write_text((HONEST / "sgemm.cu").read_text())
    make(folder)
    assert graded_without_harm(folder, bench, place).result.verdict is verdict


def test_the_corpus_is_large_and_says_what_stops_each() -> None:
    corpus = cheats()
    assert len(corpus) >= 35
    assert all(len(cheat.stopped_by) > 10 for cheat in corpus)


def test_the_page_about_cheats_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cheats.md").read_text() == cheat_table.page()
