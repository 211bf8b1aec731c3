"""Documents come back as they were written, never half-written, never outside their folder; many of
them at once are read while others write."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.base.records import Verdict
from grader.results import store
from grader.results.entries import read_entries, read_index
from grader.results.store import StoreError
from tests.support.boards import keep
from tests.support.commands import environment
from tests.support.files import beside, values
from tests.support.places import ROOT
from tests.support.results import RACE, SHA, WRONG, make_result


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    result = make_result(cases=(WRONG,), findings=(RACE,), verdict=Verdict.WA)
    path = store.save(tmp_path, result)
    assert path == tmp_path / "sgemm" / "alice" / f"{SHA[:12]}-cpu.json"
    assert store.load(path) == result
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o444 == 0o444 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_document_holds_every_key(tmp_path: Path) -> None:
    document = json.loads(store.save(tmp_path, make_result(build=None, cases=())).read_bytes())
    assert list(document) == [
        *("schema", "version", "created", "lab", "problem", "submission", "environment"),
        *("build", "cases", "findings", "lines", "verdict", "score", "error", "standing"),
        *("launches", "explanation", "groups", "by_model"),
    ]
    assert document["build"] is None
    assert document["environment"]["gpu"] is None
    assert json.loads(store.encode(make_result(build=None, cases=()))) == document


def test_a_second_grading_replaces_the_first(tmp_path: Path) -> None:
    store.save(tmp_path, make_result())
    path = store.save(tmp_path, make_result(verdict=Verdict.WA))
    assert store.load(path).verdict is Verdict.WA
    assert len(list(path.parent.iterdir())) == 1


def test_nothing_is_left_when_writing_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.save(tmp_path, make_result())
    before = path.read_bytes()

    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.save(tmp_path, make_result(verdict=Verdict.WA))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "/etc", "Davis, Jr.", "张三", "x" * 300, "\udcff", "%2E", " a"]
)
def test_odd_names_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    folder = store.folder_name(name)
    assert "/" not in folder and folder not in ("", ".", "..") and not folder.startswith(".")
    (tmp_path / folder).mkdir()
    assert (tmp_path / folder).resolve().parent == tmp_path.resolve()


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_names_never_share_a_folder(one: str, other: str) -> None:
    assert (store.folder_name(one) == store.folder_name(other)) == (one == other)
    assert len(store.folder_name(one).encode()) <= 255
    assert "/" not in store.folder_name(one) and "\0" not in store.folder_name(one)


def test_ordinary_names_stay_readable() -> None:
    for name in ("alice", "s12345678", "zhang_san-2", "jean.dupont@uni", "李雷"):
        assert store.folder_name(name) == name


def damaged(tmp_path: Path, **changes: object) -> Path:
    document = json.loads(store.encode(make_result()))
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**document, **changes}))
    return path


@pytest.mark.parametrize(("changes", "words"), values(__file__, "wrong_documents.txt"))
def test_what_is_wrong_is_named(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"x\.json: " + words):
        store.load(damaged(tmp_path, **changes))


def test_a_broken_or_missing_file_is_named(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(store.encode(make_result())[:-50])
    with pytest.raises(StoreError, match=r"cut\.json: not a result document"):
        store.load(cut)
    with pytest.raises(StoreError, match=r"none\.json: cannot be read: No such file"):
        store.load(tmp_path / "none.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StoreError, match=r"cannot be written: .*--out"):
        store.save(tmp_path / "results", make_result())
    with pytest.raises(StoreError, match="a folder; name a file in it"):
        store.write(tmp_path, b"")
    with pytest.raises(StoreError, match=r"cannot be written: .*--out"):
        store.check_folder(tmp_path / "results" / "deeper")
    store.check_folder(tmp_path / "new" / "deeper")
    assert [file.name for file in tmp_path.iterdir()] == ["results"]


# --- many documents -------------------------------------------------------------------------------


def test_results_of_one_student_in_order(tmp_path: Path) -> None:
    for attempt in (2, 0, 1):
        keep(tmp_path, "a", 10 * attempt, attempt=attempt)
    keep(tmp_path, "b", 50)
    found = read_index(tmp_path).of("a", "sgemm")
    assert [each.entry.points for each in found] == [0, 10, 20]
    assert store.load(found[2].path).score == found[2].entry.score
    assert read_index(tmp_path).of("a", "sums") == ()


_GRADER = beside(__file__, "grader.py.in")


def test_graders_at_the_same_time(tmp_path: Path) -> None:
    """Each finds all that it stored, and no half-written file."""
    words = (sys.executable, "-c", _GRADER, str(tmp_path))
    processes = [
        subprocess.Popen([*words, each], cwd=ROOT, env=environment(), stderr=subprocess.PIPE)
        for each in "abc"
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint.decode()
    entries, complaints = read_entries(tmp_path)
    assert (len(entries), complaints) == (75, [])
