from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from grader.model import Advice
from grader.performance.advice import (
    divergence,
    grid,
    inner_loop,
    tensor_cores,
    tiles,
    trees,
    waits,
    warpgroups,
)
from grader.performance.facts import Facts, KernelFacts

MOST = 3  # pieces of advice; a student does one thing at a time

# By the names that problems use: rules for kernels with a main loop, and rules for any.
_WITH_LOOP: Mapping[str, Callable[[Facts], Advice | None]] = {
    "few-blocks": grid.few_blocks,
    "global-sum": tiles.global_sum,
    "no-tile": tiles.no_tile,
    "bank-conflicts": tiles.conflicts,
    "rolled-loop": inner_loop.rolled,
    "more-for-each-thread": inner_loop.more_for_each_thread,
    "scalar-loads": inner_loop.scalar_loads,
    "scalar-shared": inner_loop.scalar_shared,
    "exposed-loads": waits.exposed,
    "two-barriers": waits.two_barriers,
    "through-registers": waits.through_registers,
    "long-wave": grid.long_wave,
    "tail": grid.tail,
    "register-banks": waits.banks,
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
    "split-warps": divergence.split_warps,
    "few-parts": trees.few_parts,
    "scattered-pairs": trees.scattered_pairs,
    "idle-threads": trees.idle_threads,
    "barriers-for-one-warp": trees.barriers_for_one_warp,
    "sums-through-memory": trees.sums_through_memory,
    "few-bytes-on-the-way": trees.few_bytes_on_the_way,
    "several-passes": trees.several_passes,
}


def advise(facts: KernelFacts, names: Sequence[str]) -> tuple[Advice, ...]:
    """What applies of the rules that a problem names, in its order."""
    found = (_said(facts, name) for name in names)
    return tuple(_distinct(each for each in found if each is not None))[:MOST]


def _said(facts: KernelFacts, name: str) -> Advice | None:
    if name in _ANY:
        return _ANY[name](facts)
    return _WITH_LOOP[name](facts) if isinstance(facts, Facts) else None


def _distinct(found: Iterator[Advice]) -> Iterator[Advice]:
    """At most one piece of advice per idea."""
    seen: set[str] = set()
    for each in found:
        if each.idea not in seen:
            seen.add(each.idea)
            yield each
