"""What a submission folder may hold, and what is said when it does not."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.errors import Rejected, SubmissionError
from grader.model import Verdict
from grader.submission.folder import (
    copy_sources,
    load_listed,
    load_submission,
    source_texts,
    student_of,
)
from tests.support.files import bind, grow
from tests.support.product import MAIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ada"
    path.mkdir()
    (path / "sgemm.cu").write_text("// kernel\n")
    return path


def refused(folder: Path, words: str) -> None:
    with pytest.raises(Rejected, match=words) as caught:
        load_submission(folder, MAIN)
    assert caught.value.verdict is Verdict.FE
    assert "\n" not in str(caught.value)


def test_sources_only_sorted_and_hashed(folder: Path) -> None:
    (folder / "tile").mkdir()
    for name in ("tile/load.cuh", "a.h", "notes.txt", ".hidden.h", "old.o"):
        (folder / name).write_text(name)
    submission = load_submission(folder, MAIN)
    assert submission.student == "ada"
    assert [file.name for file in submission.files] == ["a.h", "sgemm.cu", "tile/load.cuh"]
    assert submission.files[0].size == 3
    before = submission.sha256
    (folder / "notes.txt").write_text("other")
    assert load_submission(folder, MAIN).sha256 == before
    (folder / "a.h").write_text("b.h")
    assert load_submission(folder, MAIN).sha256 != before


def test_copy_holds_the_listed_files(folder: Path, tmp_path: Path) -> None:
    (folder / "tile").mkdir()
    (folder / "tile" / "load.cuh").write_text("x")
    (folder / "notes.txt").write_text("x")
    submission = load_submission(folder, MAIN)
    copy_sources(submission, tmp_path / "copy")
    found = sorted(path.name for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert found == ["load.cuh", "sgemm.cu"]


def test_what_was_read_stands_whatever_becomes_of_the_folder(folder: Path, tmp_path: Path) -> None:
    submission = load_submission(folder, MAIN)
    (folder / "sgemm.cu").unlink()
    (folder / "sgemm.cu").symlink_to("/etc/passwd")
    copy_sources(submission, tmp_path / "copy")
    assert (tmp_path / "copy" / "sgemm.cu").read_text() == "// kernel\n"
    assert source_texts(submission.contents) == {"sgemm.cu": "// kernel\n"}


def test_where_one_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tile").mkdir()
    monkeypatch.chdir(folder / "tile")
    assert load_submission(Path(".."), MAIN).student == "ada"
    monkeypatch.chdir(folder)
    assert load_submission(Path(), MAIN).student == "ada"


def test_a_folder_that_is_a_link_is_refused_under_its_own_name(
    folder: Path, tmp_path: Path
) -> None:
    link = tmp_path / "mallory"
    link.symlink_to(folder)
    refused(link, "mallory: a link; name the folder that it leads to")
    assert student_of(link) == "mallory"
    with pytest.raises(Rejected, match="mallory: a link"):
        load_listed(link, "mallory", MAIN)


def test_a_listed_file_is_a_submission(tmp_path: Path) -> None:
    (tmp_path / "ada.cu").write_text("// kernel\n")
    submission = load_listed(tmp_path / "ada.cu", "ada", MAIN)
    assert submission.student == "ada"
    assert submission.contents == {"sgemm.cu": b"// kernel\n"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "x.cu: a link"),
        (os.mkfifo, "x.cu: a named pipe"),
        (lambda path: bind(path), "x.cu: a socket"),
        (lambda path: grow(path, 3 << 30), "x.cu: larger than 1 MiB"),
    ],
)
def test_odd_listed_files(make: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    make(tmp_path / "x.cu")
    with pytest.raises(Rejected, match=words):
        load_listed(tmp_path / "x.cu", "x", MAIN)


@pytest.mark.parametrize(
    ("name", "words"),
    [("nobody", "no such folder"), ("file", "not a folder"), ("sgemm.cu", "name the folder")],
)
def test_no_folder_is_a_usage_error(tmp_path: Path, name: str, words: str) -> None:
    if name != "nobody":
        (tmp_path / name).write_text("x")
    with pytest.raises(SubmissionError, match=words):
        load_submission(tmp_path / name, MAIN)


def test_missing(folder: Path) -> None:
    (folder / "sgemm.cu").rename(folder / "gemm.cu")
    refused(folder, r"sgemm\.cu is missing from the folder ada")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b" \n", r"sgemm\.cu: the file is empty"),
        (b"// ok\n// \xe9t\xe9\n", r"sgemm\.cu:2: not UTF-8"),
        (b"\0\0\0", "zero bytes"),
        (b"/" * (1 << 20) + b"//", "larger than 1 MiB"),
    ],
)
def test_content(folder: Path, content: bytes, words: str) -> None:
    (folder / "sgemm.cu").write_bytes(content)
    refused(folder, words)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("tile.cuh", "sgemm.cu"),
        ("leak.h", "/etc/passwd"),
        ("gone.h", "nowhere"),
        ("loop.h", "loop.h"),
        ("include", ".."),
        ("notes.txt", "/dev/zero"),
    ],
)
def test_links_are_refused_by_name(folder: Path, name: str, target: str) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / name).symlink_to(target)
    refused(folder, f"inner/{name}: a link; hand in the file or folder itself")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "a named pipe, not a plain file"),
        (lambda path: bind(path), "a socket, not a plain file"),
        (lambda path: grow(path, 3 << 30), "larger than 1 MiB"),
        (lambda path: path.mkdir(), "a folder, not a plain file"),
    ],
)
def test_what_is_no_file(folder: Path, make: Callable[[Path], None], words: str) -> None:
    (folder / "sgemm.cu").unlink()
    make(folder / "sgemm.cu")
    refused(folder, rf"sgemm\.cu: {words}")


def test_what_is_no_source_is_never_opened(folder: Path) -> None:
    os.mkfifo(folder / "log")
    bind(folder / "socket")
    grow(folder / "a.out", 3 << 30)
    (folder / ".git").symlink_to("..")
    assert list(load_submission(folder, MAIN).contents) == ["sgemm.cu"]


def test_nobody_exchanges_a_file_while_it_is_read(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET\n")
    ended = threading.Event()
    ready = threading.Event()

    def swap() -> None:
        link, file = tmp_path / "link", tmp_path / "file"
        while not ended.is_set():
            link.symlink_to(secret)
            link.replace(folder / "sgemm.cu")
            file.write_text("// kernel\n")
            file.replace(folder / "sgemm.cu")
            ready.set()

    thread = threading.Thread(target=swap)
    thread.start()
    ready.wait()
    try:
        seen = {read_or_refused(folder) for _ in range(2000)}
    finally:
        ended.set()
        thread.join()
    assert b"// kernel\n" in seen
    assert seen <= {b"// kernel\n", None}


def read_or_refused(folder: Path) -> bytes | None:
    try:
        return load_submission(folder, MAIN).contents["sgemm.cu"]
    except Rejected as refusal:
        assert "a link" in str(refusal) or "cannot be read" in str(refusal)
        return None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_what_may_not_be_read(folder: Path) -> None:
    (folder / "a.h").write_text("")
    (folder / "a.h").chmod(0)
    refused(folder, "a.h: cannot be read: Permission denied")
    (folder / "a.h").unlink()
    (folder / "tile").mkdir(mode=0)
    refused(folder, "tile: cannot be read: Permission denied")
    folder.chmod(0)
    try:
        with pytest.raises(SubmissionError, match="ada: cannot be read: Permission denied"):
            load_submission(folder, MAIN)
    finally:
        folder.chmod(0o700)


def test_deep_folders(folder: Path) -> None:
    deep = folder.joinpath(*"123456789")
    deep.mkdir(parents=True)
    refused(folder, "1/2/3/4/5/6/7/8/9: more than 8 folders deep")


def test_too_many(folder: Path) -> None:
    for index in range(64):
        (folder / f"{index}.h").write_text("")
    refused(folder, "more than 64 source files")
    for index in range(4100):
        (folder / f"{index}.txt").write_text("")
    refused(folder, "more than 4096 files")


def test_too_large_together(folder: Path) -> None:
    for index in range(5):
        grow(folder / f"{index}.h", 1 << 20)
    refused(folder, "larger than 4 MiB together")


@pytest.mark.parametrize("name", ["a\nb.h", "a\x1b[2J.cuh", "a\u202eb.h", os.fsdecode(b"\xff.h")])
def test_names(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    refused(folder, "plain letters")
