"""The engine against PTX that no compiler writes, and plans that no host code asks for."""

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness import (
    FIRST_ADDRESS,
    allocated,
    engine,
    kernels,
    launched,
    planned,
    run,
    run_ptx,
    table,
    values,
)
from ptxsim.engine import check_layout
from ptxsim.engine_header import HEADER, REFUSED, header
from ptxsim.frontend.module import read_module
from ptxsim.lowering.program import Builder
from ptxsim.outcome import EngineError, Reason, RefusedProgram, SimLimits, SimOutcome
from ptxsim.plan import records
from ptxsim.simulator import Simulator
from tests.fuzz.campaign import repeat, run_campaign
from tests.fuzz.cases import SEEDS, make_case


def run_body(body: str) -> tuple[SimOutcome, np.ndarray]:
    a, b = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    return run_ptx(kernels("engine.ptx", body=body), [a, b]), b


# --- what Python and C++ share


def test_the_header_is_that_of_the_tables() -> None:
    """``python -m ptxsim.engine_header`` makes it so."""
    assert HEADER.read_text() == header()


def test_an_engine_compiled_with_another_header_is_not_loaded() -> None:
    check_layout(engine().library.sim_layout().decode())
    with pytest.raises(EngineError, match="disagree"):
        check_layout("0" * 16)


# --- operands


@pytest.mark.parametrize("body", [body for (body,) in table("refused_operands.txt")])
def test_an_operand_that_its_instruction_does_not_take_is_refused(body: str):
    opcode = body.split()[1 if body[0] == "@" else 0].rstrip(";").split(".")[0]
    with pytest.raises(RefusedProgram) as refused:
        run_body(body)
    assert refused.value.reason in (Reason.UNSUPPORTED, Reason.UNREADABLE)
    # The reader names the line, the rules of the simulator name the instruction.
    assert re.search(rf"{opcode}|barrier|line \d+ of the PTX", str(refused.value))


@pytest.mark.parametrize(("logic", "want"), table("predicates.txt"))
def test_predicates_may_be_constants(logic: str, want: str):
    body = f"setp.lt.s32 %p1, %r1, 5; {logic} selp.b32 %r2, 1, 0, %p2; st.global.u32 [%rd4], %r2;"
    outcome, b = run_body(body)
    assert outcome.findings == ()
    assert b[:32].tolist() == [int(eval(want, {"t": t})) for t in range(32)]


# --- addresses


@pytest.mark.parametrize("body", [each for (each,) in values("wrapping.txt")])
@pytest.mark.parametrize("space", ["shared", "local", "param", "global"])
@pytest.mark.parametrize("address", [2**64 - 16, 2**63, 2**56 - 16, 2**32, 2**32 - 16])
def test_no_address_wraps_into_bounds(body: str, space: str, address: int):
    outcome, _ = run_body(body.format(space=space, address=address))
    assert {f.kind for f in outcome.findings} == {"out-of-bounds"}


def test_one_lane_far_off_is_seen_after_many_in_bounds():
    """The engine remembers how far apart the lanes of an access are; 2^32 is not 0."""
    outcome, _ = run_body(kernels("far_lane.ptx"))
    assert {f.kind for f in outcome.findings} == {"out-of-bounds"}
    assert {f.thread for f in outcome.findings} == {(7, 0, 0)}


@pytest.mark.parametrize("second", ["mov.u64 %rd5, 160;", "cvta.local.u64 %rd5, own;"])
def test_what_was_in_bounds_in_one_space_is_not_in_another(second: str):
    outcome, _ = run_body(kernels("two_spaces.ptx", second=second))
    assert "out-of-bounds" in {f.kind for f in outcome.findings}


def test_a_barrier_number_that_there_is_not_stops_the_kernel():
    outcome, _ = run_body("mov.u32 %r2, 1000000000; bar.sync %r2, 32;")
    assert [f.kind for f in outcome.findings] == ["trap"]


def nested(depth: int) -> str:
    heads = "".join(f"L{k}: add.s32 %r2, %r2, 1;\n" for k in range(depth))
    tails = "".join(f"@%p1 bra L{k};\n" for k in reversed(range(depth)))
    return f"mov.u32 %r2, 0; setp.lt.s32 %p1, %r1, 0;\n{heads}{tails} st.global.u32 [%rd4], %r2;"


def test_loops_nested_deep_need_no_stack():
    outcome, b = run_body(nested(60))
    assert outcome.findings == () and b[0] == 60


def test_loops_nested_without_reason_are_refused():
    with pytest.raises(RefusedProgram, match="loops in loops"):
        run_body(nested(100))


# --- device printf


FORMATS = values("printf.txt")
LONG = (
    r'printf("%1000000000d", 1);',
    r'printf("%.1000000000f", 1e300);',
    r'printf("%p %p %p %p %p %p", a);',
)


@cache
def printed() -> list[str]:
    """What each of the calls above prints; they are compiled together."""
    calls = [call for call, _ in FORMATS] + list(LONG)
    body = "\n".join(f"{call} printf(between);" for call in calls)
    source = kernels("prints.cu", body=body)
    arrays = [np.ones(4, np.float32), np.ones(4, np.float32)]
    return run(source, arrays, block=(1, 1, 1)).printed.split("\n--\n")


@pytest.mark.parametrize("which", range(len(FORMATS)), ids=lambda which: FORMATS[which][0])
def test_printf_formats_as_cuda_does(which: int):
    assert printed()[which] == FORMATS[which][1]


def test_printf_stays_within_bounds_of_its_own():
    wide, precise, _, flood = printed()[len(FORMATS) :]
    assert len(wide) == 512
    assert len(precise) == 301 + 1 + 100
    assert 60_000 < len(flood) < 66_000


def test_printf_shows_no_address_of_the_simulators_own():
    """Behind the arguments %p finds what the program itself keeps there: simulated addresses."""
    shown = [int(word, 16) for word in printed()[len(FORMATS) + 2].split()]
    assert shown[0] == FIRST_ADDRESS
    ranges = [
        line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines()
    ]
    own = [(int(start, 16), int(end, 16)) for start, end in ranges]
    assert not [n for n in shown[1:] if any(start <= n < end for start, end in own)]


def test_printing_a_string_that_is_no_memory_is_a_finding():
    source = """
#include <cstdio>
extern "C" __global__ void k(char** a, float* b) { printf("%s", a[0]); }
"""
    wild = np.array([0x123456789ABC], np.uint64)
    outcome = run(source, [wild, np.ones(1, np.float32)], block=(1, 1, 1))
    assert [f.kind for f in outcome.findings] == ["out-of-bounds"]
    assert outcome.printed == ""


# --- plans


def a_plan(**changes: Any) -> records.Plan:
    memory = allocated(256, 256, 256)
    launch = msgspec.structs.replace(launched("k", *memory[:2]), **changes.pop("launch", {}))
    return msgspec.structs.replace(planned(memory, launch), **changes)


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_what_cuda_leaves_undefined_differs_from_call_to_call(turn: int):
    loads = ("global.u32 %r2, [%rd1]", "shared.u32 %r3, [s]", "local.u32 %r4, [own]")
    stores = (f"st.global.u32 [%rd2+{4 * i}], %r{2 + i};" for i in range(3))
    text = kernels("engine.ptx", body=" ".join([*(f"ld.{each};" for each in loads), *stores]))
    _, given, own = allocated(256, 256, 256)
    plan = a_plan(operations=(records.Allocate(allocation=2), launched("k", own, given)))
    b = np.zeros(64, np.uint32)
    calls = Simulator(text, Path("/nowhere"), engine()).calls(
        plan, {1: b.view(np.uint8)}, SimLimits(), turn=turn
    )
    for number in range(turn, turn + 4):
        next(calls)
        assert b[:3].tolist() == [records.POISONS[number % 3]] * 3
    calls.close()


def memory(*symbols: tuple[str, int, int]) -> dict[str, Any]:
    more = [records.Allocation(name=s, address=at, size=size, symbol=s) for s, at, size in symbols]
    return {"allocations": (*a_plan().allocations, *more)}


def doing(operation: records.Operation) -> dict[str, Any]:
    return {"operations": (operation,)}


def more(address: int, size: int) -> dict[str, Any]:
    return {
        "allocations": (
            *a_plan().allocations,
            records.Allocation(name="w", address=address, size=size),
        )
    }


def rows(size: int, count: int, read: int, written: int) -> dict[str, Any]:
    """A copy with these pitches between two allocations of 256 bytes."""
    shape = {"size": size, "rows": count, "source_pitch": read, "target_pitch": written}
    return doing(records.Copy(source=0, source_delta=0, target=1, target_delta=0, **shape))


def carry_out(plan: records.Plan) -> SimOutcome:
    text = kernels("engine.ptx", body="st.global.u32 [%rd4], %r1;")
    return Simulator(text, Path("/nowhere"), engine()).run(plan, {}, SimLimits(bytes=1 << 30))


FORGED = {
    "symbol beyond": doing(records.SymbolWrite(symbol="kept", delta=8, data=b"x" * 16)),
    "symbol far beyond": doing(records.SymbolWrite(symbol="kept", delta=1 << 62, data=b"x")),
    "symbol below": doing(records.SymbolWrite(symbol="kept", delta=-1, data=b"x")),
    "no symbol": doing(records.SymbolWrite(symbol="A", delta=0, data=b"x")),
    "symbol twice": memory(("kept", 0x5000_0000_0000, 16), ("kept", 0x5100_0000_0000, 16)),
    "symbol of another size": memory(("kept", 0x5000_0000_0000, 1 << 20)),
    "symbol over an array": memory(("kept", FIRST_ADDRESS + 128, 16)),
    "memset beyond": doing(records.Memset(allocation=0, delta=255, value=0, size=2)),
    "memset of nothing there": doing(records.Memset(allocation=9, delta=0, value=0, size=0)),
    "memset from the end": doing(records.Memset(allocation=-1, delta=0, value=0, size=4)),
    "memset of no byte": doing(records.Memset(allocation=0, delta=0, value=256, size=4)),
    "memset backwards": doing(records.Memset(allocation=0, delta=8, value=0, size=-8)),
    "copy beyond": doing(
        records.Copy(source=0, source_delta=1, target=1, target_delta=0, size=256)
    ),
    "one row, a pitch beyond 64 bits": rows(4, 1, 1 << 70, 0),
    "one row, a pitch below 0": rows(4, 1, 0, -(1 << 70)),
    "rows beyond": rows(4, 8, 4, 40),
    "rows that overlap": rows(4, 2, 4, 3),
    "no end of rows": rows(0, 1 << 40, 0, 0),
    "written beyond": doing(records.Write(allocation=0, delta=255, data=b"xy")),
    "written nowhere": doing(records.Write(allocation=9, delta=0, data=b"x")),
    "parameters missing": {"launch": {"params": b""}},
    "parameters too many": {"launch": {"params": bytes(1 << 16)}},
    "no kernel": {"launch": {"kernel": "kept"}},
    "too many blocks together": {"launch": {"grid": ((1 << 16) + 1, 1, 1), "cooperative": True}},
    "address below zero": more(-4096, 8),
    "address in a window": more(1 << 56, 8),
    "size below zero": more(4096, -8),
    "inputs below zero": {"inputs": -1, "outputs": 1},
    "more inputs than there are": {"inputs": 1 << 57},
    "more outputs than there are": {"outputs": 1 << 64},
    "one in another": more(FIRST_ADDRESS + 8, 8),
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED.keys())
def test_a_forged_plan_is_refused(changes: dict[str, Any]):
    with pytest.raises(RefusedProgram) as refused:
        carry_out(a_plan(**dict(changes)))
    assert refused.value.reason is Reason.WRONG_PLAN


LIMITS = dict(values("launch_limits.txt"))


@pytest.mark.parametrize("says", LIMITS)
def test_a_launch_beyond_a_limit_names_it(says: str):
    with pytest.raises(RefusedProgram, match=f"kernel k cannot be launched: {says}") as refused:
        carry_out(a_plan(launch=LIMITS[says]))
    assert refused.value.reason is Reason.WRONG_PLAN


def test_the_plan_they_are_forged_from_is_carried_out():
    assert carry_out(a_plan()).findings == ()
    honest = memory(("kept", 0x5000_0000_0000, 16))
    honest["operations"] = (records.SymbolWrite(symbol="kept", delta=8, data=b"x" * 8),)
    assert carry_out(a_plan(**honest)).findings == ()


def test_more_memory_than_there_may_be_is_refused_before_it_is_taken():
    vast = records.Allocation(name="w", address=0x10_0000_0000, size=1 << 45)
    with pytest.raises(RefusedProgram, match="the simulator takes 1024 MB"):
        carry_out(a_plan(allocations=(vast, *a_plan().allocations)))


# --- programs


@pytest.mark.parametrize(("name", "field", "number"), table("malformed.txt"))
def test_the_engine_itself_refuses_a_malformed_program(name: str, field: str, number: str):
    """Whatever Python's side let pass: the engine trusts nobody who packed a program."""
    value = int(number, 0)
    module = read_module(kernels("engine.ptx", body="st.global.u32 [%rd4], %r1;"), Path("/nowhere"))
    program = Builder(module, {"kept": 1 << 40}, engine(), 4, 4).build("k")
    code = program.keep[0]
    at = next(k for k, row in enumerate(code) if row["operation"] == engine().operations[name])
    if field == "o":
        code[at]["o"][0] = value
    else:
        code[at][field] = value
    made, bad = ctypes.c_void_p(), ctypes.c_uint64()
    status = engine().library.sim_program(
        program.packed.ctypes.data, ctypes.byref(made), ctypes.byref(bad)
    )
    assert (status, made.value) == (REFUSED, None)


# --- fuzzing under ASan and UBSan; python -m tests.fuzz does more


def test_the_seeds_run_as_they_are():
    count = len(list(SEEDS.glob("*.ptx")))
    ends = {make_case(0, number).name: repeat(0, number) for number in range(count)}
    bad = {name: end for name, end in ends.items() if end.startswith(("refused", "no plan"))}
    assert count >= 20 and not bad, bad


def test_a_case_follows_from_its_number():
    cases = [make_case(7, number) for number in range(100, 140)]
    assert cases == [make_case(7, number) for number in range(100, 140)]
    assert len({(case.name, case.ptx, str(case.plan)) for case in cases}) > 35
    changed = [c for c in cases if c.plan != msgspec.json.decode(c_plan(c.name))]
    assert 2 < len(changed) < 30


def c_plan(name: str) -> bytes:
    text = (SEEDS / f"{name}.json").read_bytes()
    msgspec.json.decode(text, type=records.Plan)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [0.1, pytest.param(5, marks=pytest.mark.nightly)])
def test_fuzzing(minutes: float):
    campaign = run_campaign(seed=12, minutes=minutes)
    assert campaign.cases > 20 * minutes, campaign.summary()
    assert campaign.failures == {}, campaign.summary()
