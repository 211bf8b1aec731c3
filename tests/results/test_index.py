"""The index of results says what the documents say: whatever happens to them, or to it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import grader
from grader.model import Verdict
from grader.results import index, store
from grader.results.index import read_index
from tests.support.boards import keep
from tests.support.places import ROOT


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents count as settled at once, as after two seconds."""
    monkeypatch.setattr(index, "_COARSE_NS", -(10**12))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the documents that were read."""
    found: list[str] = []
    real = index.read_entry

    def counted(path: Path) -> index.Entry:
        found.append(path.name)
        return real(path)

    monkeypatch.setattr(index, "read_entry", counted)
    return found


def truth(out: Path) -> tuple[list[index.Entry], list[str]]:
    """What a reader without an index finds."""
    found = index._read(out, None)
    return [each.entry for each in found.documents], list(found.complaints)


def file_of(out: Path) -> Path:
    return out / f".index-{os.getuid()}"


def scores(out: Path) -> dict[str, float]:
    entries, complaints = index.read_entries(out)
    assert complaints == []
    return {entry.submission.student: entry.points for entry in entries}


def edited(path: Path, old: bytes, new: bytes) -> None:
    """In place, of the same size, with the same time of its content."""
    state = path.stat()
    content = path.read_bytes()
    assert content.count(old) == 1 and len(old) == len(new)
    with path.open("r+b") as file:
        file.write(content.replace(old, new))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.usefixtures("old")
def test_only_what_changed_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    for student in "abc":
        keep(tmp_path, student, 80)
    assert scores(tmp_path) == {"a": 80, "b": 80, "c": 80} and len(reads) == 3
    written = file_of(tmp_path).stat()
    assert scores(tmp_path) == {"a": 80, "b": 80, "c": 80} and len(reads) == 3
    assert file_of(tmp_path).stat().st_ino == written.st_ino  # nothing to write
    assert written.st_mode & 0o077 == 0
    keep(tmp_path, "b", 90)
    assert scores(tmp_path) == {"a": 80, "b": 90, "c": 80} and len(reads) == 4
    shutil.rmtree(tmp_path / "sgemm" / "a")
    assert scores(tmp_path) == {"b": 90, "c": 80} and len(reads) == 4
    file_of(tmp_path).unlink()
    assert scores(tmp_path) == {"b": 90, "c": 80} and len(reads) == 6


def test_a_young_document_is_read_again(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one tick of the clock a second change might leave the same times."""
    keep(tmp_path, "a", 80)
    monkeypatch.setattr(index, "_COARSE_NS", 10**14)  # a day: the test may be slow
    for count in (1, 2):
        assert scores(tmp_path) == {"a": 80} and len(reads) == count
    monkeypatch.setattr(index, "_COARSE_NS", -(10**12))
    for _ in range(2):
        assert scores(tmp_path) == {"a": 80} and len(reads) == 3


@pytest.mark.usefixtures("old")
def test_changes_that_hide_their_time_show(tmp_path: Path) -> None:
    first = store.result_path(tmp_path, keep(tmp_path, "a", 11))
    other = store.result_path(tmp_path, keep(tmp_path, "b", 22))
    assert scores(tmp_path) == {"a": 11, "b": 22}
    time.sleep(0.05)  # beyond one tick of the clock
    edited(first, b'"total": 11', b'"total": 99')
    assert scores(tmp_path) == {"a": 99, "b": 22}
    time.sleep(0.05)
    aside = tmp_path / "aside"  # two documents change places
    first.rename(aside)
    other.rename(first)
    aside.rename(other)
    assert [each.path for each in read_index(tmp_path).of("a")] == [other]


@pytest.mark.usefixtures("old")
def test_an_index_in_doubt_is_made_again(tmp_path: Path, reads: list[str]) -> None:
    keep(tmp_path, "a", 80)
    expected = scores(tmp_path)
    path = file_of(tmp_path)
    good = path.read_bytes()
    bad = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(0, len(good), 29)]
    bad += [b"", good[:20], good[:-1], good + b"\0", b"\0" * len(good)]
    for content in bad:
        path.write_bytes(content)
        reads.clear()
        assert scores(tmp_path) == expected and len(reads) == 1
        assert path.read_bytes() == good
    reads.clear()
    assert scores(tmp_path) == expected and not reads


@pytest.mark.usefixtures("old")
def test_another_key_or_another_grader_made_it(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    keep(out, "a", 80)
    scores(out)
    monkeypatch.setenv("SGEMM_GRADER_CACHE", str(tmp_path / "theirs"))
    assert scores(out) == {"a": 80} and len(reads) == 2
    monkeypatch.setattr(grader, "__version__", "99")
    assert scores(out) == {"a": 80} and len(reads) == 3
    monkeypatch.setenv("SGEMM_GRADER_CACHE", "/proc/none")  # no place for a key
    assert scores(out) == {"a": 80} and len(reads) == 4


@pytest.mark.usefixtures("old")
def test_whatever_stands_in_its_place_does_no_harm(tmp_path: Path) -> None:
    out = tmp_path / "results"
    keep(out, "a", 80)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = file_of(out)
    path.symlink_to(victim)
    assert scores(out) == {"a": 80} and victim.read_text() == "precious"
    path.unlink()
    os.mkfifo(path)
    assert scores(out) == {"a": 80}
    path.unlink()
    path.mkdir()
    assert scores(out) == {"a": 80}
    strange = out / "sgemm" / os.fsdecode(b"\xff")
    shutil.copytree(out / "sgemm" / "a", strange)
    assert len(read_index(out).documents) == 2
    assert {each.name for each in out.iterdir()} == {"sgemm", path.name}


@pytest.mark.usefixtures("old")
def test_bad_files_are_named_every_time(tmp_path: Path) -> None:
    path = store.result_path(tmp_path, keep(tmp_path, "a", 80))
    (path.parent / "cut.json").write_bytes(path.read_bytes()[:-9])
    for _ in range(2):
        entries, (complaint,) = index.read_entries(tmp_path)
        assert len(entries) == 1 and "cut.json: not a result document" in complaint


def test_results_of_one_student_in_order(tmp_path: Path) -> None:
    for attempt in (2, 0, 1):
        keep(tmp_path, "a", 10 * attempt, attempt=attempt)
    keep(tmp_path, "b", 50)
    found = read_index(tmp_path).of("a", "sgemm")
    assert [each.entry.points for each in found] == [0, 10, 20]
    assert store.load(found[2].path).score == found[2].entry.score
    assert read_index(tmp_path).of("a", "sums") == ()


@pytest.mark.parametrize("seed", range(3))
def test_after_anything_it_says_what_the_documents_say(tmp_path: Path, seed: int) -> None:
    """Writes, edits in place, renames, removals and damage in any order, as fast as they come."""
    dice = random.Random(seed)
    for step in range(60):
        paths = [path for path in store.stored(tmp_path) if path.is_file()]
        path = dice.choice(paths) if paths else None
        match dice.randrange(7):
            case 1 if path:
                path.unlink()
            case 2 if path:
                path.rename(path.with_name(f"{step:012x}-gpu.json"))
            case 3 if path:
                state = path.stat()
                path.write_bytes(path.read_bytes().replace(b'"AC"', b'"WA"'))
                os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
            case 4 if path:
                path.write_bytes(path.read_bytes()[:-1])
            case 5 if path:
                shutil.copy2(path, path.with_name(f"{step:012x}-gpu.json"))
            case _:
                right = dice.random() < 0.5
                verdict = Verdict.AC if right else Verdict.WA
                keep(tmp_path, dice.choice("abc"), dice.randrange(10, 99), verdict=verdict)
        assert index.read_entries(tmp_path) == truth(tmp_path)


_GRADER = """
import sys
from pathlib import Path
from grader.results.index import read_entries
from tests.support.boards import keep
out, student = Path(sys.argv[1]), sys.argv[2]
for attempt in range(25):
    keep(out, student, 50 + attempt, attempt=attempt)
    entries, complaints = read_entries(out)
    mine = [entry.points for entry in entries if entry.submission.student == student]
    assert sorted(mine) == [50 + i for i in range(attempt + 1)], mine
    assert not complaints, complaints
"""


def test_graders_at_the_same_time(tmp_path: Path) -> None:
    """Each finds all that it stored, and no half-written file, whoever writes the index."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _GRADER, str(tmp_path), student],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
        )
        for student in "abc"
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint.decode()
    entries, _ = index.read_entries(tmp_path)
    assert (entries, []) == truth(tmp_path) and len(entries) == 75
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []
