"""Branches that split warps."""

from __future__ import annotations

from grader.model import Advice
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
    message = (
        f"divergence: this branch splits a warp in {100 * worst.splits / worst.reached:.0f} % of "
        f"its executions, and {100 * alone:.0f} % of the kernel's issue slots go to lanes that it "
        "switched off; let neighbouring threads go the same way, so that whole warps work and the "
        "others skip the branch"
    )
    gain = facts.gain(instructions=round(counts.instructions - lost))
    return placed(advice(facts, "strided_index", message, "BRA", gain=gain), worst)
