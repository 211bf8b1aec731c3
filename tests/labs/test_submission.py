"""What a submission folder may hold, and what is said when it does not."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.base.errors import Rejected
from grader.base.records import Verdict
from grader.labs.submission import (
    SubmissionError,
    copy_sources,
    load_listed,
    load_submission,
    provided,
    source_texts,
    student_of,
)
from tests.support.commands import hand_in
from tests.support.files import bind, grow
from tests.support.product import MAIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "ada", "// kernel\n")


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


def test_headers_by_any_of_their_names(folder: Path) -> None:
    """nvcc would say of the others that they do not exist."""
    headers = [f"a.{end}" for end in ("cuh", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tpp")]
    for name in headers:
        (folder / name).write_text("int a;")
    assert list(load_submission(folder, MAIN).contents) == [*headers, "sgemm.cu"]


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


def link(folder: Path, name: str, target: str) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / name).symlink_to(target)


def exchange(folder: Path, make: Callable[[Path], object]) -> None:
    (folder / MAIN).unlink()
    make(folder / MAIN)


def fill(folder: Path, count: int, end: str, size: int = 0) -> None:
    for index in range(count):
        grow(folder / f"{index}.{end}", size)


A_LINK = "a link; hand in the file or folder itself"
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda f: (f / MAIN).rename(f / "gemm.cu"), r"sgemm\.cu is missing from the folder ada"),
    (lambda f: (f / MAIN).write_bytes(b" \n"), r"sgemm\.cu: the file is empty"),
    (lambda f: (f / MAIN).write_bytes(b"// ok\n// \xe9t\xe9\n"), r"sgemm\.cu:2: not UTF-8"),
    (lambda f: (f / MAIN).write_bytes(b"\0\0\0"), "zero bytes"),
    (lambda f: (f / MAIN).write_bytes(b"/" * (1 << 20) + b"//"), "larger than 1 MiB"),
    (lambda f: link(f, "tile.cuh", "sgemm.cu"), f"inner/tile.cuh: {A_LINK}"),
    (lambda f: link(f, "leak.h", "/etc/passwd"), f"inner/leak.h: {A_LINK}"),
    (lambda f: link(f, "gone.h", "nowhere"), f"inner/gone.h: {A_LINK}"),
    (lambda f: link(f, "loop.h", "loop.h"), f"inner/loop.h: {A_LINK}"),
    (lambda f: link(f, "include", ".."), f"inner/include: {A_LINK}"),
    (lambda f: link(f, "notes.txt", "/dev/zero"), f"inner/notes.txt: {A_LINK}"),
    (lambda f: exchange(f, os.mkfifo), r"sgemm\.cu: a named pipe, not a plain file"),
    (lambda f: exchange(f, bind), r"sgemm\.cu: a socket, not a plain file"),
    (lambda f: exchange(f, lambda path: grow(path, 3 << 30)), r"sgemm\.cu: larger than 1 MiB"),
    (lambda f: exchange(f, Path.mkdir), r"sgemm\.cu: a folder, not a plain file"),
    (
        lambda f: f.joinpath(*"123456789").mkdir(parents=True),
        "1/2/3/4/5/6/7/8/9: more than 8 folders deep",
    ),
    (lambda f: fill(f, 64, "h"), "more than 64 source files"),
    (lambda f: fill(f, 4100, "txt"), "more than 4096 files"),
    (lambda f: fill(f, 5, "h", 1 << 20), "larger than 4 MiB together"),
    *(
        (lambda f, name=name: (f / name).write_text(""), "plain letters")  # type: ignore[misc]
        for name in ("a\nb.h", "a\x1b[2J.cuh", "a\u202eb.h", os.fsdecode(b"\xff.h"))
    ),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_what_a_folder_may_not_hold(
    folder: Path, make: Callable[[Path], object], words: str
) -> None:
    make(folder)
    refused(folder, words)


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


def test_a_submission_called_reference_provides_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the names of its folders would be out of the ranks."""
    monkeypatch.chdir(folder.parent)
    own, rung = folder.parent / "reference", folder.parent / "reference" / "sgemm" / "ada"
    rung.mkdir(parents=True)
    assert provided("reference")[0] == Path("reference")
    (own / "sgemm.cu").write_text("// kernel\n")
    assert own not in [each.resolve() for each in provided("reference")]
