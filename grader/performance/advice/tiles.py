"""Tiles in shared memory: that there are some, and that they lie well in its banks."""

from __future__ import annotations

import msgspec

from grader.model import Advice, Message, Traffic, phrase
from grader.performance.advice.piece import advice, placed
from grader.performance.banks import Conflict, Remedy
from grader.performance.facts import Facts


def global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = phrase(
        "the sum goes to global memory {each:.2g} times for each FFMA; keep it in a register and "
        "store it once, after the loop, then take tiles through shared memory",
        each=each,
    )
    none = Traffic(requests=0, cost=0, lines=0, bytes=0)
    return advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=none))


def no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    found = phrase("{each:.2g} loads from global memory for each FFMA", each=each)
    if lines > 1.5:
        found = phrase(
            "{found}, and a warp's load touches {lines:.3g} lines of 128 bytes one after the "
            "other, where 1 would do for lanes that read neighbours in memory",
            found=found,
            lines=lines,
        )
    message = phrase(
        "{found}; load tiles of {inputs} into shared memory, neighbouring threads at neighbours in "
        "memory, so that every element serves 32 threads",
        found=found,
        inputs=facts.words.all_inputs,
    )
    ffma = facts.executed("FFMA")
    tiled = Traffic(requests=ffma // 16, cost=ffma // 4, lines=ffma // 16, bytes=8 * ffma)
    shared = Traffic(requests=2 * ffma, cost=2 * ffma, lines=0, bytes=256 * ffma, passes=2 * ffma)
    return advice(
        facts, "tile32", message, "LDG", gain=facts.gain(global_loads=tiled, shared_loads=shared)
    )


def conflicts(facts: Facts) -> Advice | None:
    conflict = facts.conflict
    if conflict is None:
        return None
    at, (one, other) = conflict.at, conflict.lanes
    message = phrase(
        "bank conflicts: {access} takes {wavefronts:.3g} wavefronts where {ideal:.3g} would do, "
        "because lanes {one} and {other} access words {apart} apart, which lie in one bank; "
        "{remedy}",
        access=_ACCESSES.get(at.opcode, phrase("a copy to shared memory")),
        wavefronts=at.wavefronts,
        ideal=at.ideal,
        one=one,
        other=other,
        apart=conflict.apart,
        remedy=_remedy(conflict.remedy),
    )
    idea = "tile32" if facts.loop.accumulators == 1 else "warp_tile"
    return placed(advice(facts, idea, message, at.opcode, gain=_without(facts, conflict)), at)


_ACCESSES = {
    "LDS": phrase("a load from shared memory"),
    "STS": phrase("a store to shared memory"),
}


def _remedy(remedy: Remedy | None) -> Message:
    if remedy is None:
        return phrase(
            "the model tried to pad the rows, to exchange columns by an XOR and to turn the lanes "
            "round, and none of it helps: let neighbouring lanes access neighbouring words"
        )
    if not remedy.kept:
        return phrase(
            "{remedy} (in the model none of this array's extra wavefronts remain)",
            remedy=remedy.words,
        )
    return phrase(
        "{remedy} (in the model {kept:.0f} % of this array's extra wavefronts remain)",
        remedy=remedy.words,
        kept=100 * remedy.kept,
    )


def _without(facts: Facts, conflict: Conflict) -> float | None:
    """The gain of the remedy."""
    names = {"LDS": "shared_loads", "STS": "shared_stores"}
    name = names.get(conflict.at.opcode)
    if conflict.remedy is None or name is None:
        return None
    now: Traffic = getattr(facts.counts, name)
    saved = (now.cost - now.passes) * conflict.share * (1 - conflict.remedy.kept)
    return facts.gain(**{name: msgspec.structs.replace(now, cost=now.cost - round(saved))})
