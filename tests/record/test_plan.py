"""Plans that no honest host code could have written are refused, whichever field was forged."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.base.gpus import standing_for
from grader.base.records import KernelInfo
from grader.record import calls as bounds
from grader.record.calls import Recorded, assembled
from grader.record.plan_check import Known, flaw
from grader.record.refusals import REFUSALS, refused
from ptxsim import Declarations, Entry, Symbol
from ptxsim import plan as records
from tests.support.files import values
from tests.support.product import GEMM

SIZE = records.Size.of(m=2, n=3, k=5)
NAMES = ("A", "B", "C", "workspace 1", "table", "workspace 2")
SIZES = (40, 60, 24, 1 << 33, 64, 100)
AT = tuple(bounds.addresses(SIZES))
TARGET = standing_for("sm_80")
ENTRY = Entry(params=(records.KernelParam(offset=0, size=24),), max_threads=256)
OPERANDS = GEMM.operands(SIZE)
KNOWN = Known(
    declared=Declarations(
        entries={"k": ENTRY},
        symbols={
            "table": Symbol(space="global", size=64, align=4),
            "constant": Symbol(space="const", size=16, align=4),
        },
    ),
    figures={"k": KernelInfo(name="k", registers=128, shared_bytes=1024, spill_bytes=0)},
    target=TARGET,
)


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in values)


PLAN = records.Plan(
    size=SIZE,
    inputs=2,
    outputs=1,
    allocations=tuple(
        records.Allocation(
            name=name, address=at, size=size, symbol=name if name == "table" else None
        )
        for name, at, size in zip(NAMES, AT, SIZES, strict=True)
    ),
    operations=(
        records.Memset(allocation=2, delta=4, value=255, size=20),
        records.Copy(source=3, source_delta=8, target=3, target_delta=16, size=8),
        records.SymbolWrite(
            symbol="constant",
            delta=4,
            data=b"123" + words(AT[4] + 64),
            pointers=(records.PointerSlot(offset=3, allocation=4, delta=64),),
            after=(2, 1),
        ),
        records.Launch(
            kernel="k",
            grid=(7, 1, 1),
            block=(32, 8, 1),
            shared_bytes=2048,
            params=words(AT[0] - 4, 1, AT[5]),
            pointers=(
                records.PointerSlot(offset=0, allocation=0, delta=-4),
                records.PointerSlot(offset=16, allocation=5, delta=0),
            ),
        ),
        records.Write(
            allocation=5,
            delta=4,
            data=b"123" + words(AT[4] + 64),
            pointers=(records.PointerSlot(offset=3, allocation=4, delta=64),),
        ),
        records.Copy(
            source=0,
            source_delta=4,
            target=5,
            target_delta=8,
            size=4,
            rows=3,
            source_pitch=12,
            target_pitch=40,
        ),
    ),
    setup=(
        records.Allocate(allocation=3),
        records.Allocate(allocation=5),
        records.Free(allocation=3),
    ),
    refused=(records.RefusedCall(refused=refused("EXITED")),),
)


def far(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers outside [low, high]: beside it, of either sign, and where 32 and 64 bits wrap."""
    edges = [
        low - 1,
        high + 1,
        *(s * 2**n + d for s in (1, -1) for n in (31, 32, 63, 64, 80) for d in (-1, 0, 1)),
    ]
    return st.one_of(st.sampled_from(edges), st.integers()).filter(lambda v: not low <= v <= high)


def other(*values: object) -> st.SearchStrategy[Any]:
    """Text and names of something else."""
    names = st.sampled_from([*NAMES, "constant", "k", "", "A" * 10000, "\x1b[2J"])
    return st.one_of(names, st.text(max_size=9)).filter(lambda text: text not in values)


MEMORY, DO = "allocations", "operations"
FORGED: dict[tuple[str | int, ...], st.SearchStrategy[Any]] = {
    **{(MEMORY, i, "address"): far(at, at) for i, at in enumerate(AT)},
    **{(MEMORY, i, "size"): far(SIZES[i], SIZES[i]) for i in (0, 1, 2, 4)},
    (MEMORY, 3, "size"): far(1, TARGET.memory_bytes - SIZES[5]),
    **{(MEMORY, i, "name"): other(name) for i, name in enumerate(NAMES)},
    **{(MEMORY, i, "symbol"): other(None) for i in (0, 1, 2, 3, 5)},
    (MEMORY, 4, "symbol"): st.one_of(st.none(), other("table")),
    (DO, 0, "allocation"): far(0, 5),
    (DO, 0, "delta"): far(0, 4),
    (DO, 0, "value"): far(0, 255),
    (DO, 0, "size"): far(1, 20),
    (DO, 0, "place"): st.just({"file": "sgemm.cu", "line": 1}),
    (DO, 1, "source"): st.sampled_from([-1, 6, 2**63]),
    (DO, 1, "source_delta"): st.one_of(far(0, SIZES[3] - 8), st.integers(9, 23)),
    (DO, 1, "target"): far(0, 5),
    (DO, 1, "target_delta"): st.one_of(far(0, SIZES[3] - 8), st.integers(1, 15)),
    (DO, 1, "size"): far(1, 8),
    (DO, 2, "symbol"): other("constant", "table"),
    (DO, 2, "delta"): far(0, 5),
    (DO, 2, "pointers", 0, "offset"): far(3, 3),
    (DO, 2, "pointers", 0, "allocation"): far(4, 4),
    (DO, 2, "pointers", 0, "delta"): far(64, 64),
    (DO, 2, "after", 0): far(2, 2),
    (DO, 2, "after", 1): far(1, 1),
    (DO, 3, "kernel"): other("k"),
    **{(DO, 3, "grid", i): far(1, m) for i, m in enumerate((2**31 - 1, 65535, 65535))},
    **{(DO, 3, "block", i): far(1, most) for i, most in enumerate((32, 8, 1))},
    (DO, 3, "shared_bytes"): far(0, (TARGET.multiprocessor.block_shared_kib << 10) - 1024),
    (DO, 3, "carveout"): far(-1, 100),
    (DO, 3, "cluster", 0): far(1, 1).filter(lambda blocks: blocks != 7),  # the grid has 7 blocks
    (DO, 3, "cluster", 1): far(1, 1),
    (DO, 3, "stack_bytes"): far(0, 512 << 10),
    (DO, 3, "pointers", 0, "offset"): far(0, 0),
    (DO, 3, "pointers", 1, "offset"): far(16, 16),
    (DO, 3, "pointers", 0, "allocation"): far(0, 0),
    (DO, 3, "pointers", 1, "delta"): far(0, 0),
    (DO, 4, "allocation"): st.sampled_from([-1, 6, 2**63]),
    (DO, 4, "delta"): far(0, SIZES[5] - 11),
    (DO, 4, "pointers", 0, "offset"): far(3, 3),
    (DO, 4, "pointers", 0, "delta"): far(64, 64),
    (DO, 5, "source"): st.sampled_from([-1, 2, 6, 2**63]),
    (DO, 5, "source_delta"): far(0, SIZES[0] - 28),
    (DO, 5, "target_delta"): far(0, SIZES[5] - 84),
    (DO, 5, "size"): far(1, 12),
    (DO, 5, "rows"): far(1, 3),
    (DO, 5, "source_pitch"): far(4, 16),
    (DO, 5, "target_pitch"): far(4, 44),
    **{("setup", i, "allocation"): far(at, at) for i, at in enumerate((3, 5))},
    ("setup", 2, "allocation"): st.one_of(far(0, 5), st.integers(0, 2), st.just(4)),
    ("refused", 0, "refused", "number"): far(0, len(REFUSALS) - 1),
    ("refused", 0, "refused", "args"): st.dictionaries(st.text(), st.text(), min_size=1),
}


def forged(path: tuple[str | int, ...], value: object) -> records.Plan:
    """PLAN with one value in another's place."""
    document = msgspec.to_builtins(PLAN, builtin_types=(bytes,))
    place = document
    for step in path[:-1]:
        if isinstance(place[step], tuple):
            place[step] = list(place[step])
        place = place[step]
    place[path[-1]] = value
    return msgspec.convert(document, records.Plan)


def changed(index: int, **fields: Any) -> records.Plan:
    operations = list(PLAN.operations)
    operations[index] = msgspec.structs.replace(operations[index], **fields)
    return msgspec.structs.replace(PLAN, operations=tuple(operations))


def sound(plan: records.Plan, known: Known = KNOWN) -> bool:
    return flaw(plan, OPERANDS, known) is None


def with_operations(
    *operations: records.Operation, setup: tuple[records.Operation, ...] = PLAN.setup
) -> records.Plan:
    return msgspec.structs.replace(PLAN, setup=setup, operations=operations)


def test_the_plan_that_is_forged_is_sound() -> None:
    assert sound(PLAN)


@pytest.mark.parametrize("path", FORGED, ids=lambda path: ".".join(map(str, path)))
def test_a_forged_field_is_refused(path: tuple[str | int, ...]) -> None:
    @settings(max_examples=30, derandomize=True, database=None, deadline=None)
    @given(value=FORGED[path])
    def refuses(value: object) -> None:
        assert not sound(forged(path, value))

    refuses()


LAUNCH = PLAN.operations[3]
MANY = {
    "nothing": (records.Synchronise(),),
    "launches": (LAUNCH,) * (bounds.MAX_LAUNCHES + 1),
    "transfers": (*PLAN.operations[:1] * (bounds.MAX_TRANSFERS + 1), LAUNCH),
    "synchronisations": (*(records.Synchronise(),) * (bounds.MAX_TRANSFERS + 1), LAUNCH),
}


@pytest.mark.parametrize("kind", MANY)
def test_too_many_or_too_few_operations(kind: str) -> None:
    words = "no launch, memset or copy" if kind == "nothing" else "too many"
    assert words in str(flaw(with_operations(*MANY[kind]), OPERANDS, KNOWN))


@pytest.mark.parametrize(
    ("most", "fields"),
    [
        (2, {}),  # registers: 8 warps of 4096
        (16, {"block": (32, 1, 1)}),
        (1, {"block": (32, 1, 1), "shared_bytes": 160 << 10}),
    ],
)
def test_a_cooperative_launch_that_no_gpu_can_do(most: int, fields: dict[str, Any]) -> None:
    for extra in (0, 1):
        for grid in ((most * TARGET.multiprocessors + extra, 1, 1), (2**31 - 1, 65535, 65535)):
            for cooperative in (False, True):
                plan = changed(3, grid=grid, cooperative=cooperative, **fields)
                wrong = cooperative and (extra or grid[1] > 1)
                assert sound(plan) != bool(wrong), (grid, cooperative)


@pytest.mark.parametrize(("declared", "asked", "grid", "good"), values(__file__, "clusters.txt"))
def test_clusters_are_as_declared_or_asked_for_and_divide_the_grid(
    declared: records.Dim3 | None, asked: records.Dim3, grid: records.Dim3, good: bool
) -> None:
    entry = msgspec.structs.replace(ENTRY, cluster=declared)
    interface = msgspec.structs.replace(KNOWN.declared, entries={"k": entry})
    known = msgspec.structs.replace(KNOWN, declared=interface)
    assert sound(changed(3, grid=grid, cluster=asked), known) == good


def test_a_programmatic_launch_follows_a_launch() -> None:
    early = msgspec.structs.replace(LAUNCH, programmatic=True)
    memset = PLAN.operations[0]
    for operations, good in (
        ((LAUNCH, early, early), True),
        ((early, LAUNCH), False),
        ((LAUNCH, memset, early), False),
        ((LAUNCH, records.Synchronise(), early), False),
    ):
        assert sound(with_operations(*operations)) == good
        setup = (*PLAN.setup, *operations)
        assert sound(with_operations(*PLAN.operations, setup=setup)) == good


def with_allocations(*added: tuple[str, int, str | None]) -> records.Plan:
    rows = [(a.name, a.size, a.symbol) for a in PLAN.allocations] + list(added)
    places = bounds.addresses(size for _, size, _ in rows)
    made = (
        records.Allocation(name=name, address=at, size=size, symbol=symbol)
        for (name, size, symbol), at in zip(rows, places, strict=True)
    )
    memory = tuple(made)
    setup = (
        records.Allocate(allocation=i) for i, a in enumerate(memory) if i > 2 and a.symbol is None
    )
    return msgspec.structs.replace(PLAN, allocations=memory, setup=tuple(setup))


def test_allocations_that_only_look_right() -> None:
    assert sound(with_allocations(("workspace 3", 8, None)))
    assert sound(with_allocations(("constant", 16, "constant")))
    for added, words_ in (
        ([("table", 64, "table")], "twice"),
        ([("workspace 2", 8, None)], "numbered"),
        ([("unknown", 8, "unknown")], "declares"),
        ([("workspace 3", TARGET.memory_bytes, None)], "exceed"),
        ([(f"workspace {i}", 8, None) for i in range(3, 1100)], "too many allocations"),
    ):
        assert words_ in (flaw(with_allocations(*added), OPERANDS, KNOWN) or ""), added


def test_memory_is_allocated_once_in_order_and_freed_once() -> None:
    made, free = PLAN.setup[:2], records.Free(allocation=5)
    for setup, operations in (
        (made, (free, *PLAN.operations)),
        (made[:1], (made[1], *PLAN.operations, free)),
    ):
        assert sound(with_operations(*operations, setup=setup))
    for setup, operations in (
        ((), PLAN.operations),
        (made[:1], PLAN.operations),
        (made[::-1], PLAN.operations),
        ((*made, made[1]), PLAN.operations),
        (made, (made[1], *PLAN.operations)),
        (made, (free, free, *PLAN.operations)),
        (made[:1], (free, made[1], *PLAN.operations)),
    ):
        assert not sound(with_operations(*operations, setup=setup))


def test_parameters_and_data_have_their_lengths() -> None:
    assert isinstance(LAUNCH, records.Launch)
    for params in (b"", LAUNCH.params[:-1], LAUNCH.params + b"\0"):
        assert not sound(changed(3, params=params, pointers=()))
    assert sound(changed(2, data=b"\0" * 12, pointers=()))
    assert not sound(changed(2, data=b"\0" * 13, pointers=()))


def test_pointers_overlap_nowhere_and_stand_in_order() -> None:
    assert isinstance(LAUNCH, records.Launch)
    first, second = LAUNCH.pointers
    assert sound(changed(3, pointers=(first,)))
    assert not sound(changed(3, pointers=(second, first)))
    assert not sound(changed(3, pointers=(first, first)))


def test_registers_bound_a_block() -> None:
    many = KernelInfo(name="k", registers=255, shared_bytes=0, spill_bytes=0)
    entry = msgspec.structs.replace(ENTRY, max_threads=1024)
    declared = Declarations(entries={"k": entry}, symbols=KNOWN.declared.symbols)
    known = msgspec.structs.replace(KNOWN, declared=declared, figures={"k": many})
    assert sound(changed(3, block=(256, 1, 1)), known)
    assert not sound(changed(3, block=(257, 1, 1)), known)


def test_the_largest_plan_is_checked_at_once() -> None:
    added = [(f"workspace {i}", 8, None) for i in range(3, bounds.MAX_ALLOCATIONS - 3)]
    operations = (*(PLAN.operations[0],) * bounds.MAX_TRANSFERS, *(LAUNCH,) * bounds.MAX_LAUNCHES)
    plan = msgspec.structs.replace(with_allocations(*added), operations=operations)
    started = time.process_time()
    assert sound(plan)
    assert time.process_time() - started < 5


def seconds_to_assemble(recorded: Recorded) -> float:
    started = time.process_time()
    assembled(recorded, SIZE, OPERANDS, ("table",), KNOWN.declared.entries)
    return time.process_time() - started


def test_data_full_of_freed_addresses_is_compared_at_once() -> None:
    """Each call writes the address of its own workspace, which it has freed, 262144 times."""
    sizes = (*SIZES[:3], 100, 100, 100)
    at = tuple(bounds.addresses(sizes))
    names = (*NAMES[:3], *(f"workspace {i}" for i in (1, 2, 3)))
    one, two, three = (
        (
            records.Allocate(allocation=i),
            records.Free(allocation=i),
            records.SymbolWrite(symbol="table", delta=0, data=data),
        )
        for i, data in ((i, words(at[i]) * (1 << 18)) for i in (3, 4, 5))
    )
    memory = tuple(
        records.Allocation(name=name, address=address, size=size)
        for name, address, size in zip(names, at, sizes, strict=True)
    )
    assert seconds_to_assemble(Recorded(allocations=memory, calls=(one, two, three))) < 10


def test_a_name_without_end_is_read_at_once() -> None:
    name = "_ZK" + ("999999x" * 14285 + ".") * 10 + "x" * 1_000_000
    first, other = ((msgspec.structs.replace(LAUNCH, kernel=name + end),) for end in "ab")
    calls = (first, first, other)
    assert seconds_to_assemble(Recorded(allocations=PLAN.allocations, calls=calls)) < 2


def test_addresses_leave_red_zones() -> None:
    at = list(bounds.addresses((1, bounds.STRIDE, bounds.STRIDE // 2, 3 * bounds.STRIDE, 8)))
    sizes = (1, bounds.STRIDE, bounds.STRIDE // 2, 3 * bounds.STRIDE)
    gaps = [after - before - size for before, after, size in zip(at, at[1:], sizes, strict=False)]
    assert min(gaps) >= bounds.STRIDE // 2 > bounds.REACH
    assert all((address - bounds.RED_ZONE) % bounds.STRIDE == 0 for address in at)
