"""Counts → what to try next. Every rule states its evidence and names a line of the source.

A rule's gain compares the bound with the bound of the counts after the change that the idea's rung
makes. If the idea is about waiting, which counts do not show, the gain comes from the issue model
without that wait. The gain is None if the idea relieves a resource that is not the bottleneck.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from grader.model.advice import grid, inner_loop, tensor_cores, warpgroups
from grader.model.facts import SENTENCES, Facts, KernelFacts, placed, say
from grader.model.records import Advice, Explanation
from ptxsim.plan import Allocate, Free, Operation, Plan, host_waits
from ptxsim.text import Message, enumerated, verbatim

MOST = 3  # pieces of advice; a student does one thing at a time

# By the names that problems use: rules for kernels with a main loop, and rules for any.
_WITH_LOOP: Mapping[str, Callable[[Facts], Advice | None]] = {
    "few-blocks": grid.few_blocks,
    "global-sum": inner_loop.global_sum,
    "no-tile": inner_loop.no_tile,
    "bank-conflicts": inner_loop.conflicts,
    "rolled-loop": inner_loop.rolled,
    "more-for-each-thread": inner_loop.more_for_each_thread,
    "scalar-loads": inner_loop.scalar_loads,
    "scalar-shared": inner_loop.scalar_shared,
    "exposed-loads": inner_loop.exposed,
    "two-barriers": inner_loop.two_barriers,
    "through-registers": inner_loop.through_registers,
    "long-wave": grid.long_wave,
    "tail": grid.tail,
    "register-banks": inner_loop.banks,
    "fragments-from-global": tensor_cores.fragments_from_global,
    "matrix-conflicts": tensor_cores.matrix_conflicts,
    "small-warp-tile": tensor_cores.small_warp_tile,
    "tiles-through-registers": tensor_cores.tiles_through_registers,
    "few-stages": tensor_cores.few_stages,
    "exposed-fragments": tensor_cores.exposed_fragments,
    "warps-on-hopper": warpgroups.warps_on_hopper,
    "copying-consumers": warpgroups.copying_consumers,
    "small-block-tile": warpgroups.small_block_tile,
    "no-multicast": warpgroups.no_multicast,
    "blocks-by-turns": warpgroups.blocks_by_turns,
}
_ANY: Mapping[str, Callable[[KernelFacts], Advice | None]] = {
    "use-tensor-cores": tensor_cores.use_tensor_cores,
    "split-warps": grid.split_warps,
    "few-parts": grid.few_parts,
    "scattered-pairs": grid.scattered_pairs,
    "idle-threads": grid.idle_threads,
    "barriers-for-one-warp": grid.barriers_for_one_warp,
    "sums-through-memory": grid.sums_through_memory,
    "few-bytes-on-the-way": grid.few_bytes_on_the_way,
    "several-passes": grid.several_passes,
}


def advice_title(advice: Advice) -> Message:
    """Name for students what is to be done; by the idea's own name where there is no other."""
    titles = SENTENCES.names("title")
    name = advice.rule if advice.rule in titles else advice.idea
    return say(f"title.{name}") if name in titles else verbatim(name.replace("_", " "))


def advise(facts: KernelFacts, names: Sequence[str]) -> tuple[Advice, ...]:
    """Apply the rules that a problem names, in its order, and return the advice."""
    found: dict[str, Advice] = {}  # one piece for each idea
    for name in names:
        if name in _ANY:
            said = _ANY[name](facts)
        else:
            said = _WITH_LOOP[name](facts) if isinstance(facts, Facts) else None
        if said is not None:
            found.setdefault(said.idea, msgspec.structs.replace(said, rule=name))
    return tuple(found.values())[:MOST]


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
