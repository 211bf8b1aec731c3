"""Odd files, names, variables and settings: one clear line each, and the others are graded."""

import csv
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import MachineError, ToolchainError, UsageError, one_line
from grader.base.native import CACHE_VARIABLE, cache_folder
from grader.base.records import Verdict
from grader.course import board_rendering as render
from grader.course.leaderboard import make_boards
from grader.course.roster import read_roster
from grader.judge.pipeline import slurm_job
from grader.labs.submission import NotAFileError, read
from grader.report.formatting import clean
from grader.results import store
from grader.results.entries import read_entries
from grader.results.result import Result
from grader.results.store import StoreError
from grader.run.gpu.locks import lock_folder, locked
from ptxsim import engine_digest
from tests.support.commands import ALICE, STARTER, grade, run
from tests.support.commands import one_line as says
from tests.support.files import bind, grow, values
from tests.support.results import make_result

NAMES = (
    *('O\'Neil, "Bo"', "a\nb\x1b[2J", "=1+1", "Jos\u00e9", "Jose\u0301"),
    *("-x", "\u202ereb", "a\tb", "@me"),
)


CLASS = ("--lab", "lab.yaml", "--device", "cpu")
NOT_PRIVATE = "not a private folder of yours"


def results(out: Path) -> dict[str, Result]:
    return {result.submission.student: result for result in map(store.load, store.stored(out))}


# --- a class that holds anything --------------------------------------------------------------


def test_whatever_lies_in_a_class_ends_nobody_elses_grading(place: Path) -> None:
    folder = place / "submissions"
    for name in ("pipe", "huge", "linked", "deep", "ended"):
        (folder / name).mkdir()
    os.mkfifo(folder / "pipe" / "sgemm.cu")
    grow(folder / "huge" / "sgemm.cu", 3 << 30)
    (folder / "linked" / "sgemm.cu").symlink_to("../alice/sgemm.cu")
    (folder / "deep").joinpath(*"abcdefghijkl").mkdir(parents=True)
    (folder / "mallory").symlink_to("alice")
    os.mkfifo(folder / "carol.cu")
    grow(folder / "dave.cu", 3 << 30)
    (folder / "erin.cu").symlink_to("alice/sgemm.cu")
    bind(folder / "frank.cu")
    os.mkfifo(folder / "notes")
    bind(folder / "agent")
    (folder / "ended.cu").write_text(STARTER)
    (folder / os.fsdecode(b"\xff")).mkdir()
    done = run(grade("class", "submissions", *CLASS), place)
    # With status 2, for what belongs to nobody.
    says(done, 2, "skipped: submissions/ended and submissions/ended.cu are both of ended")
    says(done, 2, "skipped: submissions/\\udcff: the name is not UTF-8")
    found = results(place / "results")
    errors = {name: result.error and str(result.error) for name, result in found.items()}
    assert errors == dict(values(__file__, "odd_class.txt"))
    assert found["alice"].verdict is Verdict.AC
    assert all(r.verdict is Verdict.FE for name, r in found.items() if name != "alice")
    for path in store.stored(place / "results"):
        assert "__global__" not in path.with_suffix(".html").read_text() or "alice" in str(path)


def test_an_export_with_a_pipe_and_gigabytes_in_it(place: Path) -> None:
    folder = place / "export"
    shutil.copytree(place / "submissions" / "alice", folder / "submission_1")
    shutil.copytree(place / "submissions" / "alice", folder / "submission_2")
    os.mkfifo(folder / "submission_2" / "pipe")
    grow(folder / "submission_2" / "core", 3 << 30)
    (folder / "submission_metadata.yml").write_text(
        "submission_1:\n  :submitters:\n  - :sid: '7'\n"
        'submission_2:\n  :submitters:\n  - :sid: "a\\nb: AC\\u202e"\n'
    )
    done = run(grade("class", "export", *CLASS), place)
    assert done.returncode == 0, done.stderr
    assert {name: r.verdict for name, r in results(place / "results").items()} == {
        "7": Verdict.AC,
        "a\nb: AC\u202e": Verdict.AC,
    }
    assert "a\\nb: AC\\u202e: AC" in done.stderr
    assert not any(line.startswith("b: AC") for line in done.stderr.splitlines())


def test_one_bad_path_among_others(place: Path) -> None:
    bad = ["none", "lab.yaml", "x" * 300, "lab.yaml/in", os.fsdecode(b"\xff"), "loop"]
    (place / "loop").symlink_to("loop")
    done = run(grade(*bad, "submissions/alice", *CLASS), place)
    for words in (
        *("none: no such folder", "lab.yaml: not a folder", "File name too long"),
        *("not UTF-8; rename it", "loop: a link; name the folder"),
    ):
        says(done, 2, words)
    assert results(place / "results")["alice"].verdict is Verdict.AC


# --- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "a named pipe, not a plain file"),
        (bind, "a socket, not a plain file"),
        (Path.mkdir, "a folder, not a plain file"),
        (lambda path: path.symlink_to("/etc/passwd"), "a link, not a plain file"),
        (lambda path: grow(path, 3 << 30), "larger than 64 MiB"),
        (lambda path: path.write_bytes(b'{"schema": "\xff"}'), "not a result document"),
    ],
)
def test_odd_results_are_named_and_the_others_ranked(
    make: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    store.save(tmp_path, make_result())
    (tmp_path / "sgemm" / "a\nb").mkdir()
    make(tmp_path / "sgemm" / "a\nb" / "x.json")
    entries, (complaint,) = read_entries(tmp_path)
    assert len(entries) == 1
    assert words in str(complaint)
    assert "a\\nb/x.json" in str(complaint)
    assert str(complaint).isprintable()
    with pytest.raises(StoreError, match=r"x\.json"):
        store.load(tmp_path / "sgemm" / "a\nb" / "x.json")


# --- names ------------------------------------------------------------------------------------


def test_names_are_matched_as_the_roster_writes_them_and_shown_escaped(tmp_path: Path) -> None:
    with (tmp_path / "roster.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "name"])
        writer.writerows((name, f"={name}") for name in NAMES)
    base = make_result()
    for name in NAMES:
        who = msgspec.structs.replace(base.submission, student=name)
        store.save(tmp_path / "results", msgspec.structs.replace(base, submission=who))
    assert len(results(tmp_path / "results")) == len(NAMES)
    roster = read_roster(tmp_path / "roster.csv")
    entries, complaints = read_entries(tmp_path / "results")
    assert not complaints
    boards = make_boards(entries, roster=roster)
    rows = [row for row in boards[0].rows if row.kind != "cublas"]
    assert {row.student for row in rows} == set(NAMES)
    assert all(row.kind == "student" for row in rows)
    done = run(grade("leaderboard", "--roster", "roster.csv"), tmp_path)
    assert done.returncode == 0, done.stderr
    page = render.html(boards, roster)
    for text in (done.stdout, page):
        assert "a\\nb\\x1b[2J" in text
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
    table = list(csv.DictReader(io.StringIO(render.table_csv(boards, roster), newline="")))
    assert {"'=1+1", "'-x", "'@me", "a\nb\x1b[2J", "Jose\u0301"} <= {
        row["student"] for row in table
    }
    assert not any(row["name"].startswith("=") for row in table)


def test_what_could_steer_a_terminal_is_replaced() -> None:
    for char in "\x07\x1b\x9b\u061c\u200e\u200f\u2028\u2029\u202e\u2066":
        assert char not in clean(f"a{char}b")
        assert one_line(f"a{char}b").isprintable()
    assert one_line(os.fsdecode(b"\xff")) == "\\udcff"


@pytest.mark.parametrize(("content", "words"), values(__file__, "rosters.txt"))
def test_rosters_of_other_programs(content: bytes, words: str | None, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    if words is None:
        assert len(read_roster(path)) == 1
    else:
        with pytest.raises(UsageError, match=words) as caught:
            read_roster(path)
        assert str(caught.value).isprintable()


# --- the environment ----------------------------------------------------------------------------


def test_a_count_of_restarts_that_is_none(place: Path) -> None:
    done = run(ALICE, place, SLURM_JOB_ID="7", SLURM_RESTART_COUNT="abc")
    says(done, 3, "SLURM_RESTART_COUNT=abc: not a number; unset it")
    assert not results(place / "results")


def test_variables_of_any_bytes(place: Path) -> None:
    odd = os.fsdecode(b"a\xffb\n")
    named = {"SLURM_JOB_ID": odd, "SLURMD_NODENAME": odd, "SLURM_RESTART_COUNT": "2"}
    done = run([*ALICE, "--json"], place, **named)
    assert done.returncode == 0, done.stderr
    environment = results(place / "results")["alice"].environment
    slurm = environment.slurm
    assert slurm
    assert environment.engine == engine_digest()
    assert (slurm.job, slurm.node, slurm.restarts) == ("a\\udcffb\\n", "a\\udcffb\\n", 2)


def test_outside_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "abc")
    assert slurm_job() is None


@pytest.mark.sampled
@pytest.mark.parametrize("more", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "x"}])
def test_a_terminal_that_knows_ascii_only(more: dict[str, str], place: Path) -> None:
    (place / "submissions" / "alice").rename(place / "submissions" / "Zoë")
    done = run([*ALICE[:3], "submissions/Zoë", *ALICE[4:], "--json"], place, **more)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    document = msgspec.json.decode(done.stdout, type=Result)
    assert document.submission.student == "Zoë"
    done = run(grade("export", "csv"), place, **more)
    assert done.returncode == 0, done.stderr
    assert "Zoë" in done.stdout


# --- locks and caches ---------------------------------------------------------------------------


def test_a_lock_never_touches_what_lies_there(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "link").symlink_to(precious)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(MachineError, match=f"{name}: .*remove it"), locked(tmp_path / name):
            pass
    with locked(precious):
        assert precious.read_text() == "mine"
    with locked(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_locks_of_the_machine_lie_in_a_private_folder(private: None, tmp_path: Path) -> None:
    folder = lock_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert lock_folder() == folder
    folder.chmod(0o777)
    with pytest.raises(MachineError, match=NOT_PRIVATE):
        lock_folder()
    folder.rmdir()
    (tmp_path / "other").mkdir(mode=0o700)
    folder.symlink_to("other")
    with pytest.raises(MachineError, match=NOT_PRIVATE):
        lock_folder()


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a folder for temporary files of the test's own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_cache_that_others_can_write_to(private: None, tmp_path: Path) -> None:
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(ToolchainError, match="it can be written by all"):
        cache_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_or_a_lock_folder_of_somebody_else(private: None) -> None:
    os.chown(cache_folder(), 12345, 12345)
    with pytest.raises(ToolchainError, match="it is another user's"):
        cache_folder()
    os.chown(lock_folder(), 12345, 12345)
    with pytest.raises(MachineError, match=NOT_PRIVATE):
        lock_folder()


# --- reading ------------------------------------------------------------------------------------


def test_devices_are_never_read() -> None:
    with pytest.raises(NotAFileError, match="a device"):
        read(Path("/dev/zero"))


def test_a_pipe_beside_the_results_is_no_key(tmp_path: Path) -> None:
    store.save(tmp_path / "results", make_result())
    os.mkfifo(tmp_path / "results" / ".pseudonym-key")
    done = run(grade("leaderboard", "--pseudonyms"), tmp_path)
    says(done, 3, "cannot be used as the key: a named pipe")
