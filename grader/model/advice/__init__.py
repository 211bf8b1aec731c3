"""Counts → what to try next. Every rule states its evidence and names a line of the source.

A rule's gain compares the bound with the bound of the counts after the change that the idea's rung
makes. If the idea is about waiting, which counts do not show, the gain comes from the issue model
without that wait. The gain is None if the idea relieves a resource that is not the bottleneck.

What relieves the limit that the report states (problems/advice.toml) comes first; of that, what
rungs of the lesson show; of these, what gains most, by the model times by the measured ladder.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from grader.model.advice import grid, inner_loop, tensor_cores, warpgroups
from grader.model.facts import SENTENCES, Facts, KernelFacts, placed, say
from grader.model.records import Advice, Explanation
from grader.problems import ADVICE, RULES
from ptxsim.plan import Allocate, Free, Operation, Plan, host_waits
from ptxsim.text import Message, enumerated, verbatim

MOST = 3  # pieces of advice; a student does one thing at a time
_MODULES = (grid, inner_loop, tensor_cores, warpgroups)


def advice_title(advice: Advice) -> Message:
    """Name for students what is to be done; by the idea's own name where there is no other."""
    titles = SENTENCES.names("title")
    name = advice.rule if advice.rule in titles else advice.idea
    return say(f"title.{name}") if name in titles else verbatim(name.replace("_", " "))


def is_shown(advice: Advice, why: Explanation) -> bool:
    """Whether the kernels execute an instruction of this idea, where it takes one."""
    executed = {each.kind for counts in why.counts for each in counts.mix}
    executed |= {kind.partition(".")[0] for kind in executed}
    needed = RULES["shown-by"].get(advice.idea)
    return not needed or not needed.isdisjoint(executed)


def advise(facts: KernelFacts, names: Iterable[str]) -> tuple[Advice, ...]:
    """Apply the rules that a problem names, and those for every problem; the best advice first."""
    counted = isinstance(facts, Facts) and facts.work.unit.of == "operations"
    found = [
        msgspec.structs.replace(said, rule=name)
        for name in dict.fromkeys((*names, *RULES["always"]))
        if (counted or name not in RULES["product"]) and (said := _rule(name)(facts))
    ]
    detours = {each.name for each in facts.rungs if not each.lesson}

    def rank(each: Advice) -> tuple[bool, bool, float]:
        off_the_limit, gain = ADVICE[each.rule].isdisjoint(facts.causes), each.gain or 1.0
        return off_the_limit, each.rung in detours, -gain * (each.measured or 1.0)

    best: dict[str, Advice] = {}  # one piece for each rung
    for each in sorted(found, key=rank):  # in the problem's order where they are equal
        best.setdefault(each.rung or each.idea, each)
    return tuple(best.values())[:MOST]


def _rule(name: str) -> Callable[[Any], Advice | None]:
    """The function ``few_blocks`` of the rule "few-blocks"."""
    known = name.replace("-", "_")
    rule: Callable[[Any], Advice | None] = next(
        filter(None, (vars(m).get(known) for m in _MODULES))
    )
    return rule


# --- host calls --------------------------------------------------------------------------------

_NOTICED = 0.02  # of the time of a call


def with_host_calls(
    why: Explanation, plan: Plan, device: float | None, host: float | None, ratio: float
) -> Explanation:
    """``why`` with advice on the host calls of the size it explains, if they cost much there.

    device, host: milliseconds of a call, as ``Timing`` has them. ratio: to the baseline.
    """
    said = _advice(plan, device, host, ratio)
    return msgspec.structs.replace(why, advice=(said, *why.advice)) if said else why


def _advice(plan: Plan, device: float | None, host: float | None, ratio: float) -> Advice | None:
    if not device or not host or host < _NOTICED * (device + host):
        return None
    allocates = sum(isinstance(each, Allocate) for each in plan.operations)
    frees = sum(isinstance(each, Free) for each in plan.operations)
    calls = (
        say("host-calls.allocates", times=allocates),
        say("host-calls.frees", times=frees),
        say("host-calls.waits", times=sum(map(_only_waits, plan.operations))),
    )
    remedy = say("host-calls.keep" if allocates or frees else "host-calls.no-wait")
    message = say(
        "host-calls.cost",
        calls=enumerated(each for each in calls if each.args["times"]),
        host=host,
        device=device,
        remedy=remedy,
        without=ratio * (device + host) / device,
        ratio=ratio,
    )
    said = Advice(idea="host_calls", rung=None, message=message, file=None, line=None, gain=None)
    for each in plan.operations:
        if each.place and (isinstance(each, Allocate | Free) or _only_waits(each)):
            return placed(said, each.place)
    return said


def _only_waits(operation: Operation) -> bool:
    return host_waits(operation) and not isinstance(operation, Free)
