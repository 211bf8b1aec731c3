"""Kernels on tensor cores, with TMA, mbarriers and clusters: right ones, and wrong ones.

The kernels are in kernels/tensor_cores.cu; a wrong one is wrong where a line says BAD.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import compiled, kernels, launch, sentence, table
from harness import run as run_source
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, FindingKind, Severity
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.tensor_maps import DataType, Swizzle, TensorMap

SOURCE = Path(__file__).parent / "kernels" / "tensor_cores.cu"
Halves = NDArray[np.float16]


@pytest.fixture(scope="module")
def ptx() -> Path:
    _, folder = compiled(SOURCE.read_text(), "sm_90a", SOURCE.stem)
    return folder / f"{SOURCE.stem}.ptx"


def halves(*shape: int) -> Halves:
    return np.random.default_rng(5).integers(-4, 5, shape).astype(np.float16)


def tensor(array: Halves, box: tuple[int, int], swizzle: Swizzle = Swizzle.NONE) -> TensorMap:
    rows, columns = array.shape
    return TensorMap(array, DataType.FLOAT16, (columns, rows), (2 * columns,), box, swizzle=swizzle)


def seen(outcome: SimOutcome) -> list[Finding]:
    return [found for found in outcome.findings if found.kind is not FindingKind.TENSOR_CORE]


@cache
def bad_lines() -> dict[str, set[int]]:
    """Of every kernel."""
    found: dict[str, set[int]] = {}
    kernel = ""
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if text.startswith("KERNEL "):
            kernel = text.replace("__cluster_dims__(2, 1, 1) ", "").split("(")[0].split()[-1]
        if text.endswith("// BAD"):
            found.setdefault(kernel, set()).add(number)
    return found


# --- whole products


@pytest.mark.sampled
@pytest.mark.parametrize(("kernel", "columns"), [("gemm_wmma", 16), ("gemm_mma", 8)])
def test_products_of_warps(ptx: Path, kernel: str, columns: int) -> None:
    m, n, k = 32, 48, 64
    a, b, c = halves(m, k), halves(k, n), np.zeros((m, n), np.float32)
    outcome = launch(ptx, kernel, (n // columns, m // 16), 32, [a, b, c, n, k])
    assert not seen(outcome)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_a_product_by_wgmma_and_tma(ptx: Path) -> None:
    m, n, k = 128, 24, 320
    a, b, c = halves(m, k), halves(n, k), np.zeros((m, n), np.float32)
    maps = tensor(a, (64, 64), Swizzle.BYTES_128), tensor(b, (64, 8), Swizzle.BYTES_128)
    outcome = launch(ptx, "gemm_wgmma", (n // 8, m // 64), 128, [*maps, c, n, k])
    assert not seen(outcome)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


# --- small kernels


def run(ptx: Path, kernel: str) -> tuple[SimOutcome, list[NDArray[np.generic]]]:
    """One launch; the kernel's name says which arguments it takes."""
    threads, grid = 128, 1
    text = SOURCE.read_text()
    first = text.split(f" {kernel}(")[1].split("{")[0]
    arrays: list[NDArray[np.generic]]
    if first.startswith("const __grid_constant__ Map"):
        matrix, other = halves(64, 64), np.zeros(2048, np.float16)
        arguments = [tensor(matrix, (32, 32)), other]
        arrays = [matrix, other]
    elif "half* C" in first:
        arrays = [halves(64), np.zeros(2048, np.float16)]
        arguments, threads = list(arrays), 32
    else:
        arrays = [halves(1024), halves(128), np.zeros(512, np.float32)]
        arguments = list(arrays)
        warps = kernel.startswith(("half_a_warp", "ldmatrix", "wmma_", "stmatrix", "mma_"))
        threads = 32 if warps else 128
        threads = 64 if kernel == "ldmatrix_without_sync" else threads
    if f"__cluster_dims__(2, 1, 1) {kernel}(" in text:
        grid = 2
    limits = SimLimits(seconds=20.0, steps=1 << 22)
    outcome = launch(ptx, kernel, grid, threads, arguments, limits=limits)
    return outcome, arrays


def by_wgmma(arrays: list[NDArray[np.generic]]) -> bool:
    a, b, c = arrays
    want = a.reshape(64, 16).astype(np.float32) @ b.reshape(8, 16).T.astype(np.float32)
    return bool((c.reshape(64, 8) == want).all())


def halves_of(array: NDArray[np.generic], rows: int) -> Halves:
    return array.reshape(-1).view(np.float16)[: rows * 16].reshape(rows, 16)


RIGHT = {
    "wgmma_right": by_wgmma,
    "wgmma_a_in_registers": by_wgmma,
    "tile_overwritten_after_the_wait": by_wgmma,
    "padding_never_written": lambda of: (
        (of[2].reshape(64, 8)[:48] == (of[0].reshape(64, 16) @ of[1].reshape(8, 16).T)[:48]).all()
    ),
    "wmma_scales_elements": lambda of: (
        (halves_of(of[2], 16) == 2 * halves_of(of[0], 16).T @ halves_of(of[0][256:], 16).T).all()
    ),
    "stmatrix_transposes": lambda of: (
        of[2].view(np.float16)[:256].reshape(4, 8, 8)
        == of[0][:256].reshape(4, 8, 8).transpose(0, 2, 1)
    ).all(),
    "mma_m8n8k4": lambda of: (
        of[2][:256].reshape(4, 8, 8)
        == of[0][:128].reshape(4, 8, 4) @ of[0][256:384].reshape(4, 8, 4).transpose(0, 2, 1)
    ).all(),
    "copies_a_tile": lambda of: (of[1][:1024].reshape(32, 32) == of[0][32:, 32:]).all(),
    "copies_an_edge": lambda of: (
        of[1][:1024].reshape(32, 32)
        == np.pad(of[0], ((16, 0), (0, 16)))[:32, 48:80]
    ).all(),
    "stores_a_tile": lambda of: (of[0][:32, 32:] == of[1][:1024].reshape(32, 32)).all(),
    "exchanges": lambda of: (
        of[1].view(np.int32)[:64].tolist() == [*range(100, 132), *range(32)]
    ),
    "copies_what_was_stored": lambda of: (of[1][32:64] == of[0][:32]).all(),
    "passes_on": lambda of: (of[2][:32] == 7 * np.arange(32)).all(),
    "multicasts": lambda of: (
        (of[1].reshape(2, 32, 32) == of[0][32:, 32:]).all()
    ),
    "refills": lambda of: (
        (of[1].reshape(2, 32, 32) == 3 * of[0][:32, 32:]).all()
    ),
}  # fmt: skip
RIGHT |= {kernel: RIGHT[like] for kernel, like in table("right_tensor_cores.txt")}


@pytest.mark.parametrize("kernel", RIGHT)
def test_right_kernels(ptx: Path, kernel: str) -> None:
    outcome, arrays = run(ptx, kernel)
    assert not seen(outcome), [sentence(each) for each in seen(outcome)]
    assert outcome.stopped is None and RIGHT[kernel](arrays)


HANG = Event.MBARRIER_NEVER_COMPLETES
WRONG = {kernel: (Event[event], says) for kernel, event, says in table("wrong_tensor_cores.txt")}
ALSO_HANGS = {"refills_without_asking_the_peer"}  # with two tiles in one phase
WARNINGS = ("STORE_UNDER_WAY", "UNUSED_RACE", "WARPS_NOT_ORDERED", "WGMMA_REGISTERS_SET")
WARNINGS += ("MBARRIER_NOT_FENCED", "PROXY_FENCE_AFTER_READ")


@pytest.mark.parametrize("kernel", WRONG)
def test_wrong_kernels_are_told_what_is_wrong(ptx: Path, kernel: str) -> None:
    event, says = WRONG[kernel]
    outcome, _ = run(ptx, kernel)
    found = [each for each in seen(outcome) if each.event is event]
    assert found, [sentence(each) for each in seen(outcome)]
    assert says in sentence(found[0])
    assert found[0].severity is (Severity.WARNING if event.name in WARNINGS else Severity.ERROR)
    assert found[0].place is not None
    assert found[0].place.line in bad_lines()[kernel], sentence(found[0])
    hangs = event in (HANG, Event.DEADLOCK) or kernel in ALSO_HANGS
    assert (outcome.stopped == "deadlock") == hangs


def test_a_hang_names_the_line_of_its_mbarrier(ptx: Path) -> None:
    (found,) = seen(run(ptx, "too_many_arrivals_wanted")[0])
    text = SOURCE.read_text().splitlines()
    assert found.there is not None and "INIT(&done, 128)" in text[found.there.line - 1]


@pytest.mark.slow
def test_who_calls_memcpy_async_need_not_know_of_its_bulk_copy() -> None:
    made, out = np.random.default_rng(3).random(64, np.float32), np.zeros(64, np.float32)
    source = kernels("library_copy.cu")
    text, _ = compiled(source, "sm_90")
    assert "cp.async.bulk" in text
    assert run_source(source, [made, out], block=(64, 1, 1), arch="sm_90").findings == ()
    assert (out == made[::-1]).all()


# --- tensor maps


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"extents": (64, 0)}, "every globalDim must be 1 to"),
        ({"strides": (72,)}, "multiple of 16 bytes"),
        ({"box": (257, 1)}, "every boxDim must be 1 to 256"),
        ({"box": (12, 1)}, "boxDim[0] must be a multiple of 16 bytes"),
        ({"box": (64, 8), "swizzle": Swizzle.BYTES_64}, "the span of the swizzle"),
        ({"steps": (1, 9)}, "every elementStride must be 1 to 8"),
        ({"type": DataType.INT32, "fills_nan": True}, "not of floating point"),
    ],
)
def test_tensor_maps_that_the_driver_refuses(
    ptx: Path, change: dict[str, object], says: str
) -> None:
    fields: dict[str, object] = {
        "array": halves(64, 64),
        "type": DataType.FLOAT16,
        "extents": (64, 64),
        "strides": (128,),
        "box": (32, 32),
    }
    with pytest.raises(ValueError, match="cuTensorMapEncodeTiled") as refused:
        given = TensorMap(**fields | change)  # type: ignore[arg-type]
        launch(ptx, "copies_a_tile", 1, 128, [given, halves(2048)])
    assert says in str(refused.value)


def test_tensor_maps_that_lie(ptx: Path) -> None:
    """More rows than the allocation has; bytes that are no map; too few dimensions."""
    array = halves(64, 64)
    long = TensorMap(array, DataType.FLOAT16, (64, 128), (128,), (32, 32))
    outcome = launch(ptx, "copies_an_edge", 1, 128, [long, halves(2048)])
    assert not seen(outcome)  # what the tile holds of it is there
    short = TensorMap(array[:40], DataType.FLOAT16, (64, 64), (128,), (32, 32))
    (found,) = seen(launch(ptx, "copies_a_tile", 1, 128, [short, halves(2048)]))
    assert found.event is Event.OUT_OF_BOUNDS and "past the end" in sentence(found)
    for bad, says in ((bytes(128), "invalid tensor map"), (None, "of 1 dimensions")):
        line = TensorMap(array, DataType.FLOAT16, (4096,), (), (32,))
        given = line if bad is None else bad
        outcome = launch(ptx, "copies_a_tile", 1, 128, [given, halves(2048)])
        found = next(each for each in seen(outcome) if each.event is Event.BAD_TENSOR_MAP)
        assert says in sentence(found)
