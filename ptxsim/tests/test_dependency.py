"""Programmatic launches: what a kernel does before griddepcontrol.wait is held against the kernels
that may still run by then."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness import allocated, compiled, engine, launched, planned, sentence, table
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, Severity
from ptxsim.records import Allocation, Memset
from ptxsim.simulator import SimLimits, SimOutcome, Simulator

THREADS, BLOCKS = 64, 4
N = THREADS * BLOCKS

SOURCE = (Path(__file__).parent / "kernels" / "dependency.cu").read_text()


@cache
def simulator() -> Simulator:
    ptx, folder = compiled(SOURCE, "sm_90")
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
    lines = SOURCE.splitlines()
    (first,) = (k for k, text in enumerate(lines) if f" {kernel} ARGS" in text)
    return next(k for k, text in enumerate(lines[first:], first + 1) if text.endswith("// BAD"))


def early(outcome: SimOutcome) -> list[Finding]:
    assert outcome.stopped is None
    return [each for each in outcome.findings if each.event is Event.BEFORE_GRID_WAIT]


LAUNCHES = [(says, tuple(kernels.split())) for says, kernels in table("dependency.txt")]
RIGHT = [kernels for says, kernels in LAUNCHES if says == "right"]
WRONG = [kernels for says, kernels in LAUNCHES if says == "wrong"]


@pytest.mark.parametrize("kernels", RIGHT, ids=" ".join)
def test_who_waits_is_not_accused(kernels: tuple[str, ...]) -> None:
    outcome = outcome_of(*kernels)
    assert outcome.findings == () and outcome.stopped is None


@pytest.mark.parametrize("kernels", WRONG, ids=" ".join)
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
