"""Submissions that try to fool the grader or to break it, each with what it must come to.

After each of them a classmate's work, the results, the lab and the instructor's notes lie there as
before, no process is left, and no secret stands in anything that a student could read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from _pytest.mark import ParameterSet
from rich.console import Console

from grader.grading.pipeline import Bench, Graded, grade
from grader.labs.lab import Case, load_lab
from grader.model import Size, Verdict
from grader.report import html, terminal
from grader.results import store
from grader.sandbox import bubblewrap, landlock
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import find_toolchain
from tests.support import cheat_table
from tests.support.corpus import Cheat, cheats, lay_out
from tests.support.in_turn import in_turn
from tests.support.places import HONEST, ROOT
from tests.support.results import make_result

SIZES = ((1, 1, 1), (9, 17, 33), (64, 64, 32))
SECRET = "SECRET-7f31c9"
LIVE_CODE = re.compile(r"\x1b(?!\[[0-9;]*m)|\x07")  # an escape code that is not colour
LIVE_TAG = re.compile(r"<script>alert|<img src=x")  # what the cheats would put into the page


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> Bench:
    """Of the sandbox that the test names as its parameter; by default the best that works here."""
    lab = load_lab()
    limits = msgspec.structs.replace(
        lab.limits, compile_s=10, record_s=2, simulate_s=2, memory_mb=2048
    )
    cases = tuple(
        Case(id=f"cpu-{i}", size=Size.of(m=m, n=n, k=k)) for i, (m, n, k) in enumerate(SIZES)
    )
    return Bench(
        lab=msgspec.structs.replace(lab, cpu=cases, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open(getattr(request, "param", "auto")),
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


ENDLESS_TO_COMPILE = ("macro_bomb", "assembler_bomb", "reads_the_compilers_output")
# These take five to fifteen seconds each.
LONG = (
    *ENDLESS_TO_COMPILE,
    "stops_itself",
    "probes_for_files",
    "forged_long_plan",
    "sleeps_instead",
    "naps_all_the_time",
    "sleeps_while_it_is_loaded",
    "raises_its_own_limits",
    "hides_cutlass_in_its_kernel",
)


# Each in a different way depends on the sandbox alone; in every run they are graded in both.
TRY_THE_SANDBOX = (
    *("includes_a_secret", "reads_classmate", "writes_into_the_results", "opens_devices"),
    *("fills_every_folder", "signals_every_way", "reads_command_lines", "asks_whether_files_exist"),
)
NEEDS_LANDLOCK = pytest.mark.skipif(
    landlock.working() is None or bubblewrap.working() is None,
    reason="bubblewrap and Landlock do not both work here",
)


def in_both_sandboxes(place: int, name: str, *given: object) -> Iterator[ParameterSet]:
    """In the best one, and in Landlock's; in every run if it tries the sandbox, and of the others
    that are quick every twelfth in the best one."""
    always = name in TRY_THE_SANDBOX and name not in LONG
    quick = in_turn(place) and name not in LONG
    slow = [pytest.mark.slow]
    best, other = [] if always or quick else slow, [] if always else slow
    yield pytest.param(*given, "auto", id=name, marks=best)
    yield pytest.param(*given, "landlock", id=f"{name}-landlock", marks=[*other, NEEDS_LANDLOCK])


@pytest.mark.parametrize(
    ("cheat", "bench"),
    [
        each
        for place, cheat in enumerate(cheats())
        for each in in_both_sandboxes(place, cheat.folder.name, cheat)
    ],
    indirect=["bench"],
)
def test_it_comes_to_what_it_declares(cheat: Cheat, bench: Bench, place: Path) -> None:
    if cheat.needs_sandbox and bench.sandbox.kind == "rlimits":
        pytest.skip("stopped by a sandbox, and none works here")
    if cheat.needs_cutlass and bench.toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    # A compiler reads CUTLASS for half a minute; for others no time is enough.
    if cheat.needs_cutlass:  # a compiler reads for half a minute
        bench = with_compile_s(60, bench)
    if cheat.folder.name in ENDLESS_TO_COMPILE:
        bench = with_compile_s(4, bench)
    lab = msgspec.structs.replace(bench.lab, architectures=(cheat.architecture,))
    bench = msgspec.structs.replace(bench, lab=lab)
    result = graded_without_harm(lay_out(cheat, place), bench, place).result
    expected = cheat.cpu
    if bench.sandbox.kind == "landlock" and cheat.in_landlock is not None:
        expected = cheat.in_landlock
    assert expected.met_by(result), (result.verdict, result.error, result.cases, result.findings)
    assert result.score is None


def with_compile_s(seconds: int, bench: Bench) -> Bench:
    limits = msgspec.structs.replace(bench.lab.limits, compile_s=seconds)
    return msgspec.structs.replace(bench, lab=msgspec.structs.replace(bench.lab, limits=limits))


def graded_without_harm(folder: Path, bench: Bench, place: Path) -> Graded:
    """Grade it and look round: nothing changed, nobody left, nothing told."""
    before, running = contents(place, folder), descendants()
    graded = grade(folder, bench, lambda _stage, _detail: None)
    assert contents(place, folder) == before
    gone_by = time.monotonic() + 10  # what was killed dies when it gets the processor
    while (left := descendants(besides=running)) and time.monotonic() < gone_by:
        time.sleep(0.05)
    assert not left
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


def descendants(besides: frozenset[int] = frozenset()) -> frozenset[int]:
    """The living processes below this one, but ``besides`` and what those start: a browser that
    another test opened starts helpers whenever it likes."""
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
        new = {child for child, parent in parents.items() if parent in new} - found - besides
        found |= new
    return frozenset(found)


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


def sparse(name: str, size: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(size)

    return make


def link(name: str, target: str) -> Callable[[Path], None]:
    """A link in place of whatever has this name."""

    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return make


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else by the name of sgemm.cu."""

    def replace(folder: Path) -> None:
        (folder / "sgemm.cu").unlink()
        make(folder / "sgemm.cu")

    return replace


def socket_at(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{descriptor}/{path.name}")
    os.close(descriptor)


def link_to_bob(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("bob")


FOLDERS: dict[str, tuple[Callable[[Path], object], Verdict]] = {
    "a header that links to the notes": (link("x.cuh", "../../notes.txt"), Verdict.FE),
    "a header that links to a classmate's file": (link("x.cuh", "../bob/sgemm.cu"), Verdict.FE),
    "a kernel that links to a classmate's": (link("sgemm.cu", "../bob/sgemm.cu"), Verdict.FE),
    "a kernel that links to the passwords": (link("sgemm.cu", "/etc/passwd"), Verdict.FE),
    "a link within the folder": (link("x.cuh", "sgemm.cu"), Verdict.FE),
    "a link to itself": (link("x.cuh", "x.cuh"), Verdict.FE),
    "a folder that links to the classmates": (link("include", ".."), Verdict.FE),
    "a folder that links to the devices": (link("include", "/dev"), Verdict.FE),
    "a submission that links to a classmate's": (link_to_bob, Verdict.FE),
    "a pipe that nobody writes to": (lambda folder: os.mkfifo(folder / "x.cuh"), Verdict.FE),
    "a kernel that is a pipe": (instead(os.mkfifo), Verdict.FE),
    "a kernel that is a socket": (instead(socket_at), Verdict.FE),
    "a kernel that is a folder": (instead(Path.mkdir), Verdict.FE),
    "pipes and sockets beside the kernel": (
        lambda folder: (os.mkfifo(folder / "log"), socket_at(folder / "agent")),
        Verdict.AC,
    ),
    "a line break in a name": (named("x\nbob: AC accepted.cuh"), Verdict.FE),
    "an escape code in a name": (named("\x1b[2J.cuh"), Verdict.FE),
    "a name that runs from right to left": (named("x\u202ehuc.bob.cuh"), Verdict.FE),
    "a name that is not UTF-8": (named(os.fsdecode(b"\xff.cuh")), Verdict.FE),
    "a pipe whose name is a line of its own": (
        lambda folder: os.mkfifo(folder / "x\nbob: AC accepted.cuh"),
        Verdict.FE,
    ),
    "names for a shell": (
        named("$(touch pwned).cuh", "; touch pwned;.h", "-o pwned.h", "@pwned.h"),
        Verdict.AC,
    ),
    "a name for the page": (named("<img src=x onerror=alert(1)>.cuh"), Verdict.AC),
    "a sparse file of a terabyte": (sparse("x.cuh", 1 << 40), Verdict.FE),
    "a kernel of three sparse gigabytes": (sparse("sgemm.cu", 3 << 30), Verdict.FE),
    "sparse gigabytes that are no source": (sparse("core", 3 << 30), Verdict.AC),
    "folders within folders": (
        lambda folder: folder.joinpath(*"abcdefghijklmnop").mkdir(parents=True),
        Verdict.FE,
    ),
    "thousands of files": (named(*(f"{index}.txt" for index in range(4100))), Verdict.FE),
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


@pytest.mark.parametrize(
    ("make", "verdict", "bench"),
    [
        each
        for place, (name, given) in enumerate(FOLDERS.items())
        for each in in_both_sandboxes(place, name, *given)
    ],
    indirect=["bench"],
)
def test_folders(
    make: Callable[[Path], object], verdict: Verdict, bench: Bench, place: Path
) -> None:
    folder = place / "submissions" / "mallory"
    folder.mkdir()
    (folder / "sgemm.cu").write_text((HONEST / "sgemm.cu").read_text())
    make(folder)
    result = graded_without_harm(folder, bench, place).result
    assert result.verdict is verdict
    assert result.submission.student == "mallory"
    if verdict is Verdict.FE:
        assert result.error
        assert str(result.error).isprintable()


def test_a_kernel_that_changes_while_it_is_graded(bench: Bench, place: Path) -> None:
    """What is compiled, hashed and shown is the text that was read first."""
    folder = place / "submissions" / "mallory"
    folder.mkdir()
    own = (HONEST / "sgemm.cu").read_text()
    (folder / "sgemm.cu").write_text(own)

    def change(_stage: str, _detail: str) -> None:
        """At every stage the classmate's file stands in its place, and another beside it."""
        (folder / "sgemm.cu").unlink()
        (folder / "sgemm.cu").symlink_to("../bob/sgemm.cu")
        (folder / "x.cuh").unlink(missing_ok=True)
        (folder / "x.cuh").write_text("#error read again\n")

    graded = grade(folder, bench, change)
    assert (folder / "sgemm.cu").is_symlink()
    assert graded.result.verdict is Verdict.AC
    assert graded.sources == {"sgemm.cu": own}
    (file,) = graded.result.submission.files
    assert file.sha256 == hashlib.sha256(own.encode()).hexdigest()
    text, page = shown(graded)
    assert SECRET not in text + page + store.encode(graded.result).decode()


def test_the_corpus_is_large_and_says_what_stops_each() -> None:
    corpus = cheats()
    assert len(corpus) >= 35
    assert all(len(cheat.stopped_by) > 10 for cheat in corpus)


def test_the_page_about_cheats_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cheats.md").read_text() == cheat_table.page()
