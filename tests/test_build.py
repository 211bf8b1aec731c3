"""nvcc for real: what compiles, what is refused, and in which words."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from grader import native, toolchain
from grader.build import build, coloured
from grader.build import cache as build_cache
from grader.errors import Rejected, ToolchainError
from grader.model import Build, Mnk, Plan, Verdict
from grader.record import record
from grader.sandbox import Sandbox
from grader.submission import load_submission
from grader.toolchain import Toolchain, find_toolchain

ROOT = Path(__file__).parent.parent
STARTER = (ROOT / "starter" / "sgemm.cu").read_text()
KERNEL_ONLY = STARTER[: STARTER.index("template <>")]

# As files for the original lab are written: its headers, short names, careless macros.
ORIGINAL = """
#include "gemm.cuh"
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include "tile/size.cuh"
#define m(x) x
#define A(i, j) A[i]
#define fill nothing
using namespace thrust;
namespace cg = cooperative_groups;

template <typename T>
__global__ void kernel(const T* a, const T* b, T* c, int rows, int n, int k) {
  __shared__ T tile[TILE];
  auto block = cg::this_thread_block();
  const float* first = a;
  __pipeline_memcpy_async(&tile[threadIdx.x], &first[threadIdx.x], sizeof(T));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  block.sync();
  c[threadIdx.x] = tile[threadIdx.x] + b[n + k];
}

template <typename T>
void run_custom(thrust::device_vector<T>& d_A, thrust::device_vector<T>& d_B,
                thrust::device_vector<T>& d_C, const int rows, const int n, const int k) {
  T* A = thrust::raw_pointer_cast(d_A.data());
  T* B = raw_pointer_cast(&d_B[0]);
  device_vector<T> workspace(d_C.size());
  kernel<T><<<1, TILE>>>(A, B, d_C.data().get(), rows, n, k);
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds of an earlier run must not stand in for nvcc; the recorder may be reused."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "native").symlink_to(_native(), target_is_directory=True)
    monkeypatch.setenv(native.CACHE_VARIABLE, str(folder))


def _native() -> Path:
    folder = native.cache_folder() / "native"
    folder.mkdir(exist_ok=True)
    return folder


Compile = Callable[..., Build]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    def run(
        source: str,
        tools: Toolchain | None = None,
        mode: str = "auto",
        compile_s: float = 60,
        **headers: str,
    ) -> Build:
        folder = tmp_path / "eve"
        shutil.rmtree(folder, ignore_errors=True)
        for name, text in {"sgemm.cu": source, **headers}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return build(
            load_submission(folder),
            tools or find_toolchain(),
            Sandbox.open(mode),  # type: ignore[arg-type]
            arch="sm_80",
            compile_s=compile_s,
            memory_mb=4096,
        )

    return run


def refused(
    compiled: Compile, verdict: Verdict, words: str, source: str, **options: str
) -> Rejected:
    with pytest.raises(Rejected, match=words) as caught:
        compiled(source, **options)
    assert caught.value.verdict is verdict
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_starter(mode: str, compiled: Compile) -> None:
    one = compiled(STARTER, mode=mode)
    assert one.log == ""
    assert not one.cached
    assert one.seconds < 10
    (kernel,) = one.kernels
    assert (kernel.name, kernel.spill_bytes) == ("_Z5sgemmPKfS0_Pfiii", 0)
    assert 8 <= kernel.registers <= 64
    ptx = one.ptx.read_text()
    assert ".target sm_80" in ptx
    assert '.file\t1 "sgemm.cu"' in ptx
    assert "sgemm-build" not in ptx
    assert one.cubin.read_bytes()[:4] == one.host_library.read_bytes()[:4] == b"\x7fELF"
    again = compiled(STARTER, mode=mode)
    assert again.cached
    assert msgspec.structs.replace(again, cached=False) == one


def made(builds: Path, name: str, hours: float) -> Path:
    """A build of a megabyte, used so long ago."""
    folder = builds / name
    folder.mkdir(parents=True)
    (folder / "host.so").write_bytes(bytes(1_000_000))
    then = time.time() - 3600 * hours
    os.utime(folder, (then, then))
    return folder


def test_the_builds_unused_for_longest_go(tmp_path: Path) -> None:
    old, older, new, _ = (
        made(tmp_path, name, hours)
        for name, hours in (("old", 5), ("older", 9), ("new", 3), ("newer", 0.5))
    )
    build_cache.prune(tmp_path, 4_000_000)
    assert older.exists()
    build_cache.prune(tmp_path, 3_000_000)
    assert not older.exists() and old.exists() and new.exists()
    build_cache.touch(old)  # taken once more
    with ThreadPoolExecutor() as pool:
        for ended in [pool.submit(build_cache.prune, tmp_path, 0) for _ in range(4)]:
            ended.result()
    assert {folder.name for folder in tmp_path.iterdir()} == {"old", "newer"}


@pytest.mark.parametrize("late", [False, True])
def test_a_build_taken_while_another_grader_removes_it_stays(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, "build", 5)
    (entry,) = build_cache.entries(tmp_path)
    rename = Path.rename

    def taken_first(path: Path, target: Path) -> Path:
        build_cache.touch(path)
        return rename(path, target)

    if late:  # between the last look and the removal
        monkeypatch.setattr(Path, "rename", taken_first)
    else:
        build_cache.touch(folder)
    build_cache.remove(entry)
    assert [each.name for each in tmp_path.rglob("*")] == ["build", "host.so"]


def test_a_new_build_makes_room(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made(native.cache_folder() / "builds", "old", 5)
    monkeypatch.setenv(native.LIMIT_VARIABLE, "0")
    fresh = compiled(STARTER)
    assert not old.exists() and fresh.host_library.exists()

    monkeypatch.setenv(native.LIMIT_VARIABLE, "plenty")
    with pytest.raises(ToolchainError, match="SGEMM_GRADER_CACHE_GB=plenty: not a size"):
        compiled(STARTER)


def test_both_interfaces_are_the_same_file() -> None:
    ours = ROOT / "grader" / "build" / "include" / "gemm.cuh"
    assert ours.read_text() == (ROOT / "starter" / "gemm.cuh").read_text()


def test_file_written_for_the_original_lab(compiled: Compile) -> None:
    one = compiled(ORIGINAL, **{"tile/size.cuh": "constexpr int TILE = 128;\n"})
    assert [kernel.shared_bytes for kernel in one.kernels if "kernel" in kernel.name] == [512]


def test_two_at_once(compiled: Compile, tmp_path: Path) -> None:
    folder = tmp_path / "twin"
    folder.mkdir()
    (folder / "sgemm.cu").write_text(STARTER)
    options = {"arch": "sm_80", "compile_s": 60, "memory_mb": 4096}

    def run(_: int) -> Build:
        return build(load_submission(folder), find_toolchain(), Sandbox.open(), **options)  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, range(2))
    assert first.host_library == second.host_library
    left = {path.name for path in first.host_library.parents[1].iterdir()}
    assert left == {first.host_library.parent.name, ".counted"}


def test_compile_errors_name_the_students_lines(compiled: Compile) -> None:
    source = STARTER.replace("float sum = 0.0f;", "float sum = nothing;\n  int y = also;")
    line = source[: source.index("nothing")].count("\n") + 1
    error = refused(compiled, Verdict.CE, "identifier .nothing. is undefined", source)
    assert str(error).startswith(f"sgemm.cu({line}): error: ")
    assert str(error).endswith("(and 1 more error)")
    assert error.build is not None
    assert not error.build.ok
    assert error.build.log.count("error:") == 2
    assert "sgemm_grader_entry" not in error.build.log
    assert "\x1b[1;31merror\x1b[0m: identifier" in coloured(error.build.log)


@pytest.mark.parametrize(
    ("first_line", "verdict", "words"),
    [
        ('#include "none.h"', Verdict.CE, r"^sgemm\.cu:1:10: fatal error: none\.h"),
        ('#include "tile.cuh"', Verdict.CE, r'^tile\.cuh\(2\): error: identifier "oops"'),
        ("#include <thrust/fill.h>", Verdict.CE, r"^thrust/detail/config\.h.*: write a kernel"),
        ("#include <cublas_none.h>", Verdict.FE, "sgemm.cu:1 includes .* may not call cuBLAS"),
    ],
)
def test_headers(first_line: str, verdict: Verdict, words: str, compiled: Compile) -> None:
    header = {"tile.cuh": "#pragma once\nint x = oops;\n"}
    refused(compiled, verdict, words, f"{first_line}\n{STARTER}", **header)


@pytest.mark.parametrize(
    "source", [KERNEL_ONLY, "// nothing\n", "void run_custom(float*, float*, float*) {}\n"]
)
def test_interface_is_missing(source: str, compiled: Compile) -> None:
    refused(compiled, Verdict.FE, r"run_custom<float> is not defined in sgemm\.cu", source)


@pytest.mark.parametrize("reader", ['#include "/etc/passwd"', 'asm(".incbin \\"/etc/passwd\\"");'])
def test_other_files_cannot_be_read(reader: str, compiled: Compile) -> None:
    if Sandbox.open().kind != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    error = refused(compiled, Verdict.CE, "passwd", STARTER + reader + "\n")
    assert error.build is not None
    assert "root:" not in error.build.log


def test_endless_compilation(compiled: Compile) -> None:
    bomb = "template <int N> struct R { static constexpr int v = R<N + 1>::v + R<N - 1>::v; };"
    with pytest.raises(Rejected, match=r"longer than 0\.3 s") as caught:
        compiled(f"{STARTER}{bomb} int x = R<0>::v;", compile_s=0.3)
    assert caught.value.verdict is Verdict.CE


@pytest.mark.skipif(find_toolchain().cutlass_include is None, reason="no nvidia-cutlass wheel")
def test_cute(compiled: Compile) -> None:
    assert compiled(f"#include <cute/tensor.hpp>\nusing namespace cute;\n{STARTER}").kernels


def test_cute_is_missing(compiled: Compile) -> None:
    tools = msgspec.structs.replace(find_toolchain(), cutlass_include=None)
    with pytest.raises(ToolchainError, match=r"sgemm\.cu:1 .*'sgemm-grader\[cutlass\]'"):
        compiled(f"#include <cute/tensor.hpp>\n{STARTER}", tools)


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolchain]:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv(toolchain.ORIGIN_VARIABLE, "wheel")
    find_toolchain.cache_clear()
    yield find_toolchain()
    find_toolchain.cache_clear()


def test_wheels_alone_build_and_record(
    wheels: Toolchain, compiled: Compile, tmp_path: Path
) -> None:
    assert wheels.origin == "wheel"
    one = compiled(STARTER, wheels)
    assert str(wheels.nvcc) in one.command
    sizes = [Mnk(m=n, n=n, k=n) for n in (1, 17, 64)]
    plans = record(
        one,
        load_submission(tmp_path / "eve"),
        sizes,
        wheels,
        Sandbox.open(),
        record_s=5,
        memory_mb=2048,
    )
    assert [plan.size for plan in plans if isinstance(plan, Plan)] == sizes
