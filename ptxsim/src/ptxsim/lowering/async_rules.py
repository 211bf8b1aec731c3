"""Lowering rules of bulk copies, mbarriers and clusters."""

from ptxsim.frontend.records import SIZES, Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import OWN_TAINT, SHARED, Constant, Operand, Register

BY_MBARRIER = "mbarrier::complete_tx::bytes"
_REDUCTIONS = {"add", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max"}
_MOST_DIMENSIONS = 5
_WIDE = {"width": 16, "space": SHARED, "flags": OWN_TAINT}


def bulk(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """cp.async.bulk…; ``mods`` begins with "bulk"."""
    kind = mods[1]
    if kind == "commit_group":
        low.emit_guarded("cp.async.bulk.commit_group", [])
    elif kind == "wait_group":
        name = f"cp.async.{'.'.join(mods)}"
        low.emit_guarded(name, [], imm=int(item.operands[0], 0))
    elif kind == "prefetch":
        return
    elif kind == "tensor":
        _tensor(low, item, mods)
    elif kind == "global":
        _copy_out(low, item)
    else:
        across = "" if "global" in mods[2:] else ".across"
        _copy_in(low, item, mods, f"cp.async.bulk{across}")


def reduction(mods: list[str]) -> str:
    """The engine's name of what an atomic instruction does, such as "add.u32"."""
    name, kind = next((m for m in mods if m in _REDUCTIONS), ""), mods[-1]
    bits = kind[1:] if kind[0] in "sub" and not kind.startswith("bf") else ""
    if not bits:
        return f"{name}.{kind}"
    shape = "b" if name in {"and", "or", "xor", "exch", "cas"} else kind[0]
    return f"{name}.{'u' if name == 'add' and shape == 's' else shape}{bits}"


def reduce(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """red.async….add.u32 [to], value, [barrier]"""
    if BY_MBARRIER not in mods:
        raise low.unsupported()
    base, width, offset = low.address(item.operands[0])
    value, bytes_ = low.source(item.operands[1], mods[-1]), SIZES[mods[-1]]
    operands = [value, None, None, None, base, width, *address(low, item.operands[2], 4)]
    shape = {"imm": offset, "width": bytes_, "dwidth": bytes_, "space": SHARED, "flags": OWN_TAINT}
    low.emit_guarded(f"red.async.{reduction(mods)}", operands, **shape)


def reduce_bulk(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [to], [from], size, or, with an
    mbarrier, into the shared memory of a block of the cluster."""
    if mods[0] == "global":
        _copy_out(low, item, f"cp.reduce.async.bulk.out.{reduction(mods)}")
    elif mods[0] == "shared::cluster" and BY_MBARRIER in mods:
        _copy_in(low, item, mods, f"cp.reduce.async.bulk.across.{reduction(mods)}")
    else:
        raise low.unsupported()


def _copy_in(low: Lowering, item: Instruction, mods: list[str], name: str) -> None:
    """cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [to], [from], size, [barrier]"""
    if BY_MBARRIER not in mods:
        raise low.unsupported()
    target, target_width, target_offset = low.address(item.operands[0])
    source, source_offset = address(low, item.operands[1], 8)
    barrier, barrier_offset = address(low, item.operands[3], 4)
    ranks = low.source(item.operands[4], "b16") if "multicast::cluster" in mods else None
    size = low.source(item.operands[2], "u32")
    operands = [source, size, barrier, source_offset, target, target_width, barrier_offset, ranks]
    low.emit_guarded(name, operands, imm=target_offset, **_WIDE)


def _copy_out(low: Lowering, item: Instruction, name: str = "cp.async.bulk.out") -> None:
    """cp.async.bulk.global.shared::cta.bulk_group [to], [from], size"""
    target, target_offset = address(low, item.operands[0], 8)
    source, source_width, source_offset = low.address(item.operands[1])
    size = low.source(item.operands[2], "u32")
    operands = [target, size, None, target_offset, source, source_width]
    low.emit_guarded(name, operands, imm=source_offset, **_WIDE)


def _tensor(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """cp.async.bulk.tensor.2d.shared::cluster.global… [to], [map, {x, y}], [barrier]; to global
    memory the first two change places."""
    rank = int(mods[2].removesuffix("d"))
    out = mods[3] == "global"
    if any(m.startswith(("im2col", "tile::", "cta_group")) for m in mods):
        raise low.unsupported()
    if not 1 <= rank <= _MOST_DIMENSIONS or (not out and BY_MBARRIER not in mods):
        raise low.unsupported()
    place, tile = item.operands[1 - out], item.operands[int(out)]
    map_text, _, rest = place.strip("[]").partition(",")
    base, offset = address(low, f"[{map_text}]", 8)
    if offset:
        base = low.result("add.u64", 8, base, Constant(offset, 8))
    at = low.vector(rest.strip(), "b32", output=False)
    if len(at) != rank:
        raise low.unsupported_form()
    barrier: Operand = None
    ranks: Operand = None
    if not out:
        barrier = _whole(low, item.operands[2])
        ranks = low.source(item.operands[3], "b16") if "multicast::cluster" in mods else None
    missing = [None] * (_MOST_DIMENSIONS - rank)
    extra = [base, _whole(low, tile), barrier, ranks, *at, *missing]
    name = "cp.async.bulk.tensor.out" if out else "cp.async.bulk.tensor"
    low.emit_guarded(name, [], extra=extra, vec=rank, **_WIDE)


def address(low: Lowering, text: str, width: int) -> tuple[Operand, int]:
    """An address as a register of ``width`` bytes, and an offset from it: 4 in shared memory."""
    base, given, offset = low.address(text)
    if base is None:
        return Constant(offset, width), 0
    if given != width:
        base = low.result(f"cvt.r.u{8 * width}.u{8 * given}", width, base)
    return base, offset


def _whole(low: Lowering, text: str) -> Operand:
    """An address in shared memory as one register of 32 bits."""
    base, offset = address(low, text, 4)
    if not offset or not isinstance(base, Register):
        return base
    return low.result("add.u32", 4, base, Constant(offset & 0xFFFFFFFF, 4))


def mbarrier(low: Lowering, item: Instruction, mods: list[str]) -> None:
    texts = list(item.operands)
    kind = mods[0]
    relaxed = ".relaxed" if "relaxed" in mods else ""
    if kind == "inval":
        _at(low, "mbarrier.inval", texts[0], [None, None, None])
    elif kind in {"init", "expect_tx", "complete_tx"}:
        _at(low, f"mbarrier.{kind}", texts[0], [low.source(texts[1], "u32"), None, None])
    elif kind in {"arrive", "arrive_drop"}:
        state = None if texts[0] == "_" else low.target(texts[0], "b64")
        last = low.source(texts[2], "u32") if len(texts) > 2 else None
        expects = "expect_tx" in mods
        operands = [state, None, last] if expects else [state, last, None]
        form = ".noComplete" if "noComplete" in mods else relaxed
        _at(low, f"mbarrier.{kind}{form}", texts[1], operands)
    elif kind in {"test_wait", "try_wait"}:
        parity = "parity" in mods
        name = f"mbarrier.test_wait{'.parity' if parity else ''}{relaxed}"
        over = low.target(texts[0], "pred")
        _at(low, name, texts[1], [over, low.source(texts[2], "u32" if parity else "b64"), None])
    else:
        raise low.unsupported()


def arrive_after_copies(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = "cp.async.mbarrier.arrive" + (".noinc" if "noinc" in mods else "")
    _at(low, name, item.operands[0], [None, None, None])


def _at(low: Lowering, name: str, address: str, operands: list[Operand]) -> None:
    base, width, offset = low.address(address)
    low.emit_guarded(
        name, [*operands, None, base, width], imm=offset, width=8, space=SHARED, flags=OWN_TAINT
    )


def map_address(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """mapa[.shared::cluster].u32 d, address, rank"""
    kind = mods[-1]
    d, address, rank = item.operands
    values = [low.target(d, kind), low.source(address, kind), low.source(rank, "u32")]
    low.emit_guarded(f"mapa.{kind}", values)


def rank_of_address(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    d, address = item.operands
    low.emit_guarded(f"getctarank.{kind}", [low.target(d, "u32"), low.source(address, kind)])
