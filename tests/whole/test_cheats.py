"""Submissions that try to fool the grader or to break it, each with what it must come to.

After each of them a classmate's work, the results, the lab and the instructor's notes lie there as
before, no process is left, and no secret stands in anything that a student could read.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from _pytest.mark import ParameterSet
from rich.console import Console

from grader.base.records import Verdict
from grader.judge.pipeline import Graded, grade
from grader.judge.program import GradingContext
from grader.labs.lab import Case
from grader.report import html, terminal
from grader.results import store
from grader.run.protocol import quietly
from grader.sandbox import bubblewrap, landlock
from grader.sandbox.running import Sandbox
from ptxsim.plan import Size
from tests.support import bench as benches
from tests.support import cheat_table
from tests.support.bench import limited, of_lab
from tests.support.commands import below, hand_in, statuses
from tests.support.corpus import Fixture, cheats, lay_out
from tests.support.files import bind, grow
from tests.support.places import HONEST, ROOT
from tests.support.results import make_result

SIZES = ((1, 1, 1), (9, 17, 33), (64, 64, 32))
SECRET = "SECRET-7f31c9"
LIVE_CODE = re.compile(r"\x1b(?!\[[0-9;]*m)|\x07")  # an escape code that is not colour
LIVE_TAG = re.compile(r"<script>alert|<img src=x")  # what the cheats would put into the page


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> GradingContext:
    """Of the sandbox that the test names as its parameter; by default the best that works here."""
    cases = tuple(
        Case(id=f"cpu-{i}", size=Size.of(m=m, n=n, k=k)) for i, (m, n, k) in enumerate(SIZES)
    )
    sandbox = Sandbox.open(getattr(request, "param", "auto"))
    shared = msgspec.structs.replace(benches.bench(), sandbox=sandbox)
    limits = {"compile_s": 10, "record_s": 2, "simulate_s": 2, "memory_mb": 2048}
    return of_lab(limited(shared, **limits), cpu=cases)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A classmate with a submission and a result, the instructor's notes, a lab file, a token."""
    monkeypatch.setenv("GRADER_TOKEN", SECRET)
    text = (HONEST / "sgemm.cu").read_text()
    hand_in(tmp_path / "submissions" / "bob", f"{text}\n// {SECRET}\n")
    (tmp_path / "notes.txt").write_text(f'#error "{SECRET}"\n')
    (tmp_path / "lab.yaml").write_text("id: quick\n")
    store.save(tmp_path / "results", make_result())
    return tmp_path


ENDLESS_TO_COMPILE = ("macro_bomb", "assembler_bomb", "reads_the_compilers_output")
# What a sandbox may have to do with. Others get the same in each of them, which nightly runs see.
TRIES_THE_SYSTEM = re.compile(
    r"include *<(sys/|linux/|unistd|fcntl|c?signal|dirent|dlfcn|sched|poll|pthread|thread|fstream"
    r"|spawn|filesystem|c?stdlib)|incbin|include *\"[./@]|@PLACE@|@GRADER@"
)
# What the filter of host code alone stops, so limits alone do, too.
TRY_THE_FILTER = (
    *("leaves_word_in_the_kernel", "reads_classmate", "writes_into_the_results", "opens_devices"),
    *("fills_every_folder", "signals_every_way", "reads_command_lines", "asks_whether_files_exist"),
    *("leaves_notes_for_the_next_size", "writes_its_parents_memory", "edits_the_grader"),
)
NEEDS_LANDLOCK = pytest.mark.skipif(
    landlock.working() is None or bubblewrap.working() is None,
    reason="no cheat is tried in both sandboxes: bubblewrap and Landlock do not both work here",
)


def tries_the_sandbox(cheat: Fixture) -> bool:
    text = (cheat.folder / "sgemm.cu").read_text()
    declared = cheat.needs_sandbox or cheat.in_landlock is not None
    return declared or TRIES_THE_SYSTEM.search(text) is not None


def in_both_sandboxes(name: str, *given: object, nightly: bool = False) -> Iterator[ParameterSet]:
    """In the best one, in Landlock's, and by limits alone if it tries the filter."""
    marks = [NEEDS_LANDLOCK, *([pytest.mark.nightly] if nightly else [])]
    yield pytest.param(*given, "auto", id=name)
    yield pytest.param(*given, "landlock", id=f"{name}-landlock", marks=marks)
    if name in TRY_THE_FILTER:
        yield pytest.param(*given, "off", id=f"{name}-limits")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("cheat", "bench"),
    [
        each
        for cheat in cheats()
        for each in in_both_sandboxes(
            cheat.folder.name, cheat, nightly=not tries_the_sandbox(cheat)
        )
    ],
    indirect=["bench"],
)
def test_it_comes_to_what_it_declares(cheat: Fixture, bench: GradingContext, place: Path) -> None:
    if not bench.sandbox.filtered:
        pytest.skip("stopped by a filter of system calls, and this kernel has none")
    if cheat.needs_sandbox and bench.sandbox.kind == "rlimits":
        pytest.skip("stopped by a sandbox, and none works here")
    if cheat.needs_cutlass and bench.toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    if cheat.needs_cutlass:  # a compiler reads it for half a minute
        bench = limited(bench, compile_s=60)
    if cheat.folder.name in ENDLESS_TO_COMPILE:
        bench = limited(bench, compile_s=4)
    bench = of_lab(bench, architectures=(cheat.architecture,))
    result = graded_without_harm(lay_out(cheat, place), bench, place).result
    in_landlock = bench.sandbox.kind == "landlock" and cheat.in_landlock
    expected = in_landlock or cheat.cpu
    assert expected.met_by(result), (result.verdict, result.error, result.cases, result.findings)
    assert result.score is None


def graded_without_harm(folder: Path, bench: GradingContext, place: Path) -> Graded:
    """Grade it and look round: nothing changed, nobody left, nothing told."""
    before, running = contents(place, folder), descendants()
    graded = grade(folder, bench, quietly)
    assert contents(place, folder) == before
    gone_by = time.monotonic() + 10  # what was killed dies when it gets the processor
    while (left := descendants(running)) and time.monotonic() < gone_by:
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


def descendants(besides: Collection[int] = ()) -> set[int]:
    """The living processes below this one, but ``besides`` and what those start: a browser that
    another test opened starts helpers whenever it likes."""
    alive = {pid: words for pid, words in statuses().items() if words[0] != "Z"}
    return below(alive, besides)


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
    return lambda folder: grow(folder / name, size)


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


def link_to_bob(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("bob")


Folders = dict[str, Callable[[Path], object]]
FOLDERS: Folders = {
    "a header that links to the notes": link("x.cuh", "../../notes.txt"),
    "a header that links to a classmate's file": link("x.cuh", "../bob/sgemm.cu"),
    "a kernel that links to a classmate's": link("sgemm.cu", "../bob/sgemm.cu"),
    "a kernel that links to the passwords": link("sgemm.cu", "/etc/passwd"),
    "a link within the folder": link("x.cuh", "sgemm.cu"),
    "a link to itself": link("x.cuh", "x.cuh"),
    "a folder that links to the classmates": link("include", ".."),
    "a folder that links to the devices": link("include", "/dev"),
    "a submission that links to a classmate's": link_to_bob,
    "a pipe that nobody writes to": lambda folder: os.mkfifo(folder / "x.cuh"),
    "a kernel that is a pipe": instead(os.mkfifo),
    "a kernel that is a socket": instead(bind),
    "a kernel that is a folder": instead(Path.mkdir),
    "a line break in a name": named("x\nbob: AC accepted.cuh"),
    "an escape code in a name": named("\x1b[2J.cuh"),
    "a name that runs from right to left": named("x\u202ehuc.bob.cuh"),
    "a name that is not UTF-8": named(os.fsdecode(b"\xff.cuh")),
    "a pipe whose name is a line of its own": lambda folder: os.mkfifo(
        folder / "x\nbob: AC accepted.cuh"
    ),
    "a sparse file of a terabyte": sparse("x.cuh", 1 << 40),
    "a kernel of three sparse gigabytes": sparse("sgemm.cu", 3 << 30),
    "folders within folders": lambda folder: folder.joinpath(*"abcdefghijklmnop").mkdir(
        parents=True
    ),
    "thousands of files": named(*(f"{index}.txt" for index in range(4100))),
    "a compressed bomb as a header": lambda folder: (folder / "x.cuh").write_bytes(
        bytes.fromhex("504b0304ffffffff1400")
    ),
}
HARMLESS: Folders = {
    "pipes and sockets beside the kernel": lambda folder: (
        os.mkfifo(folder / "log"),
        bind(folder / "agent"),
    ),
    "names for a shell": named("$(touch pwned).cuh", "; touch pwned;.h", "-o pwned.h", "@pwned.h"),
    "a name for the page": named("<img src=x onerror=alert(1)>.cuh"),
    "sparse gigabytes that are no source": sparse("core", 3 << 30),
    "a Thrust of its own": named("thrust/device_vector.h", "thrust/device_ptr.h"),
    "a grader of its own": named(
        "grader/__init__.py", "sitecustomize.py", "numpy.py", "lab.yaml", "nvcc", "g++"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("make", "verdict", "bench"),
    [
        each
        for verdict, folders in ((Verdict.FE, FOLDERS), (Verdict.AC, HARMLESS))
        for name, make in folders.items()
        for each in in_both_sandboxes(name, make, verdict)
    ],
    indirect=["bench"],
)
def test_folders(
    make: Callable[[Path], object], verdict: Verdict, bench: GradingContext, place: Path
) -> None:
    folder = hand_in(place / "submissions" / "mallory", (HONEST / "sgemm.cu").read_text())
    make(folder)
    result = graded_without_harm(folder, bench, place).result
    assert result.verdict is verdict
    assert result.submission.student == "mallory"
    if verdict is Verdict.FE:
        assert result.error
        assert str(result.error).isprintable()


def test_a_kernel_that_changes_while_it_is_graded(bench: GradingContext, place: Path) -> None:
    """What is compiled, hashed and shown is the text that was read first."""
    own = (HONEST / "sgemm.cu").read_text()
    folder = hand_in(place / "submissions" / "mallory", own)

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


def test_the_page_about_cheats_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cheats.md").read_text() == cheat_table.page()
