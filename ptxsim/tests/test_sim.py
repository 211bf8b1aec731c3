"""The simulator on kernels that nvcc compiled: values as the GPU would give, findings by line.

The kernels are in kernels/sim.cu.
"""

from typing import Any

import numpy as np
import pytest

import harness
from harness import kernels, sentence, values
from ptxsim.findings.finding import Severity
from ptxsim.outcome import RefusedProgram, SimOutcome

SOURCE = kernels("sim.cu")


def run(kernel: str, arrays: list[np.ndarray], threads: int = 32, **launch: Any) -> SimOutcome:
    block = (threads, 1, 1)
    return harness.run(SOURCE, arrays, block=block, arch="sm_90", kernel=kernel, **launch)


def line_of(mark: str) -> int:
    lines = SOURCE.splitlines()
    return next(i for i, text in enumerate(lines, 1) if text.endswith(f"// {mark}"))


def only(outcome: SimOutcome, kind: str) -> str:
    """What users are told of the one finding there is."""
    assert [f.kind for f in outcome.findings] == [kind], outcome.findings
    return sentence(outcome.findings[0])


def floats(count: int) -> np.ndarray:
    return np.arange(1, count + 1, dtype=np.float32)


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.float32)


# --- control flow


FIBONACCI = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
SWITCHED = (np.arange(34, dtype=np.int32) * 7) % 15


@pytest.mark.parametrize(
    ("kernel", "threads", "a", "want"),
    [
        ("breaks_out", 64, np.zeros(64, np.int32),
         [sum(2 * i if i % 3 == 0 else i for i in range(t)) for t in range(64)]),
        ("switches", 32, SWITCHED, [int(x * x + 1) if x < 12 else -1 for x in SWITCHED[:32]]),
        ("recursion", 32, np.zeros(32, np.int32), [FIBONACCI[t % 11] for t in range(32)]),
        ("braces_of_assembly", 32, np.arange(32, dtype=np.int32),
         [n * (n - 1) // 2 + 500 * (n + 1) * n + n for n in range(32)]),
        ("block_wide_votes", 96, np.array([i % 3 == 0 for i in range(96)], np.int32), [1032] * 96),
    ],
)  # fmt: skip
def test_control_flow(kernel: str, threads: int, a: np.ndarray, want: list[int]) -> None:
    b = np.zeros(threads + 2, np.int32)
    outcome = run(kernel, [a, b], threads, seconds=5)
    assert b[:threads].tolist() == want
    assert outcome.stopped is None
    # Lanes of the switch write b[33] together.
    assert outcome.findings == () or kernel == "switches"


# --- arithmetic that nvcc emits seldom


def test_products_with_a_carry() -> None:
    """64 · 64 + 64 bits in pieces of 32."""
    a = np.random.default_rng(1).integers(0, 2**32, (32, 6), np.uint32)
    a[:4] = 2**32 - 1
    b = np.zeros((32, 4), np.uint32)
    assert run("carries", [a, b]).findings == ()
    for row, got in zip(a, b, strict=True):
        x, y, z = (int.from_bytes(part.tobytes(), "little") for part in row.reshape(3, 2))
        assert int.from_bytes(got.tobytes(), "little") == x * y + z


@pytest.mark.parametrize(("kind", "shift"), [("f16", 0), ("bf16", 16)])
def test_halves_are_rounded_in_the_direction_asked_for(kind: str, shift: int) -> None:
    random = np.random.default_rng(3)
    values = random.standard_normal(256, np.float32) * 10.0 ** random.integers(-9, 6, 256)
    values[:4] = 70000, -70000, 3.4e38, -3.4e38
    a = values.astype(np.float32)
    b = np.zeros((256, 3), np.uint16)
    assert run(f"rounded_to_{kind}", [a, b], 256).findings == ()
    bits = np.arange(65536, dtype=np.uint32)
    every = (bits << shift).view(np.float32) if shift else bits.astype(np.uint16).view(np.float16)
    known = np.unique(every[~np.isnan(every)].astype(np.float64))
    below = known[np.searchsorted(known, a.astype(np.float64), "right") - 1]
    above = known[np.searchsorted(known, a.astype(np.float64), "left")]
    got = every[b].astype(np.float64)
    assert (got[:, 0] == below).all()
    assert (got[:, 1] == np.where(a > 0, below, above)).all()
    assert (got[:, 2] == above).all()


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(7)
    a = (rng.standard_normal(12288) * np.exp2(rng.integers(-20, 20, 12288))).astype(np.float32)
    a[8192:] = -(a[:4096].astype(np.float64) * a[4096:8192]).astype(np.float32)  # cancellation
    b = zeros(4096)
    run("multiplies_and_adds", [a, b], 256, grid=(16, 1, 1))
    exact = a[:4096].astype(np.float64) * a[4096:8192] + a[8192:].astype(np.float64)
    assert b.tolist() == exact.astype(np.float32).tolist()


def test_half_precision_matches_numpy() -> None:
    rng = np.random.default_rng(5)
    a = (rng.standard_normal(512) * np.exp2(rng.integers(-20, 14, 512))).astype(np.float32)
    b = zeros(768)
    run("half_precision", [a, b], 256)
    with np.errstate(over="ignore"):
        x, y = a[:256].astype(np.float16), a[256:].astype(np.float16)
        want = np.concatenate([x + y, x * y, x]).astype(np.float32)
    assert b.tolist() == want.tolist()


def test_tensor_core_product_of_tf32() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    c = np.zeros((16, 8), np.float32)
    outcome = run("product_of_tf32", [a, b, c])
    assert (c == a @ b).all()
    assert "mma.sync" in only(outcome, "tensor-core")
    assert outcome.findings[0].severity is Severity.NOTE


# --- clocks, multiprocessors, what there is not


def test_time_goes_on_and_blocks_sit_on_different_multiprocessors() -> None:
    b = np.full(8, 77, np.uint64)
    outcome = run("clocks", [np.zeros(1, np.uint64), b], 64, grid=(4, 1, 1))
    assert outcome.findings == () and outcome.stopped is None
    assert b.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_unknown_instruction_names_itself_and_its_line() -> None:
    words = rf"mma\.sp.*sgemm\.cu:{line_of('unknown instruction')}"
    with pytest.raises(RefusedProgram, match=words):
        run("unknown_instruction", [floats(1), floats(1)])


# --- barriers


def test_threads_that_returned_do_not_hold_a_barrier() -> None:
    outcome = run("returns_early", [floats(64), zeros(64)], 64)
    assert outcome.stopped is None
    assert outcome.findings == ()


def test_named_partial_barriers_order_only_who_takes_part() -> None:
    outcome = run("partial_barriers", [floats(32), zeros(64)], 96)
    assert only(outcome, "race").startswith("in shared memory")
    assert outcome.findings[0].place.line == line_of("takes no part")


def test_deadlock_is_told_apart_from_a_slow_kernel() -> None:
    outcome = run("deadlock", [floats(64), zeros(64)], 64)
    assert outcome.stopped == "deadlock"
    assert outcome.findings[0].place.line == line_of("deadlock")


# --- races


@pytest.mark.parametrize(("kernel", "races"), values("shared_races.txt"))
def test_shared_race_needs_the_right_barrier(kernel: str, races: bool) -> None:
    outcome = run(kernel, [floats(64), zeros(64)], 64)
    assert [f.kind for f in outcome.findings if f.severity is Severity.ERROR] == (
        ["race"] if races else []
    ) or (races and {f.kind for f in outcome.findings} <= {"race", "uninitialized-read"})
    if races:
        assert {f.place.line for f in outcome.findings} <= {line_of("write"), line_of("read")}


# --- memory


def test_out_of_bounds_names_array_distance_and_thread() -> None:
    outcome = run("past_the_end", [floats(32), zeros(32)])
    message = only(outcome, "out-of-bounds")
    assert "block (0,0,0) thread (31,0,0) reads 4 bytes at A[32]" in message
    assert "just past the end of the 128-byte allocation A" in message
    assert outcome.findings[0].place.line == line_of("past the end")


def test_undefined_values_are_followed_to_the_result() -> None:
    outcome = run("never_written", [floats(32), floats(32), zeros(32)])
    assert outcome.findings[0].kind == "uninitialized-read"
    assert outcome.findings[0].place.line == line_of("never written")
    assert outcome.findings[0].thread == (16, 0, 0)


# --- copies, one of them plain


@pytest.mark.parametrize(("kernel", "says", "threads"), values("reversing.txt"))
def test_reversing_through_shared_memory(kernel: str, says: str | None, threads: int) -> None:
    b = zeros(threads)
    outcome = run(kernel, [floats(threads), b], threads)
    if says is None:
        assert outcome.findings == ()
        assert b.tolist() == floats(threads)[::-1].tolist()
        return
    assert any(says in sentence(f) for f in outcome.findings)
    if kernel.startswith("copy"):
        # A copy still under way at the read may hide behind the line of the copy itself.
        assert {f.place.line for f in outcome.findings} <= {
            line_of("copy"),
            line_of("read of the copy"),
        }


# --- warps


def test_shuffles_votes_and_matches() -> None:
    a = np.arange(1, 33, dtype=np.int32) * 3 % 17
    b = np.zeros(256, np.int32)
    outcome = run("warps", [a, b])
    t = np.arange(32)
    assert outcome.findings == ()
    assert (b[:32] == a.sum()).all()
    assert b[32:64].tolist() == np.where(t % 8 >= 3, a[np.maximum(t - 3, 0)], a).tolist()
    assert b[64:96].tolist() == np.where(t + 5 < 32, a[np.minimum(t + 5, 31)], a).tolist()
    assert b[96:128].tolist() == a[t // 16 * 16 + (t + 1) % 16].tolist()
    assert b.view(np.uint32)[128] == sum(1 << i for i in range(32) if a[i] & 1)
    assert b.view(np.uint32)[160] == sum(1 << i for i in range(32) if a[i] % 4 == a[0] % 4)
    assert b[192] == a.max()
    assert b[224] == (1 if 3 in a else 0) + 2 * int((a > 0).all())


# --- counts


def test_counts_of_a_copy() -> None:
    outcome = run("copies", [floats(512), zeros(64)], 64)
    line = next(c for c in outcome.lines if c.line == line_of("counted"))
    assert line.global_requests == 4  # two warps, a load and a store each
    assert line.global_sectors == 2 * (32 + 4)
    assert line.global_bytes == 64 * 8


@pytest.mark.parametrize(("kernel", "mark", "wavefronts"), values("bank_conflicts.txt"))
def test_bank_conflicts(kernel: str, mark: str, wavefronts: int) -> None:
    """Lanes that take no part object to no shared pass."""
    outcome = run(kernel, [floats(128), zeros(32)])
    line = next(c for c in outcome.lines if c.line == line_of(mark))
    assert line.shared_requests == 1
    assert line.shared_wavefronts == wavefronts


# --- mbarrier


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("kernel", "clean"),
    [
        ("barrier_right", True),
        ("barrier_not_waited_at", False),
        ("barrier_not_seen", False),
        ("barrier_made_twice", True),  # every warp makes the same one
        pytest.param("barrier_made_twice_not_seen", False, marks=pytest.mark.slow),
    ],
)
def test_cuda_barrier(kernel: str, clean: bool) -> None:
    a, b = floats(256), zeros(256)
    outcome = run(kernel, [a, b], 64, seconds=5)
    assert (outcome.findings == () and outcome.stopped is None) == clean, outcome.findings
    if clean:
        assert (b.reshape(4, 64) == a.reshape(4, 64)[:, ::-1]).all()
