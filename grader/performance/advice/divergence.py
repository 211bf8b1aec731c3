"""Branches that split warps."""

from __future__ import annotations

from grader.model import Advice, phrase
from grader.performance.advice.piece import advice, placed
from grader.performance.facts import KernelFacts

_NOTICED = 0.1  # of the issue slots; a tree's last steps, in one warp of eight, take 4 %


def split_warps(facts: KernelFacts) -> Advice | None:
    """The branch that costs most, if all together cost much where issue slots are scarce."""
    counts = facts.counts
    splits = counts.splits or ()
    lost = sum(each.lost for each in splits)
    if not splits or lost < _NOTICED * counts.instructions or not facts.near_the_limit("issue"):
        return None
    worst = splits[0]
    alone = worst.lost / counts.instructions
    message = phrase(
        "divergence: this branch splits a warp in {splits:.0f} % of its executions, and "
        "{lost:.0f} % of the kernel's issue slots go to lanes that it switched off; let "
        "neighbouring threads go the same way, so that whole warps work and the others skip the "
        "branch",
        splits=100 * worst.splits / worst.reached,
        lost=100 * alone,
    )
    gain = facts.gain(instructions=round(counts.instructions - lost))
    return placed(advice(facts, "strided_index", message, "BRA", gain=gain), worst)
