"""The grader's own C++: compiled once, cached, safe for two graders at once."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grader.base import native
from grader.base.errors import ToolchainError
from tests.support.commands import living, script, until


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(native.CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "answer.h").write_text("int answer();\n")
    (folder / "answer.cpp").write_text('#include "answer.h"\nint answer() { return 42; }\n')
    (folder / "main.cpp").write_text(
        '#include "answer.h"\nextern "C" int twice() { return 2 * answer(); }\n'
        "int main() { return answer(); }\n"
    )
    return [folder / "answer.cpp", folder / "main.cpp"]


def compiled(sources: list[Path], **how: Any) -> Path:
    return native.Native(name="p", sources=tuple(sources), **how).compiled()


def test_program_and_library(cache: Path, sources: list[Path]) -> None:
    program = compiled(sources, shared=False)
    library = compiled(sources, shared=True)
    assert subprocess.run([program], check=False).returncode == 42
    assert ctypes.CDLL(str(library)).twice() == 84
    assert program.parent == cache / "native"


@pytest.mark.parametrize("place", ["answer.h", "below/deeper.hpp"])
def test_kept_until_a_header_changes(cache: Path, sources: list[Path], place: str) -> None:
    header = sources[0].parent / place
    header.parent.mkdir(exist_ok=True)
    header.touch()
    first = compiled(sources, shared=False)
    stamp = first.stat().st_mtime_ns
    assert compiled(sources, shared=False) == first
    assert first.stat().st_mtime_ns == stamp
    header.write_text(header.read_text() + "// changed\n")
    assert compiled(sources, shared=False) != first


def test_flags_are_part_of_the_key(cache: Path, sources: list[Path]) -> None:
    plain = compiled(sources, shared=False)
    tuned = compiled(sources, shared=False, flags=("-O1", "-march=native"))
    assert plain != tuned


def test_two_at_once_after_a_build_that_was_killed(cache: Path, sources: list[Path]) -> None:
    seconds = f"999.{os.getpid()}"
    never_ends = f"[ $1 != --version ] || exec g++ $1\nexec sleep {seconds}"
    slow = script(sources[0].with_name("slow"), never_ends)
    build = "import sys; from pathlib import Path; from grader.base import Native\n"
    build += "Native(name='p', sources=(*map(Path, sys.argv[1:]),), shared=False).compiled()"
    environment = {**os.environ, "NVCC_CCBIN": str(slow)}
    with subprocess.Popen([sys.executable, "-c", build, *sources], env=environment) as killed:
        until(lambda: living("sleep", seconds))
        killed.kill()
    until(lambda: not living("sleep", seconds))
    assert list((cache / "native").glob("p-*.scratch"))
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(compiled, sources, shared=False) for _ in range(4)]
        paths = {job.result() for job in jobs}
    assert len(paths) == 1
    assert subprocess.run([paths.pop()], check=False).returncode == 42
    left = {path.suffix for path in (cache / "native").iterdir()}
    assert left == {"", ".lock", ".warnings"}, "scratch folders must be gone"


def test_what_was_prepared_is_taken_unless_a_stranger_could_have_made_it(
    cache: Path, sources: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiled(sources, shared=False)
    ready = tmp_path / "ready" / "native" / made.name
    ready.parent.mkdir(parents=True)
    made.rename(ready)
    monkeypatch.setenv(native.PREPARED_VARIABLE, str(tmp_path / "ready"))
    assert compiled(sources, shared=False) == ready
    assert not made.exists()
    ready.chmod(0o777)
    with pytest.raises(ToolchainError, match="ready: it is another user's: unset SGEMM_GRADER_PRE"):
        compiled(sources, shared=False)


def test_compile_error_is_one_line(cache: Path, sources: list[Path]) -> None:
    sources[0].write_text("int answer() { return nothing; }\n")
    with pytest.raises(ToolchainError, match=r"answer\.cpp:1:.*nothing") as caught:
        compiled(sources, shared=False)
    assert "\n" not in str(caught.value)


def test_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(native.CACHE_VARIABLE, str(tmp_path / "file" / "below"))
    with pytest.raises(ToolchainError, match="SGEMM_GRADER_CACHE"):
        native.cache_folder()


def test_warnings_are_kept(cache: Path, sources: list[Path]) -> None:
    sources[0].write_text("int answer() { int unused; return 42; }\n")
    made = native.Native(name="p", sources=tuple(sources), shared=False)
    made.compiled()
    assert "-Wunused-variable" in Path(f"{made.path()}.warnings").read_text()
