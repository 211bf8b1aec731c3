"""The lab of sums: its inputs and criterion, its rungs, its fixtures, and what a report says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from grader.base import gpus
from grader.base.explanation import Explanation
from grader.base.records import Verdict
from grader.base.result import Result
from grader.judge import program
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import find_lab, load_lab
from grader.labs.submission import load_submission
from grader.problems.comparison import check
from grader.problems.inputs import Floats, make_inputs
from grader.problems.reduction.reduction import MOST, UNIT, Reduction, steps, tolerance
from grader.run.protocol import quietly
from ptxsim.records import Size
from tests.support.bench import bench
from tests.support.files import table
from tests.support.places import FIXTURES, ROOT

PROBLEM = Reduction()
RUNGS = sorted((ROOT / "reference" / "reduction").glob("[0-9]*"))
COUNTS = (1, 2, 3, 7, 28, 29, 1000, 4097, 1 << 16, 1 << 20)


@cache
def lab_bench(explain: bool = False) -> GradingContext:
    return msgspec.structs.replace(bench(), lab=load_lab(find_lab("reduction")), explain=explain)


def graded(folder: Path) -> Result:
    return grade(folder, lab_bench(), quietly).result


def inputs(n: int) -> Floats:
    (values,) = make_inputs(PROBLEM.operands(Size.of(n=n)))
    return values


def wrong(n: int, values: Floats, total: float) -> bool:
    found = check(PROBLEM, Size.of(n=n), [values], [np.array([total], np.float32)])
    return not found.right


# --- the criterion ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", COUNTS)
def test_every_order_of_summation_is_exact(n: int) -> None:
    values = inputs(n)
    shuffled = np.random.default_rng(n).permutation(values)
    padded = np.pad(values, (0, -n % 64)).reshape(-1, 64)
    strided = np.add.accumulate(np.add.accumulate(padded, dtype=np.float32)[-1], dtype=np.float32)
    totals = [
        *(np.add.accumulate(each, dtype=np.float32)[-1] for each in (values, values[::-1])),
        *(np.add.accumulate(shuffled, dtype=np.float32)[-1], strided[-1]),
        values.sum(dtype=np.float32),
    ]

    assert [float(total) for total in totals] == [float(values.sum(dtype=np.float64))] * 5
    assert not any(wrong(n, values, total) for total in totals)


@pytest.mark.parametrize("n", COUNTS)
def test_anything_less_is_wrong(n: int) -> None:
    values = inputs(n)
    total = float(values.sum(dtype=np.float64))
    smallest = float(np.abs(values).min())
    assert smallest >= UNIT / 2 > float(np.finfo(np.float16).max)  # FP16 overflows

    assert wrong(n, values, total - float(values[-1]))
    assert wrong(n, values, total + float(values[0]))
    assert wrong(n, values, total + UNIT * 2 * tolerance(n))
    assert wrong(n, values, float("nan")) and wrong(n, values, float("inf"))
    if n <= 1 << 20:
        halves = (values / np.float32(UNIT)).astype(np.float16).astype(np.float64) * UNIT
        assert wrong(n, values, float(halves.sum()))


def test_partial_sums_fit_a_float_up_to_the_largest_n() -> None:
    for n in (*COUNTS, 1 << 24, (1 << 28) - 1, MOST):
        kind = steps(n)
        step = 2.0**kind.exponent
        assert tolerance(n) == step / UNIT / 2
        assert min(8 * n**0.5, 1.5 * n) * UNIT <= 2**24 * step
        assert kind.least * step == UNIT / 2 and (1 << kind.bits) * step == UNIT
    assert 100 * UNIT * tolerance(MOST) <= UNIT / 2  # what one element less costs


def test_a_forgotten_tail_is_named() -> None:
    values = inputs(1003)
    kept = float(values[:1000].sum(dtype=np.float64))

    found = check(PROBLEM, Size.of(n=1003), [values], [np.array([kept], np.float32)])
    assert "the last 3 of n = 1003 elements are missing" in str(found.message)
    assert found.error.tile_map == ()


# --- submissions --------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    "folder",
    [
        *RUNGS,
        ROOT / "starters" / "reduction",
        ROOT / "examples" / "reduction" / "alice",
    ],
    ids=lambda folder: folder.name,
)
def test_right_programs_pass_without_a_finding(folder: Path) -> None:
    result = graded(folder)

    assert result.verdict is Verdict.AC, (result.error, result.cases, result.findings)
    assert result.findings == ()


def test_one_element_needs_no_kernel() -> None:
    lab = msgspec.structs.replace(lab_bench().lab, cpu=lab_bench().lab.cpu[:2])
    shared = msgspec.structs.replace(lab_bench(), lab=lab)
    folder = FIXTURES / "reduction" / "one_element_copied"
    result = grade(folder, shared, quietly).result

    assert result.verdict is Verdict.AC, (result.error, result.cases)
    assert [case.kernels for case in result.cases] == [0, 1]


# --- the report ---------------------------------------------------------------------------------

NEXT = dict(table(__file__, "next.txt"))


def explained(folder: Path) -> Explanation:
    ready = program.prepare(
        load_submission(folder, "reduction.cu"), [Size.of(n=MOST)], lab_bench(), "sm_90"
    )
    return ready.explain(gpus.find("H200"))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "rung",
    [*RUNGS, ROOT / "starters" / "reduction"],
    ids=lambda rung: rung.name,
)
def test_advice_leads_from_rung_to_rung(rung: Path) -> None:
    why = explained(rung)
    idea = rung.name[3:] if rung in RUNGS else rung.name

    assert why.missing is None
    first = why.advice[0] if why.advice else None
    assert (first.idea if first else None) == NEXT.get(idea), why.advice
    if first:
        assert first.rung and first.rung.startswith("reduction/") and first.line
    if idea == "interleaved":
        counts = why.counts[0]
        assert counts.splits
        branch = counts.splits[0]
        text = (rung / "reduction.cu").read_text().splitlines()
        assert branch.line and "% (2 * s) == 0" in text[branch.line - 1]
        # Steps 1 to 16 split all eight warps; 32, 64 and 128 leave lane 0 of four, two and one.
        assert 8 * branch.splits == branch.reached / 8 * (5 * 8 + 4 + 2 + 1)
        assert 0.2 < branch.lost / counts.instructions < 0.4
