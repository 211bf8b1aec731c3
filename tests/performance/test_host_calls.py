"""Advice on what allocating, freeing and waiting cost in every call."""

from __future__ import annotations

import msgspec
import pytest

from grader.model import (
    Allocate,
    CaseResult,
    Explanation,
    Free,
    Operation,
    Plan,
    Run,
    Size,
    Synchronise,
    Timing,
)
from grader.performance.advice import with_host_calls
from ptxsim.records import Place
from tests.support.results import RIGHT

SIZE = Size.of(m=1024, n=1024, k=1024)
NOTHING_KNOWN = Explanation(
    arch="sm_90",
    size=SIZE.dims,
    operations=2,
    bytes=12,
    kernels=(),
    counts=(),
    tile=None,
    bounds=(),
    advice=(),
    missing=None,
)
AT = Place(file="sgemm.cu", line=12)
WORKSPACE = (
    Allocate(allocation=3, place=AT),
    Allocate(allocation=4),
    Free(allocation=3),
    Free(allocation=4),
)


def said(
    operations: tuple[Operation, ...], host_ms: float | None, at: Size = SIZE
) -> list[tuple[str, str]]:
    plan = Plan(size=SIZE, allocations=(), operations=operations)
    timing = Timing(
        runs=(Run(speed=1.0, baseline_speed=2.0),),
        ratio=0.5,
        ratio_ci=(0.5, 0.5),
        noise=0.0,
        samples=9,
        device_ms=None if host_ms is None else 2.0,
        host_ms=host_ms,
    )
    case: CaseResult = msgspec.structs.replace(RIGHT, size=at.dims, timing=timing)
    found = with_host_calls(NOTHING_KNOWN, [plan], [RIGHT, case]).advice
    assert all((each.file, each.line) == (AT.file, AT.line) for each in found)
    return [(each.idea, str(each.message)) for each in found]


def test_advice_says_what_keeping_the_workspace_brings() -> None:
    ((idea, words),) = said(WORKSPACE, host_ms=1.0)
    assert idea == "host_calls"
    assert "allocates 2× and frees 2×, which takes 1 ms on top of 2 ms" in words
    assert "keep the memory in a static pointer" in words
    assert words.endswith("the ratio would be about 0.75 instead of 0.50")


def test_who_only_waits_is_not_told_to_keep_memory() -> None:
    ((_, words),) = said((Synchronise(place=AT),), host_ms=1.0)
    assert words.startswith("every call waits for the device 1×, which takes 1 ms")
    assert "leave the waiting to the caller" in words and "memory" not in words


@pytest.mark.parametrize("host_ms", [None, 0.0, 0.03])
def test_nothing_is_said_of_calls_that_cost_little_or_were_not_measured(
    host_ms: float | None,
) -> None:
    assert said(WORKSPACE, host_ms) == []


def test_only_the_size_that_is_explained_counts() -> None:
    assert said(WORKSPACE, 1.0, at=Size.of(m=64, n=64, k=64)) == []
