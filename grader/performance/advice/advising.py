from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from grader.model import Advice
from grader.performance.advice import grid, inner_loop, tiles, waits
from grader.performance.facts import Facts

MOST = 3  # pieces of advice; a student does one thing at a time

RULES: Mapping[str, Callable[[Facts], Advice | None]] = {
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
}


def advise(facts: Facts, names: Sequence[str]) -> tuple[Advice, ...]:
    """What applies of the rules that a problem names, in its order."""
    found = (RULES[name](facts) for name in names)
    return tuple(_distinct(each for each in found if each is not None))[:MOST]


def _distinct(found: Iterator[Advice]) -> Iterator[Advice]:
    """At most one piece of advice per idea."""
    seen: set[str] = set()
    for each in found:
        if each.idea not in seen:
            seen.add(each.idea)
            yield each
