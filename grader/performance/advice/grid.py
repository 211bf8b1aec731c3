"""How blocks spread over the GPU."""

from __future__ import annotations

from grader.hardware import gpus
from grader.model import Advice, counted, phrase
from grader.performance.advice.piece import BLOCKED, advice
from grader.performance.facts import Facts


def few_blocks(facts: Facts) -> Advice | None:
    counts, sms = facts.counts, facts.gpu.multiprocessors
    blocks = counts.grid[0] * counts.grid[1] * counts.grid[2] * counts.times
    if blocks >= sms:
        return None
    message = counted(
        "{count} block for the whole of {output}, where a GPU like the {gpu} has {sms} "
        "multiprocessors and a block uses one; give every tile of {output} a block of its own",
        "{count} blocks for the whole of {output}, where a GPU like the {gpu} has {sms} "
        "multiprocessors and a block uses one; give every tile of {output} a block of its own",
        blocks,
        output=facts.words.output,
        gpu=facts.gpu.name,
        sms=sms,
    )
    return advice(
        facts, "tile32", message, "FFMA", gain=facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0)
    )


def long_wave(facts: Facts) -> Advice | None:
    """Blocks that run at the same time should share what they load."""
    counts, gpu = facts.counts, facts.gpu
    fits = gpus.occupancy(
        gpu.multiprocessor,
        block=counts.block,
        registers=facts.kernel.registers,
        shared_bytes=facts.kernel.shared_bytes + counts.shared_bytes,
    )
    across, down = counts.grid[0], counts.grid[1]
    threads = counts.block[0] * counts.block[1] * counts.block[2]
    covered = across * down * threads * facts.loop.accumulators / facts.work.elements
    if not 0.9 < covered < 1.1:
        return None  # a block does not compute a separate tile of C
    if fits is None or facts.loop.accumulators < BLOCKED or down < 2 or counts.grid[2] > 1:
        return None
    wave = min(fits.blocks * gpu.multiprocessors, across * down)
    tiles = min(across, wave) + -(-wave // across)
    best = 2 * wave**0.5
    if tiles < 1.5 * best:
        return None
    message = phrase(
        "{wave} blocks run at a time and, in the order of blockIdx, read {tiles} different tile "
        "rows and columns; a square patch of blocks would read {best:.0f}, and find more of them "
        "in the L2 cache",
        wave=wave,
        tiles=tiles,
        best=best,
    )
    return advice(facts, "rasterised", message, "LDG", "LDGSTS")


def tail(facts: Facts) -> Advice | None:
    counts, gpu = facts.counts, facts.gpu
    blocks = counts.grid[0] * counts.grid[1] * counts.grid[2]
    busiest = -(-blocks // gpu.multiprocessors)
    used = blocks / (busiest * gpu.multiprocessors)
    if used > 0.85 or facts.loop.accumulators < BLOCKED:
        return None
    message = phrase(
        "{blocks} blocks on {sms} multiprocessors: some run {busiest}, and {idle:.0f} % of the GPU "
        "is idle while they do; blocks that take a part of {depth} each (split-{depth}) spread the "
        "work evenly",
        depth=facts.words.depth,
        blocks=blocks,
        sms=gpu.multiprocessors,
        busiest=busiest,
        idle=100 * (1 - used),
    )
    return advice(facts, "split_k", message, "FFMA", gain=1 / used)
