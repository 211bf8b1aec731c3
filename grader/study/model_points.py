"""Points for speed where nothing is measured: what the model expects, as far as it can be trusted.

A course names a card whose constants were measured. What the model cannot say is no zero: the
result tells why its speed is not graded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from grader import base, model
from grader.judge import Program, score_by_model
from grader.labs import Lab
from grader.model import Explanation
from grader.results import ByModel, ExpectedSpeed, Result
from grader.run import CpuDevice, quietly
from ptxsim.findings import LineCount
from ptxsim.plan import Plan, Record
from ptxsim.text import NOTHING, Message, phrase


class Expectations(Record):
    """Speeds that the model expects of all timed sizes."""

    speeds: dict[str, ExpectedSpeed] = msgspec.field(default_factory=dict)  # by case
    ungraded: Message | None = None  # why there are none


def expectations(
    program: Program,
    plans: Sequence[Plan],
    simulator: CpuDevice,
    explain: Callable[[Plan], Explanation],
    lines: Sequence[LineCount],
) -> Expectations:
    """plans: of the timed sizes. lines: counts of the largest size that was verified."""
    lab = program.context.lab
    largest = max((case.size for case in lab.cpu), key=lab.problem.amount)
    (whole,) = program.record([largest])
    assert isinstance(whole, Plan)  # it has been run
    counted = simulator.sample(program.built, program.root, whole, quietly)
    executed = sum(line.instructions for line in lines)
    known = {plan.size: plan for plan in plans}
    speeds = {}
    for case in lab.performance:
        plan = known.get(case.size)
        found = explain(plan) if plan else None
        bound = next(iter(found.bounds), None) if found else None
        why = _no_ground(found, bound)
        if plan and not why:
            timed = simulator.sample(program.built, program.root, plan, quietly)
            why = model.distrust(timed, counted, executed)
        if why or not bound:
            words = phrase("at {size}, {why}", size=str(case.size), why=why)
            return Expectations(ungraded=words)
        low, high = bound.expected
        speeds[case.id] = ExpectedSpeed(size=case.size.dims, low=low, high=high)
    return Expectations(speeds=speeds)


def _no_ground(found: Explanation | None, bound: model.Bound | None) -> Message:
    if found is None:
        return phrase("its launches could not be recorded")
    if found.missing is not None:
        return found.missing
    if bound is None or bound.most is None:
        return phrase("the blocks that were counted stand for too little of its work")
    if not bound.calibrated:
        words = phrase(
            "estimates for the {gpu} are from the data sheet; on one, measure it with: grade "
            "calibrate"
        )
        return words.given(gpu=bound.gpu)
    return NOTHING


def with_points(result: Result, lab: Lab, found: Expectations | None) -> Result:
    """Return the result with the model's points. found: of what is right."""
    card = base.gpus.named(lab.scoring.gpu or "").name
    right = result.verdict is base.Verdict.AC
    if result.verdict is base.Verdict.IE:
        return result
    if right and (found is None or found.ungraded):
        why = found.ungraded if found else phrase("its speed was not explained")
        return msgspec.structs.replace(result, by_model=ByModel(gpu=card, ungraded=why))
    score = score_by_model(lab, result.verdict, found.speeds if found else {})
    return msgspec.structs.replace(result, by_model=ByModel(gpu=card), score=score)
