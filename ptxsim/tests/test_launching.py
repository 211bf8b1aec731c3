"""ptxsim as a stranger meets it: the README's example, and arguments that do not fit."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import compiled, cuda_tool, engine, kernels, launch
from ptxsim import FindingsError, Module, Output
from ptxsim.findings.finding import FindingKind
from ptxsim.launching import engine_path
from ptxsim.nvcc import CompileError
from ptxsim.outcome import RefusedProgram
from ptxsim.report import Origin

README = (Path(__file__).parents[1] / "README.md").read_text()
PTX = kernels("adds.ptx")


def block(language: str) -> str:
    """The first one."""
    return str(re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[0])


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


def test_a_report_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    """Also from text alone, of a source elsewhere; an index counts the array's own elements."""
    source = block("cuda").partition("\nint main")[0].replace("float* y", "double* y")
    ptx, folder = compiled(source, name="scale")
    (tmp_path / "scale.ptx").write_text(ptx)
    x, y = np.ones(64, np.float32), np.zeros(60)
    for given in (tmp_path / "scale.ptx", ptx):
        report = Module(given, engine=engine()).kernel("scale")[2, 32](x, Output(y), 3)
        assert y[59] == 3 and not report.clean
        with pytest.raises(FindingsError) as error:
            report.raise_for_findings()
        said = str(error.value)
        assert (
            "global write: block (1,0,0) thread (28,0,0) writes 8 bytes at argument 1[60]" in said
        )
        assert said.endswith("\n  > 6 │   y[i] = factor * x[i];\n    7 │ }")
    assert Module(folder / "scale.ptx", engine=engine()).kernels == ("_Z5scalePKfPdf",)
    report = Module(ptx, engine=engine()).kernel("scale")[1, 32](x, Output(y), 3)
    assert str(report) == "scale: nothing found"


def test_a_checked_module_raises_and_cuda_sources_are_compiled(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(int* a) { a[threadIdx.x] = 1; }")
    kernel = Module(file, engine=engine(), checked=True).kernel("k")
    with pytest.raises(FindingsError, match=r"argument 0\[4\](.|\n)*> 1 │ __global__ void k"):
        kernel[1, 5](np.zeros(4, np.int32))
    file.write_text("__global__ void k(int* a) { b[0] = 1; }")
    with pytest.raises(CompileError, match=r'k\.cu\(1\): error: identifier "b" is undefined$'):
        Module(file, engine=engine())


def test_orders_of_blocks_and_warps(tmp_path: Path) -> None:
    ptx, _ = compiled(kernels("orders.cu"), name="orders")
    module = Module(ptx, engine=engine())

    def run(kernel: str, **orders: Any) -> tuple[str, NDArray[Any]]:
        a = np.zeros(64, np.float32 if kernel == "sums" else np.int32)
        launch = module.kernel(kernel)[8, 128]
        return str(launch(a, np.zeros(1, np.int32), **orders)), a

    said, a = run("appends")
    assert said == "appends: nothing found" and a.tolist() == [*range(32), *[0] * 32]
    said, a = run("appends", orders=5)
    assert "argument 0[0] depends on the order" in said and said.count("argument 0") == 1
    assert (
        "is 0 in the order of their numbers and 31 in another; elements that differ: 32 of 64"
        in said
    )
    assert " (in order 2 of 5, the reverse one)" in said
    assert a.tolist() == [*range(32), *[0] * 32]
    assert run("sums", orders=4)[0] == "sums: nothing found"
    assert "order-dependence" in run("sums", orders=4, tolerance=0)[0]
    assert run("first", orders=2)[0] == "first: nothing found"  # block 0 or 7 begins
    seeds = [run("first", orders=3, seed=seed)[0] for seed in range(1, 9)]
    assert sum("writes 4 bytes at argument 0[64]" in said for said in seeds) >= 4
    said, _ = run("first", orders=5, seed=20)
    (seed,) = re.findall(r"\(in order \d of 5, seed (\d+)\)", said)
    assert run("first", orders=3, seed=int(seed))[0] == re.sub(
        r"order \d of 5", "order 3 of 3", said
    )
    with pytest.raises(ValueError, match="0 orders from seed 1: both must be 1 or more"):
        run("first", orders=0)


def test_the_fixture_fails_a_test_with_the_sentence(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(int* a) { a[threadIdx.x] = 1; }")
    plugin = ["-p", "ptxsim.pytest_plugin", str(tmp_path)]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parent)}
    for n in (4, 3):
        module = "ptxsim('k.cu', engine=harness.engine())"
        test = f"def test_k(ptxsim):\n    {module}.kernel('k')[1, 4](np.zeros({n}, np.int32))\n"
        (tmp_path / "test_k.py").write_text(f"import harness\nimport numpy as np\n\n{test}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugin],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | alone,
        )
        assert done.returncode == (n == 3), done.stdout
    assert "block (0,0,0) thread (3,0,0) writes 4 bytes at argument 0[3]" in done.stdout
    assert "launching.py" not in done.stdout  # the traceback ends at the test's line


def test_importing_loads_nothing() -> None:
    said = "import ptxsim, sys; print(len([n for n in sys.modules if n[:7] == 'ptxsim.']))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_the_readme_explains_every_kind() -> None:
    kinds = README.partition("## What comes out")[2]
    assert re.findall(r"^\| `([a-z-]+)` \|", kinds, re.MULTILINE) == [k.value for k in FindingKind]


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    path = tmp_path / "add.ptx"
    path.write_text(PTX)
    return path


def add(ptx: Path, *arguments: Any, kernel: str = "add", threads: int = 1) -> Any:
    return launch(ptx, kernel, 1, threads, arguments)


def test_numbers_take_the_size_of_their_parameters(ptx: Path) -> None:
    a, b = np.zeros(1, np.float32), np.full(1, 2, np.float32)
    for n, f in ((-3, 1), (np.int32(-3), np.float32(1)), (b"\xfd\xff\xff\xff", 1.0)):
        assert add(ptx, Output(a), b, n, f).findings == ()
        assert a[0] == 0


def test_an_output_holds_nothing_and_one_array_may_be_passed_twice(ptx: Path) -> None:
    a = np.ones(1, np.float32)
    assert add(ptx, a, a, 1, 1.0).findings == () and a[0] == 3
    (found,) = add(ptx, Output(np.zeros(1, np.float32)), Output(a), 1, 1.0).findings
    assert found.kind is FindingKind.UNINITIALIZED_READ
    assert found.place is None and "ld.global" in PTX.splitlines()[13]


A, B = np.zeros(4, np.float32), np.zeros(4, np.float32)
UNFIT = {
    "takes 4 arguments, not 2": (A, B),
    "argument 2: 4294967296 does not fit 4 bytes": (A, B, 2**32, 1.0),
    "argument 2: 0.5 is no integer (s32)": (A, B, 0.5, 1.0),
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


def test_an_excerpt_is_of_a_source(tmp_path: Path) -> None:
    for name in ("key", "key.pem", "key.cu"):
        (tmp_path / name).write_text("secret")
    origin = Origin(tmp_path, "k.ptx", {"k.ptx": "ptx"})
    assert [origin.source(name) for name in ("k.ptx", "key", "key.pem", "key.cu")] == [
        *("ptx", None, None, "secret")
    ]
