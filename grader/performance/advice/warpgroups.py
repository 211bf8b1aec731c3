"""Products on tensor cores of a Hopper GPU: wgmma, producer warps, tiles, multicast."""

from __future__ import annotations

import math

import msgspec

from grader.hardware import gpus
from grader.model import Advice, TensorCount, Traffic, phrase
from grader.performance.advice.piece import advice
from grader.performance.facts import Facts
from grader.performance.sass import Instruction

_HOPPER = range(90, 100)
_COPIES = ("UTMALDG", "UBLKCP", "LDGSTS", "LDG")
_NEAR = 1.15  # of the tensor cores' limit
_TILE = (128, 256)  # of a block; larger sums do not fit the registers of two warpgroups
_CLUSTER = 2  # blocks that share a tile by multicast
_TURNS = 2
_STORED_BYTES = 64  # to the L2 in each cycle


def warps_on_hopper(facts: Facts) -> Advice | None:
    """mma.sync where there is wgmma."""
    gpu, counts = facts.gpu, facts.counts
    if gpu.capability not in _HOPPER or not facts.products or facts.by_warpgroups:
        return None
    if not facts.near_the_limit("tensor cores"):
        return None
    kind, sums = counts.tensor[0].kind, counts.tensor[0].sums
    share = gpu.tensor_rate(kind, sums, by_warps=True) / gpu.tensor_rate(kind, sums)
    changed = tuple(
        msgspec.structs.replace(each, by_warpgroup=True, shared_bytes=_operands(each))
        for each in counts.tensor
    )
    message = phrase(
        "HMMA, which mma.sync and wmma become, reaches at most {share:.0f} % of the tensor cores' "
        "rate on the {gpu}; wgmma reaches all of it, four warps together, and reads the tiles of "
        "{inputs} straight from shared memory, where TMA puts them",
        share=100 * share,
        gpu=gpu.name,
        inputs=facts.words.all_inputs,
    )
    gain = facts.gain(
        tensor=changed,
        matrix_loads=msgspec.structs.replace(counts.matrix_loads, cost=0, requests=0),
        instructions=counts.instructions - facts.executed("LDSM", "HMMA"),
    )
    return advice(facts, "wgmma_tma", message, "HMMA", gain=gain)


def _operands(each: TensorCount) -> int:
    """What instructions of 64×128×16 read of shared memory for as many operations."""
    return round(each.flops / (2 * 64 * 128 * 16) * (64 + 128) * 16 * 2)


def copying_consumers(facts: Facts) -> Advice | None:
    """The warps that multiply also start the copies and wait for them."""
    if not facts.by_warpgroups:
        return None
    copies = [item for item in facts.code if item.base in _COPIES]
    if not copies:
        return None
    cycles = _tensor_cycles(facts)
    serial = facts.loop.stall_cycles or 0
    message = phrase(
        "the warps that multiply also copy: {copies} of {instructions} instructions of the main "
        "loop start copies, and in every iteration the tensor cores ({cycles:.0f} cycles of work) "
        "wait while warps issue, synchronise and wait for the next tile (at least {serial} cycles "
        "of a warp); let one warp do nothing but start copies, ahead of the others, and hand "
        "tiles over by mbarriers, one that says full and one that says empty for each stage",
        copies=len(copies),
        instructions=facts.loop.instructions,
        cycles=cycles,
        serial=serial,
    )
    alone = facts.counts.block[0] * facts.counts.block[1] * facts.counts.block[2] <= 128
    gain = (cycles + serial) / cycles if cycles and alone else None
    return advice(facts, "ring", message, copies[0].base, gain=gain)


def _tensor_cycles(facts: Facts) -> float:
    """Of a multiprocessor for one iteration of a warpgroup."""
    return sum(_cycles(item, facts) for item in facts.code)


def _cycles(item: Instruction, facts: Facts) -> float:
    product = item.product
    if product is None:
        return 0.0
    return 4 * product.flops / 2 / facts.gpu.tensor_rate(product.kind, product.sums)


def small_block_tile(facts: Facts) -> Advice | None:
    """What the block's tile asks of the L2, and wgmma of shared memory."""
    speeds, counts = facts.speeds(), facts.counts
    tensor = speeds.get("tensor cores")
    now = _bytes(facts) / counts.flops if counts.flops else 0.0
    elements = 2 if counts.tensor and counts.tensor[0].kind != "tf32" else 4
    best = elements * (1 / _TILE[0] + 1 / _TILE[1]) / 2  # bytes for each operation
    if tensor is None or now <= _NEAR * best or not _shares_tiles(facts):
        return None
    slow = {name: speeds[name] for name in ("L2", "L1") if name in speeds}
    name = min(slow, key=lambda each: slow[each], default=None)
    if name is None or slow[name] > _NEAR * tensor:
        return None
    message = phrase(
        "the blocks' tiles are too small for the tensor cores: a block reads {now:.3g} bytes for "
        "each 1000 operations, so the {name} allows {slow:.4g} TFLOPS where the tensor cores "
        "would do {tensor:.4g}; with a tile of {rows}×{columns} of {output} it is {best:.3g}",
        now=1000 * now,
        name=name,
        slow=slow[name],
        tensor=tensor,
        rows=_TILE[0],
        columns=_TILE[1],
        output=facts.words.output,
        best=1000 * best,
    )
    changes = {
        field: _scaled(getattr(counts, field), best / now)
        for field in ("global_loads", "global_copies", "bulk_loads")
    }
    idea = "two_consumers" if facts.by_warpgroups else "register_buffer"
    return advice(facts, idea, message, "UTMALDG", "LDGSTS", "LDG", gain=facts.gain(**changes))


def _shares_tiles(facts: Facts) -> bool:
    return facts.by_warpgroups or facts.executed("LDSM") > 0


def _bytes(facts: Facts) -> int:
    counts = facts.counts
    return counts.global_loads.bytes + counts.global_copies.bytes + counts.bulk_loads.bytes


def _scaled(traffic: Traffic, factor: float) -> Traffic:
    fields = {name: round(getattr(traffic, name) * factor) for name in Traffic.__struct_fields__}
    return Traffic(**fields)


def no_multicast(facts: Facts) -> Advice | None:
    """Blocks side by side read the same tile of one input, each for itself."""
    speeds, counts = facts.speeds(), facts.counts
    copies = [item for item in facts.function if item.base == "UTMALDG"]
    if not facts.by_warpgroups or not copies or any(".MULTICAST" in c.opcode for c in copies):
        return None
    if "L2" not in speeds or speeds["L2"] > _NEAR * speeds["tensor cores"]:
        return None
    message = phrase(
        "the L2 must deliver {bytes:.3g} bytes for each 1000 operations and allows {l2:.4g} "
        "TFLOPS, where the tensor cores would do {tensor:.4g}; blocks next to each other read the "
        "same rows of {first} or columns of {second}: launch them as a cluster of {cluster}, let "
        "each copy half of that tile, and send it to both by multicast",
        bytes=1000 * counts.bulk_loads.bytes / counts.flops,
        l2=speeds["L2"],
        tensor=speeds["tensor cores"],
        first=facts.words.inputs[0],
        second=facts.words.inputs[-1],
        cluster=_CLUSTER,
    )
    rows, columns = _TILE
    kept = (1 / rows + 1 / columns / _CLUSTER) / (1 / rows + 1 / columns)
    gain = facts.gain(bulk_loads=_scaled(counts.bulk_loads, kept))
    return advice(facts, "cluster", message, "UTMALDG", gain=gain)


def blocks_by_turns(facts: Facts) -> Advice | None:
    """Blocks that start anew for every tile, though only one fits at a time."""
    counts, gpu = facts.counts, facts.gpu
    blocks = math.prod(counts.grid)
    turns = -(-blocks // gpu.multiprocessors)
    fits = gpus.occupancy(
        gpu.multiprocessor,
        block=counts.block,
        registers=facts.kernel.registers,
        shared_bytes=facts.kernel.shared_bytes + counts.shared_bytes,
    )
    if not facts.by_warpgroups or fits is None or fits.blocks > 1 or turns < _TURNS:
        return None
    message = phrase(
        "{blocks} blocks, of which a multiprocessor holds one at a time: {turns} times the tensor "
        "cores stand still while a block stores its sums, ends, and the next one fills its first "
        "stages; launch one block for each of the {sms} multiprocessors, let it go on to the next "
        "tile of {output} by itself, and copy ahead while the last sums are stored",
        blocks=blocks,
        turns=turns,
        sms=gpu.multiprocessors,
        output=facts.words.output,
    )
    tensor = sum(_work(each, facts) for each in counts.tensor) / gpu.multiprocessors / turns
    stored = counts.global_stores.cost * 32 / blocks / _STORED_BYTES
    idle = stored + gpu.multiprocessor.l2_latency + gpu.multiprocessor.dram_latency
    gain = (tensor + idle) / tensor if tensor else None
    return advice(facts, "persistent", message, "HGMMA", gain=gain)


def _work(each: TensorCount, facts: Facts) -> float:
    """Cycles of a multiprocessor that does it all."""
    return each.flops / 2 / facts.gpu.tensor_rate(each.kind, each.sums)
