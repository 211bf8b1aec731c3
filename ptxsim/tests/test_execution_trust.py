"""Programs that do to their device what they should not, and how much of it they may have."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from program_runs import built, ptxsim
from ptxsim.launching import default_engine


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    default_engine()
    return built("hostile", tmp_path_factory.mktemp("programs"))


def test_memory_may_change_while_a_kernel_runs(hostile: Path) -> None:
    """A thread of the program writes wherever it has the device's memory, and more than it has."""
    done = ptxsim("exec", "hostile", "--", "scribbles", folder=hostile)
    assert (done.returncode, done.stdout) == (1, "wrote\n"), done.stderr
    assert "(hostile.cu:60)" in done.stderr


@pytest.mark.parametrize("case", ["allocates often", "allocates and frees", "allocates much"])
def test_as_many_and_as_large_allocations_as_anybody_has(hostile: Path, case: str) -> None:
    done = ptxsim("exec", "hostile", "--", case, folder=hostile)
    assert (done.returncode, done.stdout, done.stderr) == (0, "cudaSuccess\n", "")


def test_the_next_program_of_the_process_has_no_device(hostile: Path) -> None:
    done = ptxsim("exec", "hostile", "--", "starts again", folder=hostile)
    assert done.returncode == 1
    assert "run it as ptxsim exec PROGRAM" in done.stderr
    assert "which is a null pointer" in done.stderr


def test_nobody_waits_for_the_children_of_a_program(hostile: Path) -> None:
    """Nor for what they hold: the channel, the memory."""
    started = time.monotonic()
    command = [sys.executable, "-m", "ptxsim", "exec", "hostile", "--", "leaves a child"]
    done = subprocess.run(command, cwd=hostile, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 1
    assert time.monotonic() - started < 30


SECRET = "the secret of somebody else"


def test_excerpts_are_of_files_that_were_compiled(tmp_path: Path) -> None:
    """Whatever file the debug information names."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    secret = outside / "key.cu"
    secret.write_text(
        f"int* {SECRET.replace(' ', '_')}; cudaMalloc(&{SECRET.replace(' ', '_')}, 1);\n"
    )
    (inside / "key.cu").symlink_to(secret)
    (inside / "part.cuh").write_text("__global__ void here(int* x) { x[64] = 1; }  // shown\n")
    for named in (secret, inside / "key.cu"):
        (inside / "reads.cu").write_text(
            f'#include "part.cuh"\n#line 1 "{named}"\n'
            f'__global__ void over(int* x) {{ x[64] = 1; }}\n#line 1 "{named}"\n'
            "int main() { int *x; cudaMalloc(&x, 64); over<<<1, 1>>>(x); here<<<1, 1>>>(x);\n"
            "cudaDeviceSynchronize(); return 0; }\n"
        )
        done = ptxsim("exec", "reads.cu", folder=inside)
        assert done.returncode == 1
        assert "key.cu:1" in done.stderr and "// shown" in done.stderr
        assert "secret" not in done.stderr
