"""One iteration of a main loop in words."""

from __future__ import annotations

from grader.model import Message, SassLoop, phrase


def loop_sentence(loop: SassLoop) -> Message:
    """What one iteration is, in words."""
    words = phrase(
        "{instructions} instructions, {ffma} of them FFMA ({share:.1f} %; {per:.3g} instructions "
        "for each FFMA), {sums} sums, {steps} steps along K",
        instructions=loop.instructions,
        ffma=loop.ffma,
        share=100 * loop.ffma / loop.instructions,
        per=loop.instructions / loop.ffma,
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
