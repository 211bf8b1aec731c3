"""One iteration of a main loop in words."""

from __future__ import annotations

from grader.model import Message, SassLoop, phrase


def loop_sentence(loop: SassLoop) -> Message:
    """What one iteration is, in words."""
    done, what = (loop.tensor, "HMMA") if loop.tensor else (loop.ffma, "FFMA")
    if any(entry.kind == "HGMMA" for entry in loop.mix):
        what = "HGMMA"
    words = phrase(
        "{instructions} instructions, {done} of them {what} ({share:.1f} %; {per:.3g} instructions "
        "for each), {sums} sums, {steps} products for each sum",
        instructions=loop.instructions,
        done=done,
        what=what,
        share=100 * done / loop.instructions,
        per=loop.instructions / max(done, 1),
        sums=loop.accumulators,
        steps=loop.unroll,
    )
    if loop.bank_conflicts:
        words = phrase(
            "{loop}, {cycles} cycles of waiting for register banks",
            loop=words,
            cycles=loop.bank_conflicts,
        )
    if loop.stall_cycles is not None:
        words = phrase(
            "{loop}; a warp alone needs {cycles} cycles or more",
            loop=words,
            cycles=loop.stall_cycles,
        )
    return words
