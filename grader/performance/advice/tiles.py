"""Tiles in shared memory: that there are some, and that they lie well in its banks."""

from __future__ import annotations

import msgspec

from grader.model import Advice, Traffic
from grader.performance.advice.piece import advice, placed
from grader.performance.banks import Conflict
from grader.performance.facts import Facts


def global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = (
        f"the sum goes to global memory {each:.2g} times for each FFMA; keep it in a register and "
        "store it once, after the loop, then take tiles through shared memory"
    )
    none = Traffic(requests=0, cost=0, lines=0, bytes=0)
    return advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=none))


def no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    spread = (
        f", and a warp's load touches {lines:.3g} lines of 128 bytes one after the other, where 1 "
        "would do for lanes that read neighbours in memory"
        if lines > 1.5
        else ""
    )
    message = (
        f"{each:.2g} loads from global memory for each FFMA{spread}; load a tile of A and of B "
        "into shared memory, neighbouring threads at neighbours in memory, so that every element "
        "serves 32 threads"
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
    what = {"LDS": "a load from", "STS": "a store to"}.get(at.opcode, "a copy to")
    message = (
        f"bank conflicts: {what} shared memory takes {at.wavefronts:.3g} wavefronts where "
        f"{at.ideal:.3g} would do, because lanes {one} and {other} access words {conflict.apart} "
        "apart, which lie in one bank; "
    )
    if conflict.remedy is None:
        message += (
            "the model tried to pad the rows, to exchange columns by an XOR and to turn the lanes "
            "round, and none of it helps: let neighbouring lanes access neighbouring words"
        )
    else:
        left = f"{100 * conflict.remedy.kept:.0f} %" if conflict.remedy.kept else "none"
        message += (
            f"{conflict.remedy.words} (in the model {left} of this array's extra wavefronts remain)"
        )
    idea = "tile32" if facts.loop.accumulators == 1 else "warp_tile"
    return placed(advice(facts, idea, message, at.opcode, gain=_without(facts, conflict)), at)


def _without(facts: Facts, conflict: Conflict) -> float | None:
    """The gain of the remedy."""
    names = {"LDS": "shared_loads", "STS": "shared_stores"}
    name = names.get(conflict.at.opcode)
    if conflict.remedy is None or name is None:
        return None
    now: Traffic = getattr(facts.counts, name)
    saved = (now.cost - now.passes) * conflict.share * (1 - conflict.remedy.kept)
    return facts.gain(**{name: msgspec.structs.replace(now, cost=now.cost - round(saved))})
