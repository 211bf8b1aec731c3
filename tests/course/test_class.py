"""A whole class: what counts as a submission, resuming, faults that stay with one submission."""

import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import MachineError, UsageError
from grader.base.records import Verdict
from grader.course.classes import find_submissions
from grader.course.leaderboard import make_boards
from grader.labs.submission import load_listed
from grader.results import store
from grader.results.entries import read_entries, read_index
from grader.results.result import Result
from grader.study.forks import warm_up
from grader.study.pool import Queue, grade_all, lanes
from grader.study.worker import Lane, Setup, Task, TaskReport
from tests.support import commands
from tests.support.boards import grade, rows_of
from tests.support.commands import STARTER, Processes, environment, hand_in, until
from tests.support.files import beside, values
from tests.support.places import ROOT
from tests.support.product import MAIN

WRONG = STARTER.replace("C[", "C[1 + ", 1)
LAB = commands.QUICK + "limits: {simulate_s: 2}\n"
HANG = beside(__file__, "hang.cu")


EXPORT = "submission_1:\n  :submitters:\n  - :sid: '7'\n  :created_at: "


def class_of(folder: Path, texts: dict[str, str]) -> Path:
    for student, text in texts.items():
        hand_in(folder / student, text)
    return folder


def command(*arguments: str | Path) -> list[str]:
    return commands.grade("class", "--device", "cpu", *arguments)


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return commands.run(command(*arguments), cwd)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(LAB)
    return tmp_path


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def results(out: Path) -> dict[str, Result]:
    return {result.submission.student: result for result in map(store.load, store.stored(out))}


def essence(result: Result) -> object:
    """What must be the same however often the run was interrupted."""
    cases = [(case.id, case.verdict) for case in result.cases]
    kinds = sorted({finding.kind for finding in result.findings})
    return (result.verdict, result.submission.sha256, cases, kinds, result.error)


# --- what a folder holds ----------------------------------------------------------------------


def test_folders_and_flat_files(tmp_path: Path) -> None:
    class_of(tmp_path, {"bob": STARTER, ".git": ""})
    (tmp_path / "alice.cu").write_text(STARTER)
    (tmp_path / "notes.txt").write_text("not a submission")
    entrants, complaints = find_submissions(tmp_path, MAIN)
    assert [entrant.student for entrant in entrants] == ["alice", "bob"]
    assert [entrant.source.name for entrant in entrants] == ["alice.cu", "bob"]
    assert not complaints
    for entrant in entrants:
        submission = load_listed(entrant.source, entrant.student, MAIN)
        assert submission.student == entrant.student
        assert submission.contents == {"sgemm.cu": STARTER.encode()}


def test_an_export_of_gradescopes(tmp_path: Path) -> None:
    class_of(tmp_path, {"submission_1": STARTER, "submission_2": STARTER, "submission_3": STARTER})
    (tmp_path / "submission_metadata.yml").write_text(beside(__file__, "export.yml"))
    entrants, _ = find_submissions(tmp_path, MAIN)
    assert [e.student for e in entrants] == ["0042", "Cy/..+bo@x.org", "submission_3"]
    assert [e.submitted for e in entrants] == ["2026-01-30T12:00:00-08:00", None, None]
    submission = load_listed(entrants[1].source, entrants[1].student, MAIN)
    assert (submission.student, submission.folder.name) == ("Cy/..+bo@x.org", "submission_2")


@pytest.mark.parametrize(("text", "moment"), values(__file__, "moments.txt"))
def test_when_gradescope_says_it_came(tmp_path: Path, text: str, moment: str | None) -> None:
    class_of(tmp_path, {"submission_1": STARTER})
    (tmp_path / "submission_metadata.yml").write_text(f"{EXPORT}{text}\n")
    if moment is None:
        with pytest.raises(UsageError, match=":created_at:"):
            find_submissions(tmp_path, MAIN)
    else:
        assert find_submissions(tmp_path, MAIN)[0][0].submitted == moment


@pytest.mark.parametrize(("files", "words"), values(__file__, "no_class.txt"))
def test_folders_that_are_no_class(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=words):
        find_submissions(tmp_path / "c", MAIN)


# --- workers ----------------------------------------------------------------------------------


def grading(
    place: Path, texts: dict[str, str], working: Sequence[Lane] = ()
) -> Iterator[TaskReport]:
    folder = class_of(place / "c", texts)
    tasks = list(map(Task.grading, find_submissions(folder, MAIN)[0]))
    setup = Setup(
        lab=place / "lab.yaml", sandbox="auto", gpu_arch=None, out=place / "out", report=True
    )
    return grade_all(tasks, working or [Lane(kind="grade")], setup)


@pytest.mark.sampled
@pytest.mark.parametrize("working", [lanes("cpu", 2), lanes("gpu", 1)])
def test_every_submission_is_graded_once(place: Path, working: list[Lane]) -> None:
    texts = {"a": STARTER, "b": WRONG, "c": "int x = ;", "d": STARTER}
    reports = list(grading(place, texts, working))
    found = {report.task.student: report.verdict for report in reports}
    assert found == {"a": Verdict.AC, "b": Verdict.RE, "c": Verdict.CE, "d": Verdict.AC}
    assert len(reports) == 4
    assert {name: r.verdict for name, r in results(place / "out").items()} == found
    assert len(list((place / "out").rglob("*.html"))) == 4


def test_compiling_ahead_of_one_grader() -> None:
    tasks = [Task(kind="grade", student=name, source=Path(name)) for name in "abc"]
    queue = Queue(tasks, ahead=True)
    ahead = queue.next("compile")
    assert ahead is not None
    assert (ahead.kind, ahead.student) == ("compile", "a")
    assert queue.next("grade") == tasks[1]  # a is being compiled: not worth waiting for
    second = queue.next("compile")
    assert second is not None
    assert second.student == "c"  # b is being graded
    assert queue.next("grade") is None
    queue.compiled(ahead)
    assert queue.next("grade") == tasks[0]
    queue.compiled(msgspec.structs.replace(tasks[2], kind="compile"))
    assert queue.next("grade") == tasks[2]
    assert queue.next("compile") is None


def test_compilers_leave_the_cores_to_those_that_grade() -> None:
    def kinds(jobs: int) -> list[int]:
        found = [lane.kind for lane in lanes("gpu", jobs)]
        return [found.count("grade"), found.count("compile")]

    assert kinds(16) == [2, 8]
    assert kinds(2) == [2, 1]


def test_workers_have_the_environment_of_the_moment(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the process which they are forked from."""
    warm_up()
    monkeypatch.setenv("CUDA_HOME", str(place / "none"))
    (report,) = grading(place, {"a": STARTER})
    assert report.verdict is Verdict.IE and "CUDA_HOME" in str(report.message), report


def the_worker() -> BaseProcess:
    (worker,) = multiprocessing.active_children()
    return worker


@pytest.mark.sampled
def test_a_worker_that_dies_at_work_costs_one_submission(place: Path) -> None:
    reports = grading(place, {"a": STARTER, "b": HANG, "c": STARTER})
    found = [next(reports)]
    # The hanging kernel has two seconds, of which one has passed by then.
    killer = threading.Timer(1.0, the_worker().kill)
    killer.start()
    found += reports
    killer.join()
    assert [report.verdict for report in found] == [Verdict.AC, Verdict.IE, Verdict.AC]
    assert "signal 9" in str(found[1].message)


def test_a_worker_that_dies_at_rest_costs_nothing(place: Path) -> None:
    reports = grading(place, dict.fromkeys("abc", STARTER))
    found = [next(reports)]
    victim = the_worker()
    victim.kill()
    victim.join()
    found += reports
    assert [report.verdict for report in found] == [Verdict.AC] * 3


def test_the_process_that_they_are_forked_from_dies(place: Path) -> None:
    """The worker at hand goes on; when it dies too, another process forks the next."""
    reports = grading(place, dict.fromkeys("abc", STARTER))
    found = [next(reports)]
    worker = the_worker()
    status = Path(f"/proc/{worker.pid}/status").read_text()
    (parent,) = re.findall(r"^PPid:\s*(\d+)$", status, re.MULTILINE)
    os.kill(int(parent), signal.SIGKILL)
    found.append(next(reports))
    worker.kill()
    found += reports
    assert [report.verdict for report in found[:2]] == [Verdict.AC] * 2
    assert found[2].verdict in (Verdict.AC, Verdict.IE)  # it may have had its task already


def the_server() -> int:
    """The process that workers are forked from."""
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # ended meanwhile
            ours = f"\nPPid:\t{os.getpid()}\n" in path.read_text()
            if ours and b"multiprocessing.forkserver" in (path.parent / "cmdline").read_bytes():
                return int(path.parent.name)
    raise AssertionError("there is none")


@pytest.mark.sampled
def test_the_process_that_they_are_forked_from_dies_as_it_forks(place: Path) -> None:
    warm_up()
    server = the_server()
    os.kill(server, signal.SIGSTOP)
    killer = threading.Timer(1.0, os.kill, (server, signal.SIGKILL))
    killer.start()
    (report,) = grading(place, {"a": STARTER})
    killer.join()
    assert report.verdict is Verdict.AC


def test_it_dies_again_and_again(place: Path) -> None:
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.01):
            with suppress(AssertionError, ProcessLookupError):
                os.kill(the_server(), signal.SIGKILL)

    warm_up()
    os.kill(the_server(), signal.SIGKILL)  # one that has long begun forks at once
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(MachineError, match="killed 4 times"):
            list(grading(place, {"a": STARTER}))
    finally:
        ended.set()
        killer.join()


# --- the command ------------------------------------------------------------------------------


@pytest.mark.sampled
def test_a_class(place: Path) -> None:
    class_of(place / "c", {"alice": STARTER, "bob": WRONG, "hang": HANG, "empty": " "})
    (place / "c" / "carl.cu").write_text(STARTER)
    options = ("c", "--lab", "lab.yaml")
    done = run(*options, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "graded now: 5 (2 AC, 1 RE, 1 TLE" in done.stdout
    for words in ("5/5", "bob: RE", "hang: TLE", "empty: FE"):
        assert words in done.stderr, done.stderr
    before = results(place / "results")
    done = run(*options, cwd=place)
    assert "4 of 5 are already graded" in done.stderr
    assert results(place / "results")["bob"] == before["bob"]
    done = run(*options, "--force", "--only", "a*", "--only", "bob", "--jobs", "1", cwd=place)
    assert "graded now: 2" in done.stdout
    (place / "c" / "bob" / "sgemm.cu").write_text(STARTER)
    assert "graded now: 1 (1 AC)" in run(*options, "--only", "bob", cwd=place).stdout
    (place / "lab.yaml").write_text(LAB + "# another version\n")
    assert "graded now: 5" in run(*options, cwd=place).stdout


def test_a_group_that_is_called_like_a_module_and_a_long_tmpdir(place: Path) -> None:
    """Its files are no part of Python, not even where the command is called among them."""
    groups = class_of(place / "c", dict.fromkeys(("signal", "msgspec"), STARTER))
    for group in groups.iterdir():
        code = f"open({str(place / 'pwned')!r}, 'w').write(__name__)"
        (group / "__init__.py").write_text(code)
    # A folder whose path leaves no room for the name of a socket.
    temporary = place / ("long" * 25)
    temporary.mkdir()
    # As an installed command starts: `python -m` would itself look in this folder.
    program = "import sys; sys.path.remove(''); from grader.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", program, *command(".", "--lab", "../lab.yaml")[3:]]
    done = commands.run(words, groups, TMPDIR=str(temporary))
    assert not (place / "pwned").exists()
    assert done.returncode == 0, done.stderr
    assert "graded now: 2 (2 AC)" in done.stdout


@pytest.mark.sampled
def test_what_is_stored_counts_for_its_whole_source_and_undamaged(place: Path) -> None:
    """Who looks for it finds two sources whose hashes begin alike, then a damaged document."""
    class_of(place / "c", {"submission_1": STARTER})
    (place / "c" / "submission_metadata.yml").write_text(f"{EXPORT}2026-01-30 12:00:00 -08:00\n")
    options = ("c", "--lab", "lab.yaml", "--no-report")
    assert run(*options, cwd=place).returncode == 0
    (document,) = store.stored(place / "results")
    result = store.load(document)
    assert result.submission.student == "7"
    assert result.submission.submitted == ("2026-01-30T12:00:00-08:00",)
    alike = result.submission.sha256[:12] + "0" * 52
    submission = msgspec.structs.replace(result.submission, sha256=alike)
    store.write_document(document, msgspec.structs.replace(result, submission=submission))
    assert "graded now: 1 (1 AC)" in run(*options, cwd=place).stdout
    assert store.load(document).submission.sha256 == result.submission.sha256
    document.write_text("{")
    done = run(*options, cwd=place)
    assert "not a result document" in done.stderr and "graded now: 1 (1 AC)" in done.stdout
    assert document.with_name(f"{document.name}.damaged").read_text() == "{"
    assert store.load(document).verdict is Verdict.AC


def test_the_same_source_handed_in_again_is_another_hand_in(place: Path) -> None:
    """Right, wrong, right again: of the export's student another time is noted, of the folder
    without times it is graded again."""
    for day, text in enumerate((STARTER, WRONG, STARTER), 1):
        class_of(place / "c", {"submission_1": text, "bea": text})
        created = f"2026-01-0{day} 12:00:00 -08:00\n"
        (place / "c" / "submission_metadata.yml").write_text(EXPORT + created)
        done = run("c", "--lab", "lab.yaml", "--no-report", cwd=place)
        assert done.returncode == 0, done.stderr
    assert "1 of 2 are already graded" in done.stderr and "bea: AC" in done.stderr
    stored = read_index(place / "results").of("7")
    right, wrong = sorted(stored, key=lambda each: each.entry.verdict)
    assert right.entry.submission.submitted == tuple(
        f"2026-01-0{day}T12:00:00-08:00" for day in (1, 3)
    )
    assert wrong.entry.submission.submitted == ("2026-01-02T12:00:00-08:00",)
    before = right.path.read_bytes()
    assert "2 of 2" in run("c", "--lab", "lab.yaml", cwd=place).stderr
    assert right.path.read_bytes() == before  # each time once
    (place / "lab.yaml").write_text(LAB + "# another version\n")
    assert run("c", "--lab", "lab.yaml", "--no-report", cwd=place).returncode == 0
    regraded = store.load(right.path).submission
    assert regraded.submitted == right.entry.submission.submitted
    (board,) = make_boards(read_entries(place / "results")[0], "latest")
    ranked = {row.student: (row.verdict, len(row.history)) for row in board.rows}
    assert ranked == {"7": (Verdict.AC, 3), "bea": (Verdict.AC, 2)}


def test_results_of_one_second_are_in_the_order_of_their_files(place: Path) -> None:
    for text in (STARTER, WRONG):
        class_of(place / "c", {"bea": text})
        assert run("c", "--lab", "lab.yaml", "--no-report", cwd=place).returncode == 0
    stored = read_index(place / "results").of("bea")
    for path, entry in sorted(stored, key=lambda each: each.entry.verdict):  # AC first
        path.write_text(path.read_text().replace(entry.created, "2026-01-01T00:00:00+00:00"))
    assert "1 of 1 are already" in run("c", "--lab", "lab.yaml", cwd=place).stderr
    class_of(place / "c", {"bea": STARTER})
    assert "bea: AC" in run("c", "--lab", "lab.yaml", "--no-report", cwd=place).stderr


def test_wrong_usage(place: Path) -> None:
    class_of(place / "c", {"alice": STARTER})
    done = run("c", "--only", "bob", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no submission of this name" in done.stderr
    assert run("c", "--jobs", "0", cwd=place).returncode == 2
    assert run("none", cwd=place).returncode == 2


def test_a_fault_of_the_machine_ends_in_3(place: Path) -> None:
    class_of(place / "c", {"alice": STARTER, "bob": WRONG})
    (place / "results" / "quick").mkdir(parents=True)
    (place / "results" / "quick" / "bob").write_text("in the way")
    done = run("c", "--lab", "lab.yaml", cwd=place)
    assert done.returncode == 3
    assert "alice: AC" in done.stderr
    assert "the grader failed for bob" in done.stderr


@pytest.mark.sampled
@pytest.mark.parametrize("students", [8, pytest.param(24, marks=pytest.mark.nightly)])
def test_killed_and_resumed_it_ends_like_an_undisturbed_run(students: int, place: Path) -> None:
    kernels = (STARTER, WRONG, "int x = ;", STARTER)
    texts = {f"s{i:02d}": kernels[i % 4] for i in range(students)}
    class_of(place / "c", texts)
    options = ("c", "--lab", "lab.yaml", "--jobs", "2")
    started = time.monotonic()
    assert run(*options, "--out", "whole", cwd=place).returncode == 0
    seconds = time.monotonic() - started
    (place / "tmp").mkdir()
    working = Processes(place)
    rng = random.Random(5)
    kept: dict[Path, tuple[int, int]] = {}
    for kill in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            command(*options, "--out", "cut"),
            cwd=place,
            env=environment(TMPDIR=str(place / "tmp")),  # by which its processes are known
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.15, 0.4) * seconds)
        process.send_signal(kill)
        status = process.wait(timeout=20)
        assert status in (0, -kill, 130)
        for path in store.stored(place / "cut"):
            if path in kept:  # nothing finished is done again
                assert (path.stat().st_ino, path.stat().st_mtime_ns) == kept[path]
            kept[path] = (path.stat().st_ino, path.stat().st_mtime_ns)
        # A worker whose parent was killed finishes what it has.
        until(lambda: not working.look(), seconds=60)
    done = run(*options, "--out", "cut", cwd=place)
    assert done.returncode == 0, done.stderr
    whole, cut = results(place / "whole"), results(place / "cut")
    assert set(whole) == set(texts)
    assert {name: essence(result) for name, result in cut.items()} == {
        name: essence(result) for name, result in whole.items()
    }
    assert not list((place / "cut").rglob("*.tmp"))


@pytest.mark.slow
def test_several_labs_and_a_changed_one_in_one_folder_of_results(tmp_path: Path) -> None:
    """Real gradings: two labs, one of them graded again after a change; boards, marks, regrade."""
    sizes = "correctness: [[8, 8, 8]]\nperformance: [{mnk: [8, 8, 8]}]\n"
    one = "id: one\nlayout: {A: row, B: col, C: col}\n" + sizes
    (tmp_path / "one.yaml").write_text(one + "cpu: [[8, 8, 8]]\n")
    (tmp_path / "changed.yaml").write_text(one + "cpu: [[8, 8, 8], [9, 7, 5]]\n")
    (tmp_path / "sum.yaml").write_text(
        "id: sum\nproblem: reduction\nmultiple_of: 1\ncorrectness: [8]\n"
        "performance: [{n: 8}]\ncpu: [8, 33]\n"
    )
    even = STARTER.replace("if (i >= m", "if (m % 2 || i >= m")  # right for even sizes
    reduction = ROOT / "starters" / "reduction" / "reduction.cu"
    for student in class_of(tmp_path / "class", {"ann": STARTER, "bob": even}).iterdir():
        shutil.copy(reduction, student)
    for lab in ("one", "sum", "changed"):
        done = run("class", "--no-report", "--lab", f"{lab}.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "graded now: 2" in done.stdout and "already graded" not in done.stderr
    done = run("class", "--no-report", "--lab", "sum.yaml", cwd=tmp_path)
    assert "2 of 2 are already graded" in done.stderr and "graded now: 0" in done.stdout
    entries, complaints = read_entries(tmp_path / "results")
    assert complaints == []
    boards = {board.lab: board for board in make_boards(entries)}
    assert {lab: len(board.rows) for lab, board in boards.items()} == {"one": 2, "sum": 2}
    changed = grade("course", "regrade", "--lab", "one", "--csv", "-", cwd=tmp_path)
    (row,) = rows_of(changed.stdout)
    assert row["student"] == "bob" and "verdict AC → WA at 9×7×5, a size" in row["reasons"]
    by_name = ("--before", "one.yaml", "--after", "changed.yaml", "--csv", "-")
    assert grade("course", "regrade", "--lab", "one", *by_name, cwd=tmp_path).stdout == (
        changed.stdout
    )
    several = grade("course", "regrade", cwd=tmp_path)
    assert several.returncode == 2 and "several labs (one, sum); choose one" in several.stderr
    made = grade("course", "rubric", "--lab", "sum.yaml", "--to", "made", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        *("ann.html", "bob.html", "marks.csv")
    }
