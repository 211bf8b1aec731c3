"""Properties of the simulator: any launch geometry multiplies, any arithmetic is what C++ says."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grader.model import Allocation, Dim3, Launch, Plan, Size
from grader.toolchain.discovery import find_toolchain
from ptxsim.errors import RefusedProgram
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.simulator import Simulator
from tests.ptxsim.fragments.generate import COUNT, VARIABLES, program
from tests.support.kernels import engine

FRAGMENTS = Path(__file__).parent / "fragments"
NEAREST, DIRECTED = range(60), range(100, 120)  # seeds
TILES = [(1, 1, 8), (2, 1, 4), (3, 2, 5), (4, 4, 8), (1, 8, 16)]  # TM, TN, BK

# Every thread makes TM × TN elements, strided by the block; tiles lie in dynamic shared memory.
GEMM = """
extern __shared__ float memory[];

template <int TM, int TN, int BK>
__device__ void gemm(const float* A, const float* B, float* C, int m, int n, int k) {
  const int bm = blockDim.x * TM, bn = blockDim.y * TN, threads = blockDim.x * blockDim.y;
  const int row0 = blockIdx.x * bm, col0 = blockIdx.y * bn;
  const int t = threadIdx.y * blockDim.x + threadIdx.x;
  float *As = memory, *Bs = memory + bm * BK;
  float acc[TN][TM] = {};
  for (int p0 = 0; p0 < k; p0 += BK) {
    for (int e = t; e < bm * BK; e += threads) {
      const int i = row0 + e / BK, p = p0 + e % BK;
      As[e] = i < m && p < k ? A[i * k + p] : 0.0f;
    }
    for (int e = t; e < bn * BK; e += threads) {
      const int j = col0 + e / BK, p = p0 + e % BK;
      Bs[e] = j < n && p < k ? B[p + j * k] : 0.0f;
    }
    __syncthreads();
    for (int q = 0; q < BK; ++q)
      for (int y = 0; y < TN; ++y)
        for (int x = 0; x < TM; ++x)
          acc[y][x] += As[(threadIdx.x + x * blockDim.x) * BK + q] *
                       Bs[(threadIdx.y + y * blockDim.y) * BK + q];
    __syncthreads();
  }
  for (int y = 0; y < TN; ++y)
    for (int x = 0; x < TM; ++x) {
      const int i = row0 + threadIdx.x + x * blockDim.x, j = col0 + threadIdx.y + y * blockDim.y;
      if (i < m && j < n) C[i + j * m] = acc[y][x];
    }
}
"""
GEMM_KERNEL = """
extern "C" __global__ void gemm_{0}_{1}_{2}(const float* A, const float* B, float* C, int m, int n,
                                            int k) {{
  gemm<{0}, {1}, {2}>(A, B, C, m, n, k);
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties")


def simulator(folder: Path, name: str, source: str, *flags: str) -> Simulator:
    """``source`` compiled by nvcc, ready to run."""
    (folder / f"{name}.cu").write_text(source)
    target = folder / f"{name}.ptx"
    nvcc = [str(find_toolchain().nvcc), "-arch=sm_80", "-std=c++17", "-lineinfo", "-ptx", "-w"]
    subprocess.run([*nvcc, *flags, "-o", target, folder / f"{name}.cu"], check=True)
    return Simulator(target.read_text(), folder, engine())


def launch(
    simulator: Simulator,
    kernel: str,
    arrays: tuple[NDArray[np.generic], ...],
    scalars: tuple[int, ...],
    grid: Dim3,
    block: Dim3,
    shared: int = 0,
) -> SimOutcome:
    """One launch with pointers to ``arrays``, then ``scalars`` as ints."""
    allocations = tuple(
        Allocation(name=name, address=0x7F00_0000_0000 + (i << 32), size=array.nbytes)
        for i, (name, array) in enumerate(zip("ABC", arrays, strict=True))
    )
    params = struct.pack("<3Q", *(a.address for a in allocations))
    params += struct.pack(f"<{len(scalars)}i", *scalars)
    call = Launch(
        kernel=kernel, grid=grid, block=block, shared_bytes=shared, params=params, pointers=()
    )
    plan = Plan(
        size=Size.of(m=1, n=1, k=1),
        allocations=allocations,
        operations=(call,),
        inputs=2,
        outputs=1,
    )
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    return simulator.run(plan, buffers, SimLimits(seconds=30))


# --- any shape, any geometry


@pytest.fixture(scope="module")
def gemm(folder: Path) -> Simulator:
    kernels = "".join(GEMM_KERNEL.format(*tile) for tile in TILES)
    return simulator(folder, "gemm", GEMM + kernels)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 70)] * 3),
    block=st.tuples(st.integers(1, 40), st.integers(1, 12)),
    tile=st.sampled_from(TILES),
    spare=st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_any_geometry_agrees_with_numpy(
    gemm: Simulator,
    shape: tuple[int, int, int],
    block: tuple[int, int],
    tile: tuple[int, int, int],
    spare: tuple[int, int],
) -> None:
    m, n, k = shape
    tm, tn, bk = tile
    bm, bn = block[0] * tm, block[1] * tn
    random = np.random.default_rng(m * 5041 + n * 71 + k)
    a = random.standard_normal((m, k), np.float32)
    b = random.standard_normal((n, k), np.float32)
    c = np.full((n, m), np.nan, np.float32)

    outcome = launch(
        gemm,
        f"gemm_{tm}_{tn}_{bk}",
        (a, b, c),
        (m, n, k),
        grid=(-(-m // bm) + spare[0], -(-n // bn) + spare[1], 1),
        block=(*block, 1),
        shared=4 * bk * (bm + bn),
    )

    assert outcome.findings == ()
    assert outcome.stopped is None
    exact = b.astype(np.float64) @ a.T.astype(np.float64)
    scale = np.abs(b).astype(np.float64) @ np.abs(a.T).astype(np.float64)
    assert np.all(np.abs(c - exact) <= 1e-6 * scale)


# --- any arithmetic


@dataclass(frozen=True)
class Fragments:
    """The same fragments on both machines."""

    bodies: dict[int, str]  # by seed
    device: Simulator
    host: ctypes.CDLL


def compile_fragments(folder: Path, seeds: range, *, directed: bool) -> Fragments:
    text, bodies = program(seeds, directed=directed)
    includes = f'#include "{FRAGMENTS}/{{}}"\n#include "{FRAGMENTS}/common.cuh"\n'
    kernels = "".join(
        f'extern "C" __global__ void kernel_{seed}(const long long* in, const long long*, '
        "long long* out, int count) {\n"
        "  const int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (t >= count) return;\n"
        f"  in += VALUES * t, out += VALUES * t;\n  CALL(fragment_{seed}, in, out)\n}}\n"
        for seed in seeds
    )
    loops = "".join(
        f'extern "C" void host_{seed}(const long long* in, long long* out, int count) {{\n'
        "  for (; count > 0; --count, in += VALUES, out += VALUES)\n"
        f"    CALL(fragment_{seed}, in, out)\n}}\n"
        for seed in seeds
    )
    device = simulator(folder, "f", includes.format("device.cuh") + text + kernels, "-fmad=false")
    source, library = folder / "host.cpp", folder / "host.so"
    source.write_text(includes.format("intrinsics.hpp") + text + loops)
    gxx = [str(find_toolchain().host_compiler), "-std=c++17", "-O1", "-fwrapv", "-shared", "-fPIC"]
    exact = ["-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing", "-w"]
    subprocess.run([*gxx, *exact, "-o", library, source], check=True)
    return Fragments(dict(zip(seeds, bodies, strict=True)), device, ctypes.CDLL(str(library)))


@cache
def inputs() -> NDArray[np.int64]:
    """One row per thread: random bits, small numbers, and the values that are special."""
    random = np.random.default_rng(2)
    rows = 256
    values = random.integers(-(2**63), 2**63, (rows, COUNT), np.int64)
    small = random.integers(-40, 41, (rows, COUNT), np.int64)
    kinds = [kind for kind, names in VARIABLES.items() for _ in names]
    special = {
        "int": np.array([0, -1, 2**31 - 1, -(2**31)]),
        "unsigned": np.array([0, 1, 2**31, 2**32 - 1]),
        "long long": np.array([0, -1, 2**63 - 1, -(2**63)]),
        "float": np.array([0, -0.0, np.inf, np.nan, 1e-45], np.float32).view(np.int32),
        "double": np.array([0, -0.0, -np.inf, np.nan, 5e-324]).view(np.int64),
    }
    for column, kind in enumerate(kinds):
        plain = small[:, column]
        if kind == "float":
            plain = (plain / 8).astype(np.float32).view(np.int32).astype(np.int64)
        elif kind == "double":
            plain = (plain / 8).view(np.int64)
        choice = random.random(rows)
        values[:, column] = np.where(choice < 0.5, plain, values[:, column])
        picked = random.choice(special[kind], rows).astype(np.int64)
        values[:, column] = np.where(choice > 0.85, picked, values[:, column])
    return values


def disagreement(fragments: Fragments, seed: int) -> str:
    """Where simulator and host differ on one fragment; "" where they don't."""
    given_values = inputs()
    got, want = np.zeros_like(given_values), np.zeros_like(given_values)
    rows = len(given_values)
    try:
        outcome = launch(
            fragments.device,
            f"kernel_{seed}",
            (given_values, np.zeros(1, np.int64), got),
            (rows,),
            grid=(-(-rows // 96), 1, 1),
            block=(96, 1, 1),
        )
    except RefusedProgram as refusal:
        return f"fragment {seed}: {refusal}"
    pointer = ctypes.c_void_p
    fragments.host[f"host_{seed}"](
        pointer(given_values.ctypes.data), pointer(want.ctypes.data), rows
    )
    if outcome.findings or outcome.stopped:
        return f"fragment {seed}: {outcome.findings} {outcome.stopped}"
    if (got == want).all():
        return ""
    row, column = np.argwhere(got != want)[0]
    name = [name for names in VARIABLES.values() for name in names][column]
    return (
        f"fragment {seed}, thread {row}, {name}: got {int(got[row, column]):#x}, "
        f"want {int(want[row, column]):#x}, from {[hex(v) for v in given_values[row].tolist()]}\n"
        f"{fragments.bodies[seed]}"
    )


def disagreements(fragments: Fragments) -> str:
    return "\n\n".join(filter(None, (disagreement(fragments, seed) for seed in fragments.bodies)))


def test_arithmetic_agrees_with_the_host_bit_for_bit(tmp_path: Path) -> None:
    assert disagreements(compile_fragments(tmp_path, NEAREST, directed=False)) == ""


def test_directed_rounding_agrees_with_the_host_bit_for_bit(tmp_path: Path) -> None:
    assert disagreements(compile_fragments(tmp_path, DIRECTED, directed=True)) == ""
