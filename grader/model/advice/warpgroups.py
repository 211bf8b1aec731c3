"""Products on tensor cores of a Hopper GPU: wgmma, producer warps, tiles, multicast."""

import math

import msgspec

from grader.build import Product
from grader.model.facts import Facts, advice, scaled
from grader.model.records import Advice, TensorCount

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
    # Instructions of 64×128×16 read so many bytes of shared memory for as many operations.
    operands, operations = (64 + 128) * 16 * 2, 2 * 64 * 128 * 16
    changed = tuple(
        msgspec.structs.replace(
            each, by_warpgroup=True, shared_bytes=round(each.flops / operations * operands)
        )
        for each in counts.tensor
    )
    message = facts.say("warps-on-hopper", share=100 * share)
    gain = facts.gain(
        tensor=changed,
        matrix_loads=msgspec.structs.replace(counts.matrix_loads, cost=0, requests=0),
        instructions=counts.instructions - facts.executed("LDSM", "HMMA"),
    )
    return advice(facts, "wgmma_tma", message, "HMMA", gain=gain)


def copying_consumers(facts: Facts) -> Advice | None:
    """The warps that multiply also start the copies and wait for them."""
    if not facts.by_warpgroups:
        return None
    copies = [item for item in facts.code if item.base in _COPIES]
    if not copies:
        return None
    # Of a multiprocessor's tensor cores, for one iteration of a warpgroup.
    cycles = sum(4 * _cycles(each, facts) for item in facts.code if (each := item.product))
    serial = facts.loop.stall_cycles or 0
    figures = {"copies": len(copies), "instructions": facts.loop.instructions}
    message = facts.say("copying-consumers", **figures, cycles=cycles, serial=serial)
    alone = math.prod(facts.counts.block) <= 128
    gain = (cycles + serial) / cycles if cycles and alone else None
    return advice(facts, "ring", message, copies[0].base, gain=gain)


def small_block_tile(facts: Facts) -> Advice | None:
    """Find block tiles so small that the L2 or shared memory holds back the tensor cores."""
    speeds, counts = facts.speeds(), facts.counts
    tensor = speeds.get("tensor cores")
    loads = ("global_loads", "global_copies", "bulk_loads")
    moved = sum(getattr(counts, field).bytes for field in loads)
    now = moved / counts.flops if counts.flops else 0.0
    elements = 2 if counts.tensor and counts.tensor[0].kind != "tf32" else 4
    best = elements * (1 / _TILE[0] + 1 / _TILE[1]) / 2  # bytes for each operation
    shares_tiles = facts.by_warpgroups or facts.executed("LDSM")
    if tensor is None or now <= _NEAR * best or not shares_tiles:
        return None
    slow = {name: speeds[name] for name in ("L2", "L1") if name in speeds}
    name = min(slow, key=lambda each: slow[each], default=None)
    if name is None or slow[name] > _NEAR * tensor:
        return None
    figures = {"now": 1000 * now, "best": 1000 * best, "slow": slow[name], "tensor": tensor}
    tile = {"rows": _TILE[0], "columns": _TILE[1]}
    message = facts.say("small-block-tile", name=name, **figures, **tile)
    changes = {field: scaled(getattr(counts, field), best / now) for field in loads}
    idea = "two_consumers" if facts.by_warpgroups else "register_buffer"
    return advice(facts, idea, message, "UTMALDG", "LDGSTS", "LDG", gain=facts.gain(**changes))


def no_multicast(facts: Facts) -> Advice | None:
    """Blocks side by side read the same tile of one input, each for itself."""
    speeds, counts = facts.speeds(), facts.counts
    copies = [item for item in facts.function if item.base == "UTMALDG"]
    if not facts.by_warpgroups or not copies or any(".MULTICAST" in c.opcode for c in copies):
        return None
    if "L2" not in speeds or speeds["L2"] > _NEAR * speeds["tensor cores"]:
        return None
    moved, (first, *_, second) = counts.bulk_loads.bytes / counts.flops, facts.words.inputs
    figures = {"bytes": 1000 * moved, "l2": speeds["L2"], "tensor": speeds["tensor cores"]}
    message = facts.say("no-multicast", **figures, first=first, second=second, cluster=_CLUSTER)
    rows, columns = _TILE
    kept = (1 / rows + 1 / columns / _CLUSTER) / (1 / rows + 1 / columns)
    gain = facts.gain(bulk_loads=scaled(counts.bulk_loads, kept))
    return advice(facts, "cluster", message, "UTMALDG", gain=gain)


def blocks_by_turns(facts: Facts) -> Advice | None:
    """Blocks that start anew for every tile, though only one fits at a time."""
    counts, gpu = facts.counts, facts.gpu
    blocks = math.prod(counts.grid)
    turns = -(-blocks // gpu.multiprocessors)
    if not facts.by_warpgroups or facts.blocks_that_fit() != 1 or turns < _TURNS:
        return None
    message = facts.say("blocks-by-turns", blocks=blocks, turns=turns)
    tensor = sum(_cycles(each, facts) for each in counts.tensor) / gpu.multiprocessors / turns
    stored = counts.global_stores.cost * 32 / blocks / _STORED_BYTES
    idle = stored + gpu.multiprocessor.l2_latency + gpu.multiprocessor.dram_latency
    gain = (tensor + idle) / tensor if tensor else None
    return advice(facts, "persistent", message, "HGMMA", gain=gain)


def _cycles(each: TensorCount | Product, facts: Facts) -> float:
    """Tensor-core cycles of a multiprocessor that does it all."""
    return each.flops / 2 / facts.gpu.tensor_rate(each.kind, each.sums)
