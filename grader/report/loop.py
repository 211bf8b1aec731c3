"""One iteration of a main loop in words."""

from __future__ import annotations

from grader.model import SassLoop


def loop_sentence(loop: SassLoop) -> str:
    """What one iteration is, in words."""
    per = loop.instructions / loop.ffma
    share = 100 * loop.ffma / loop.instructions
    words = (
        f"{loop.instructions} instructions, {loop.ffma} of them FFMA ({share:.1f} %; {per:.3g} "
        f"instructions for each FFMA), {loop.accumulators} sums, {loop.unroll} steps along K"
    )
    if loop.bank_conflicts:
        words += f", {loop.bank_conflicts} cycles of waiting for register banks"
    if loop.stall_cycles is not None:
        words += f"; a warp alone needs {loop.stall_cycles} cycles or more"
    return words
