"""One iteration of a main loop in words."""

from __future__ import annotations

from grader.model import SassLoop


def loop_sentence(loop: SassLoop) -> str:
    """What one iteration is, in words."""
    done, what = (loop.tensor, "tensor-core products") if loop.tensor else (loop.ffma, "FFMA")
    words = (
        f"{loop.instructions} instructions, {done} of them {what} "
        f"({100 * done / loop.instructions:.1f} %; {loop.instructions / max(done, 1):.3g} "
        f"instructions for each), {loop.accumulators} sums, {loop.unroll} steps of each"
    )
    if loop.bank_conflicts:
        words += f", {loop.bank_conflicts} cycles of waiting for register banks"
    if loop.stall_cycles is not None:
        words += f"; a warp alone needs {loop.stall_cycles} cycles or more"
    return words
