from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from grader.model import Advice
from grader.performance.advice import grid, inner_loop, tiles, waits
from grader.performance.facts import Facts

MOST = 3  # pieces of advice; a student does one thing at a time

_RULES: Sequence[Callable[[Facts], Advice | None]] = (
    *(grid.few_blocks, tiles.global_sum, tiles.no_tile, tiles.conflicts, inner_loop.rolled),
    *(inner_loop.more_for_each_thread, inner_loop.scalar_loads, inner_loop.scalar_shared),
    *(waits.exposed, waits.two_barriers, waits.through_registers),
    *(grid.long_wave, grid.tail, waits.banks),
)


def advise(facts: Facts) -> tuple[Advice, ...]:
    """The first rules that apply, in the order of the ladder."""
    found = (rule(facts) for rule in _RULES)
    return tuple(_distinct(each for each in found if each is not None))[:MOST]


def _distinct(found: Iterator[Advice]) -> Iterator[Advice]:
    """At most one piece of advice per idea."""
    seen: set[str] = set()
    for each in found:
        if each.idea not in seen:
            seen.add(each.idea)
            yield each
