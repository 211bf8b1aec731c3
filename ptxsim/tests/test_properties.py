"""Properties of the simulator: any launch geometry multiplies, any arithmetic is what C++ says."""

import ctypes
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fragments.generate import COUNT, VARIABLES, program
from harness import compiled, kernels, launch
from ptxsim.outcome import RefusedProgram, SimLimits
from ptxsim.tensor_maps import Output

FRAGMENTS = Path(__file__).parent / "fragments"
NEAREST, DIRECTED = range(60), range(100, 120)  # seeds
LIMITS = SimLimits(seconds=30)
TILES = [(1, 1, 8), (2, 1, 4), (3, 2, 5), (4, 4, 8), (1, 8, 16)]  # TM, TN, BK in gemm.cu


# --- any shape, any geometry


@pytest.fixture(scope="module")
def gemm() -> Path:
    return compiled(kernels("gemm.cu"))[1] / "sgemm.ptx"


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 70)] * 3),
    block=st.tuples(st.integers(1, 40), st.integers(1, 12)),
    tile=st.sampled_from(TILES),
    spare=st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_any_geometry_agrees_with_numpy(
    gemm: Path,
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
        (-(-m // bm) + spare[0], -(-n // bn) + spare[1]),
        block,
        [a, b, Output(c), m, n, k],
        shared=4 * bk * (bm + bn),
        limits=LIMITS,
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
    device: Path  # PTX
    host: ctypes.CDLL


def compile_fragments(folder: Path, seeds: range, *, directed: bool) -> Fragments:
    text, bodies = program(seeds, directed=directed)
    includes = f'#include "{FRAGMENTS}/{{}}"\n#include "{FRAGMENTS}/common.cuh"\n'
    calls = "".join(kernels("fragment.cu", seed=seed) for seed in seeds)
    loops = "".join(kernels("fragment.cpp", seed=seed) for seed in seeds)
    device = includes.format("device.cuh") + text + calls
    ptx = compiled(device, flags="-fmad=false -w")[1] / "sgemm.ptx"
    source, library = folder / "host.cpp", folder / "host.so"
    source.write_text(includes.format("intrinsics.hpp") + text + loops)
    gxx = ["g++", "-std=c++17", "-O1", "-fwrapv", "-shared", "-fPIC"]
    exact = ["-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing", "-w"]
    subprocess.run([*gxx, *exact, "-o", library, source], check=True)
    return Fragments(dict(zip(seeds, bodies, strict=True)), ptx, ctypes.CDLL(str(library)))


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
            -(-rows // 96),
            96,
            [given_values, np.zeros(1, np.int64), Output(got), rows],
            limits=LIMITS,
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


@pytest.mark.sampled
def test_arithmetic_agrees_with_the_host_bit_for_bit(tmp_path: Path) -> None:
    assert disagreements(compile_fragments(tmp_path, NEAREST, directed=False)) == ""


def test_directed_rounding_agrees_with_the_host_bit_for_bit(tmp_path: Path) -> None:
    assert disagreements(compile_fragments(tmp_path, DIRECTED, directed=True)) == ""
