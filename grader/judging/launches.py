"""The rule on kernels: how many one call of run_custom may launch."""

from __future__ import annotations

from collections import Counter

from grader.errors import Rejected
from grader.labs.lab import Rules
from grader.model import Launch, Plan, Verdict, counted, listed, phrase, verbatim
from grader.model.names import kernel_name

_NAMES, _LONGEST = 5, 80  # kernels that the message names, and characters of each


def kernels_launched(plan: Plan) -> int:
    """Launches of one call; copies and memsets are not kernels."""
    return sum(isinstance(operation, Launch) for operation in plan.operations)


def too_many_kernels(plan: Plan, rules: Rules) -> Rejected | None:
    """RF for a call that launches several kernels where the lab asks for one."""
    count = kernels_launched(plan)
    if rules.kernels == "any" or count <= 1:
        return None
    times = Counter(
        kernel_name(operation.kernel)[:_LONGEST]
        for operation in plan.operations
        if isinstance(operation, Launch)
    )
    names = [counted("{name}", "{name} {count} times", n, name=name) for name, n in times.items()]
    more = [verbatim("…")] if len(names) > _NAMES else []
    return Rejected(
        Verdict.RF,
        phrase(
            "one call launches {count} kernels ({names}); this lab asks for one kernel per call "
            "(rules.kernels)",
            count=count,
            names=listed([*names[:_NAMES], *more]),
        ),
    )
