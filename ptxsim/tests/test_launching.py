"""ptxsim as a stranger meets it: the README's example, and arguments that do not fit."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import cuda_tool, engine, kernels
from ptxsim.findings.finding import Kind
from ptxsim.launching import Output, engine_path, launch
from ptxsim.outcome import RefusedProgram

README = (Path(__file__).parents[1] / "README.md").read_text()
PTX = kernels("adds.ptx")


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(text)


def test_the_example_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = engine().path  # another place for caches would have it compiled anew
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine_path().parent.mkdir()
    engine_path().symlink_to(compiled)
    (tmp_path / "scale.cu").write_text(block("cuda"))
    (command,) = re.findall(r"`nvcc (.*?)`", README)
    nvcc = str(cuda_tool("nvcc"))
    subprocess.run([nvcc, *command.split()], cwd=tmp_path, check=True, capture_output=True)

    example = block("python")
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    assert done.stdout == block("text")


def test_the_readme_explains_every_kind() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \|", README, re.MULTILINE) == [k.value for k in Kind]


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    path = tmp_path / "add.ptx"
    path.write_text(PTX)
    return path


def add(ptx: Path, *arguments: Any, kernel: str = "add", threads: int = 1) -> Any:
    return launch(ptx, kernel, 1, threads, arguments, engine=engine())


def test_numbers_take_the_size_of_their_parameters(ptx: Path) -> None:
    a, b = np.zeros(1, np.float32), np.full(1, 2, np.float32)
    for n, f in ((-3, 0.5), (np.int32(-3), np.float32(0.5)), (b"\xfd\xff\xff\xff", 0.5)):
        assert add(ptx, Output(a), b, n, f).findings == ()
        assert a[0] == -0.5


def test_an_output_holds_nothing_and_one_array_may_be_passed_twice(ptx: Path) -> None:
    a = np.ones(1, np.float32)
    assert add(ptx, a, a, 1, 1.0).findings == () and a[0] == 3
    (found,) = add(ptx, Output(np.zeros(1, np.float32)), Output(a), 1, 1.0).findings
    assert found.kind is Kind.UNINITIALIZED_READ
    assert found.place is None and "ld.global" in PTX.splitlines()[13]


A, B = np.zeros(4, np.float32), np.zeros(4, np.float32)
UNFIT = {
    "takes 4 arguments, not 2": (A, B),
    "argument 2: 4294967296 does not fit 4 bytes": (A, B, 2**32, 1.0),
    "argument 3 has 8 bytes, its parameter 4": (A, B, 1, np.float64(1)),
    "argument 0 has 4 bytes, its parameter 8": (np.int32(0), B, 1, 1.0),
    "argument 1: it overlaps another array": (A, A[1:], 1, 1.0),
    "argument 1: an array must be contiguous": (A, B[::2], 1, 1.0),
}


@pytest.mark.parametrize("says", UNFIT)
def test_arguments_that_do_not_fit_are_refused(ptx: Path, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        add(ptx, *UNFIT[says])


def test_kernels_and_shapes_that_are_not_there_are_refused(ptx: Path) -> None:
    with pytest.raises(ValueError, match="no one kernel sub; the file has _Z3addPfS_if"):
        add(ptx, A, B, 1, 1.0, kernel="sub")
    with pytest.raises(RefusedProgram, match="2000 threads in a block; CUDA allows 1 to 1024"):
        add(ptx, A, B, 1, 1.0, threads=2000)
