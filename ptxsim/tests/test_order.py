"""What orders accesses and what does not: barriers, exits, flags between blocks, warp operations.

The kernels are in kernels/order.cu; each is right, or wrong in one way where lines say BAD.
"""

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import allocated, compiled, engine, launched, planned, run, sentence, table, values
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, Severity
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.plan.records import Allocation, Free, Memset, Operation, Synchronise
from ptxsim.sampling import Sampler
from ptxsim.simulator import Simulator
from ptxsim.streams import (
    READ,
    READ_STRONGLY,
    WRITTEN,
    WRITTEN_STRONGLY,
    Use,
    Watch,
    launch_use,
    rows_use,
    unordered,
)

KERNELS = (Path(__file__).parent / "kernels" / "order.cu").read_text()


def watch(
    kernel: str, blocks: int, threads: int, scalars: tuple[int, ...] = (), **launch: Any
) -> tuple[SimOutcome, np.ndarray, np.ndarray]:
    a = np.arange(64 * 256, dtype=np.float32)
    b = np.zeros(64 * 256, np.float32)
    if kernel == "tiles_of_a_warp":
        a, b = a.astype(np.int32), b.astype(np.int32)
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    return run(KERNELS, [a, b], scalars, grid, block, kernel=kernel, **launch), a, b


def bad_lines(kernel: str) -> set[int]:
    """Of ``kernel`` and the functions between it and the kernel before."""
    lines, found = KERNELS.splitlines(), set()
    for number, text in enumerate(lines, 1):
        if text.startswith("KERNEL ") and not text.startswith(f"KERNEL {kernel}("):
            if f"KERNEL {kernel}(" in "\n".join(lines[:number]):
                break
            found = set()
        if text.endswith("// BAD"):
            found.add(number)
    return found


# In most other orders no_barrier_behind_the_flag writes equal values, which is but a warning.
ORDERS: dict[str, dict[str, int]] = {
    "forwards": {},
    "backwards": {"turn": 1},
    "shuffled": {"seed": 5},
}
RIGHT = {kernel: row for kernel, *row in values("right_order.txt")}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", RIGHT)
def test_right_kernels_are_not_accused(kernel: str, order: str) -> None:
    blocks, threads, *scalars = RIGHT[kernel]
    outcome, a, b = watch(kernel, blocks, threads, *scalars, **ORDERS[order])
    assert outcome.findings == () and outcome.stopped is None
    match kernel:
        case "last_block_adds":
            assert b[:64].tolist() == (8 * a[:64]).tolist()
        case (
            "flags_in_a_chain"
            | "later_blocks_first"
            | "volatile_data_behind_the_flag"
            | "asks_by_a_function"
            | "asks_by_shared_memory"
        ):
            assert b[:64].tolist() == (blocks * a[:64]).tolist()
        case "sides_of_a_branch_exchange":
            low, middle, high = a[:16], 2 * a[16:24], a[24:32]
            expected = (middle, -high, low[8:], -low[8:])
            assert b[:32].tolist() == np.concatenate(expected).tolist()
        case "lanes_take_a_lock_in_turn":
            assert b[:64].tolist() == [a[:64].sum()] * 64
        case "grid_barriers":
            t = np.arange(blocks * 64)
            assert a[: blocks * 64].tolist() == ((t + 4 * 64) % (blocks * 64) + 4).tolist()
        case "tiles_of_four_warps":
            tiles = a[:256].reshape(2, 128)
            assert b[:256].tolist() == np.repeat(tiles.sum(axis=1) - tiles[:, 0], 128).tolist()
        case "tiles_of_a_warp":
            tile = np.arange(32) // 8
            sums = a[:32].reshape(4, 8).sum(axis=1)[tile] + (tile == 0)
            assert (b[:32].view(np.uint32) == sums + (0xFF << 8 * tile)).all()


WRONG = {kernel: row for kernel, *row in values("wrong_order.txt")}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", WRONG)
def test_wrong_kernels_are_told_what_is_wrong(kernel: str, order: str) -> None:
    blocks, threads, name, says, *scalars = WRONG[kernel]
    event = Event[name]
    outcome, _, _ = watch(kernel, blocks, threads, *scalars, **ORDERS[order])
    found = [f for f in outcome.findings if f.event is event]
    assert found, outcome.findings
    assert says in sentence(found[0])
    assert found[0].place is not None and found[0].place.line in bad_lines(kernel)
    legal = event.severity is Severity.WARNING or says == "double work"
    assert (found[0].severity is Severity.WARNING) == legal
    if legal:
        assert len(outcome.findings) == 1


def test_blocks_that_wait_for_each_other_must_all_fit() -> None:
    outcome, _, _ = watch("grid_barriers", 200, 64, resident=(132,))
    (found,) = outcome.findings
    assert found.event is Event.NOT_ALL_RESIDENT and outcome.stopped == "deadlock"
    assert "132 blocks fit on the GPU at the same time, 200 were launched" in sentence(found)
    assert found.place is not None and found.place.line in bad_lines("grid_barriers")


def test_grid_sync() -> None:
    outcome, a, _ = watch("grid_syncs", 132, 64, resident=(132,), cooperative=True)
    assert outcome.findings == () and outcome.stopped is None
    t = np.arange(132 * 64)
    assert a[: 132 * 64].tolist() == ((t + 4 * 64) % (132 * 64) + 4).tolist()


def test_a_grid_sync_that_is_missing() -> None:
    outcome, _, _ = watch("one_grid_sync_too_few", 3, 64, cooperative=True)
    found = outcome.findings[0]
    assert found.event is Event.RACE and "between blocks" in sentence(found)
    assert found.place is not None and found.place.line in bad_lines("one_grid_sync_too_few")


@pytest.mark.parametrize("cooperative", [False, True])
def test_only_a_cooperative_launch_has_a_grid(cooperative: bool) -> None:
    outcome, _, b = watch("asks_for_a_grid", 2, 64, cooperative=cooperative)
    assert outcome.findings == () and b[:64].tolist() == [cooperative] * 64
    outcome, _, _ = watch("grid_syncs", 2, 64, cooperative=cooperative)
    assert [f.event for f in outcome.findings] == ([] if cooperative else [Event.TRAP])


def test_a_block_alone_passes_grid_sync() -> None:
    """When blocks are sampled, the others never come."""
    memory = allocated(*(4 * 64 * 132,) * 3)
    shape = {"grid": (132, 1, 1), "block": (64, 1, 1)}
    launch = launched("grid_syncs", memory[2], memory[1], **shape, cooperative=True)
    plan = planned(memory, launch)
    ptx, folder = compiled(KERNELS, "sm_80")
    (sample,) = Sampler(ptx, folder, engine()).sample(plan, 20.0)
    assert sample.complete and sample.blocks == 4
    turns = 4 * 4 * 2 * 2  # of blocks, steps, barriers and looks; blocks have two warps
    assert max(row.warps for row in sample.rows) <= turns


def test_blocks_that_do_not_wait_need_not_fit() -> None:
    outcome, _, b = watch("last_block_adds", 200, 64, resident=(1,))
    assert outcome.findings == () and b[3] == 600


@pytest.mark.parametrize(("stack", "events"), [(1024, [Event.STACK_OVERFLOW]), (8192, [])])
def test_a_larger_stack_takes_deeper_calls(stack: int, events: list[Event]) -> None:
    outcome, _, _ = watch("recursion", 1, 32, (40,), stack=stack)
    assert [found.event for found in outcome.findings] == events


# --- programmatic launches: what comes before griddepcontrol.wait, against kernels that still run


THREADS, BLOCKS = 64, 4
N = THREADS * BLOCKS

PROGRAMMATIC = (Path(__file__).parent / "kernels" / "dependency.cu").read_text()


@cache
def simulator() -> Simulator:
    ptx, folder = compiled(PROGRAMMATIC, "sm_90")
    return Simulator(ptx, folder, engine())


def outcome_of(*kernels: str) -> SimOutcome:
    """One call that launches ``kernels``, those with a + in front programmatically."""
    arrays = [np.arange(N, dtype=np.float32), *np.zeros((2, N), np.float32), np.zeros(1, np.int32)]
    allocations = allocated(*(array.nbytes for array in arrays))
    shape = {"grid": (BLOCKS, 1, 1), "block": (THREADS, 1, 1)}
    operations = (
        launched(k.removeprefix("+"), *allocations, **shape, programmatic=k.startswith("+"))
        for k in kernels
    )
    plan = planned(allocations, *operations, inputs=4, outputs=0)
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    return simulator().run(plan, buffers, SimLimits(seconds=20))


def line(kernel: str) -> int:
    """The marked line of ``kernel``."""
    lines = PROGRAMMATIC.splitlines()
    (first,) = (k for k, text in enumerate(lines) if f" {kernel} ARGS" in text)
    return next(k for k, text in enumerate(lines[first:], first + 1) if text.endswith("// BAD"))


def early(outcome: SimOutcome) -> list[Finding]:
    assert outcome.stopped is None
    return [each for each in outcome.findings if each.event is Event.BEFORE_GRID_WAIT]


LAUNCHES = [(says, tuple(kernels.split())) for says, kernels in table("dependency.txt")]
ON_TIME = [kernels for says, kernels in LAUNCHES if says == "right"]
TOO_EARLY = [kernels for says, kernels in LAUNCHES if says == "wrong"]


@pytest.mark.parametrize("kernels", ON_TIME, ids=" ".join)
def test_who_waits_is_not_accused(kernels: tuple[str, ...]) -> None:
    outcome = outcome_of(*kernels)
    assert outcome.findings == () and outcome.stopped is None


@pytest.mark.parametrize("kernels", TOO_EARLY, ids=" ".join)
def test_what_is_done_too_early(kernels: tuple[str, ...]) -> None:
    (found,) = early(outcome_of(*kernels))
    assert found.severity is Severity.ERROR
    assert found.place is not None and found.place.line == line(kernels[-1].removeprefix("+"))


def test_the_sentence_says_what_the_kernel_before_may_do() -> None:
    (reads,) = early(outcome_of("pack", "+no_wait"))
    assert "reads B[" in sentence(reads)
    assert "may still be writing there" in sentence(reads)
    (writes,) = early(outcome_of("reads_out", "+writes_out_before"))
    assert "writes C[" in sentence(writes)
    assert "may still be reading there" in sentence(writes)


def test_the_time_limit_holds_between_launches() -> None:
    array = np.zeros(1 << 20, np.uint8)
    memory = Allocation(name="a", address=1 << 32, size=array.nbytes)
    fill = Memset(allocation=0, delta=0, value=1, size=array.nbytes)
    plan = planned((memory,), *(fill,) * 100_000, inputs=1, outputs=0)
    outcome = simulator().run(plan, {0: array}, SimLimits(seconds=0.2))
    assert outcome.stopped == "time"


# --- streams


CELL = 4


def memset(after: tuple[int, ...] | None = None) -> Memset:
    return Memset(allocation=2, delta=0, value=0, size=4, after=after)


@pytest.mark.parametrize(
    ("operations", "rivals"),
    [
        ((memset(), memset(), memset()), [0, 0, 0]),
        ((memset(), memset(()), memset((1,))), [0, 0b1, 0b1]),
        ((memset(), memset(()), memset((2, 1)), memset((1,))), [0, 0b1, 0, 0]),
        ((memset(), memset(()), Synchronise(after=(1,)), memset(())), [0, 1, 1, 1]),
        ((memset(), memset(()), Synchronise(), memset(())), [0, 1, 0, 0]),
        ((memset(), Free(allocation=3), memset(())), [0, 0, 0]),
        ((memset(), Free(allocation=3, ordered=True), memset(())), [0, 0, 0b11]),
        ((memset((7, -1)), memset((2, 0))), [0, 1]),  # forged
    ],
)
def test_what_is_unordered(operations: tuple[Operation, ...], rivals: list[int]) -> None:
    assert unordered(operations) == rivals


STRONG, ASKED = WRITTEN_STRONGLY, READ_STRONGLY


def used(*cells: int) -> Use:
    use = launch_use(0, np.array(cells, np.uint8), CELL)
    assert use is not None
    return use


def rows(start: int, end: int, count: int, pitch: int) -> Use:
    return rows_use(Use(0, start, end, True), count, pitch, CELL)


RACES = [
    ("a read and a write", used(READ), used(WRITTEN), True),
    ("two reads", used(READ), used(READ), False),
    ("two writes", used(WRITTEN), used(WRITTEN), True),
    ("neighbours", used(WRITTEN, 0, WRITTEN), used(0, WRITTEN), False),
    ("the last of several", used(0, READ, 0, READ), used(0, 0, 0, WRITTEN), True),
    ("atomics", used(STRONG), used(STRONG), False),
    ("atomics that nobody reads, and a race", used(STRONG, WRITTEN), used(STRONG, READ), True),
    ("atomics that may order the rest", used(STRONG, WRITTEN), used(STRONG | ASKED, READ), False),
    ("an atomic and a read", used(STRONG), used(READ), True),
    ("a flag that may order the rest", used(STRONG, WRITTEN), used(ASKED, READ), False),
    ("a memset of a part", used(0, READ), Use(0, 5, 9, True), True),
    ("a memset of the rest", used(READ, 0, READ), Use(0, 4, 8, True), False),
    ("a memset and atomics", used(STRONG), Use(0, 0, 4, True), True),
    ("a copy that reads", used(READ), Use(0, 0, 4, False), False),
    ("rows between", used(WRITTEN, 0, 0, WRITTEN), rows(4, 8, 3, 12), False),
    ("rows that meet", used(0, 0, WRITTEN), rows(4, 9, 3, 12), True),
    ("rows beside each other", rows(0, 5, 3, 12), rows(8, 10, 3, 12), False),
    ("rows over each other", rows(0, 8, 3, 12), rows(18, 20, 1, 12), True),
    ("two memsets", Use(0, 0, 6, True), Use(0, 6, 9, True), False),
    ("two memsets that meet", Use(0, 0, 7, True), Use(0, 6, 9, True), True),
    ("elsewhere", Use(0, 0, 7, True), Use(1, 0, 7, True), False),
]


@pytest.mark.parametrize(
    ("one", "other", "race"), [r[1:] for r in RACES], ids=[r[0] for r in RACES]
)
def test_what_races(one: Use, other: Use, race: bool) -> None:
    for first, second in ((one, other), (other, one)):
        watch = Watch((memset(), memset(())), CELL)
        assert watch.watches(0) and watch.watches(1)
        assert watch.races(0, [first]) == []
        assert watch.races(1, [second]) == ([(0, 0)] if race else [])


def test_one_stream_is_not_watched() -> None:
    watch = Watch((memset(), memset()), CELL)
    assert not (watch.watches(0) or watch.watches(1))


def test_thousands_of_streams_are_watched_in_little_time() -> None:
    """The first half comes after nothing, the second after nothing but the last of the first."""
    count = 5000
    operations = tuple(memset(()) for _ in range(count))
    ordered = tuple(memset((place + 1,)) for place in range(count - 1))
    started = time.process_time()
    watch = Watch((*operations, *ordered, memset(())), CELL)
    for place in range(2 * count):
        watch.races(place, (Use(0, 4 * place, 4 * place + 4, True),))
    assert time.process_time() - started < 5
