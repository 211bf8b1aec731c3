"""Lowering rules of instructions that touch memory."""

from ptxsim.frontend.records import SIZES, Instruction
from ptxsim.lowering import async_rules
from ptxsim.lowering import operation as ops
from ptxsim.lowering.lower import Lowering

_SPACES = {
    "global": ops.GLOBAL,
    "shared": ops.SHARED,
    "shared::cta": ops.SHARED,
    "shared::cluster": ops.SHARED,
    "local": ops.LOCAL,
    "const": ops.CONST,
    "param": ops.PARAM,
    "param::entry": ops.PARAM,
    "param::func": ops.PARAM,
}
_ORDERING = {"relaxed", "acquire", "release", "acq_rel", "sc"}
_ORDER_OF = {
    ("volatile",): ops.VOLATILE,
    ("acquire", "acq_rel"): ops.ACQUIRES,
    ("release", "acq_rel"): ops.RELEASES,
    ("cta",): ops.BLOCK_SCOPE,
    ("nc", "const"): ops.READ_ONLY,
}


def space_of(low: Lowering, mods: list[str]) -> int:
    """The state space that an instruction's modifiers name."""
    for mod in mods:
        if mod in _SPACES:
            space = _SPACES[mod]
            # Device functions get their parameters in lane-private memory.
            return ops.LOCAL if space == ops.PARAM and not low.function.entry else space
        if mod.startswith("shared::"):
            raise low.unsupported()
    return ops.GENERIC


def _synchronises(mods: list[str]) -> int:
    return ops.SYNCHRONISES if {"volatile", *_ORDERING} & set(mods) else 0


def _order(mods: list[str]) -> int:
    """The ORDER_BITS of an access that its modifiers name."""
    return sum(bit for names, bit in _ORDER_OF.items() if set(names) & set(mods))


def load(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    if kind not in SIZES or SIZES[kind] > 8:
        raise low.unsupported()
    space = space_of(low, mods)
    if space == ops.PARAM and "@param" in item.operands[1]:
        space = ops.LOCAL  # declared in a call sequence, and so renamed
    base, width, offset = low.address(item.operands[1])
    targets = low.vector(item.operands[0], kind, output=True)
    first = targets[0]
    if not isinstance(first, ops.Register) or len(targets) not in (1, 2, 4):
        raise low.unsupported_form()
    vec = len(targets)
    targets += [None] * (4 - vec)
    low.emit_guarded(
        "ld",
        [*targets, base, width, _order(mods) | (ops.READ_ONLY if item.opcode[:3] == "ldu" else 0)],
        imm=offset,
        width=SIZES[kind],
        vec=vec,
        space=space,
        dwidth=first.width,
        flags=ops.OWN_TAINT | (ops.SIGNED if kind[0] == "s" else 0) | _synchronises(mods),
    )


def store(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    if kind not in SIZES or SIZES[kind] > 8:
        raise low.unsupported()
    space = space_of(low, mods)
    asynchronous = "async" in mods
    if asynchronous and async_rules.BY_MBARRIER not in mods:
        raise low.unsupported()
    if space == ops.PARAM:
        space = ops.LOCAL
    base, width, offset = low.address(item.operands[0])
    values = low.vector(item.operands[1], kind, output=False)
    widths = {v.width for v in values if isinstance(v, (ops.Register, ops.Constant))}
    if len(widths) != 1 or len(values) not in (1, 2, 4):
        raise low.unsupported_form()
    operands: list[ops.Operand] = [*values, *([None] * (4 - len(values))), base, width]
    if asynchronous:
        operands += async_rules.address(low, item.operands[2], 4)
    else:
        operands.append(_order(mods))
    low.emit_guarded(
        "st.async" if asynchronous else "st",
        operands,
        imm=offset,
        width=SIZES[kind],
        vec=len(values),
        space=space,
        dwidth=widths.pop(),
        flags=ops.OWN_TAINT | (0 if asynchronous else _synchronises(mods)),
    )


def atomic(low: Lowering, item: Instruction, mods: list[str]) -> None:
    plain = item.opcode.startswith("red.")
    kind = mods[-1]
    if kind not in SIZES or SIZES[kind] > 8:
        raise low.unsupported()
    if "async" in mods:
        async_rules.reduce(low, item, mods)
        return
    engine = f"atom.{async_rules.reduction(mods)}"
    operands = ["", *item.operands] if plain else list(item.operands)
    reduction = plain or low.is_never_read(operands[0])
    if "L2::cache_hint" in mods:
        operands.pop()
    base, width, offset = low.address(operands[1])
    olds = [None] if reduction else low.vector(operands[0], kind, output=True)
    values = low.vector(operands[2], kind, output=False)
    count = next((int(m[1:]) for m in mods if m in {"v2", "v4", "v8"}), 1)
    if len(values) != count or (len(olds) != count and not reduction):
        raise low.unsupported_form()
    if base is not None and base in olds[:-1]:
        raise low.unsupported_form()  # a later element would find another address
    second = low.source(operands[3], kind) if len(operands) > 3 else None
    for at, value in enumerate(values):  # a vector is as many atomics of its elements
        low.emit_guarded(
            engine,
            [None if reduction else olds[at], value, second, None, base, width, _order(mods)],
            imm=offset + at * SIZES[kind],
            width=SIZES[kind],
            vec=1,
            space=space_of(low, mods),
            flags=ops.OWN_TAINT | ops.SYNCHRONISES,
        )


def convert_address(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if mods[-1] != "u64":
        raise low.unsupported()
    values = [low.target(item.operands[0], "u64"), low.source(item.operands[1], "u64")]
    back = "to" in mods
    space = "to" if back else mods[0].split("::")[0]
    name = "mov.b64" if mods[int(back)] in {"global", "const"} else f"cvta.{space}"
    low.emit_guarded(name, values)


def is_space(low: Lowering, item: Instruction, mods: list[str]) -> None:
    values = [low.target(item.operands[0], "pred"), low.source(item.operands[1], "u64")]
    low.emit_guarded(f"isspacep.{mods[0].split('::')[0]}", values)


def copy(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if mods[:3] == ["reduce", "async", "bulk"]:
        async_rules.reduce_bulk(low, item, mods[3:])
        return
    if mods.pop(0) != "async":
        raise low.unsupported()
    if mods[0] in {"commit_group", "wait_all"}:
        low.emit_guarded(f"cp.async.{mods[0]}", [])
    elif mods[0] == "wait_group":
        low.emit_guarded("cp.async.wait_group", [], imm=int(item.operands[0], 0))
    elif {"ca", "cg"} & set(mods):
        _issue_copy(low, item, mods)
    elif mods[0] == "mbarrier":
        async_rules.arrive_after_copies(low, item, mods)
    elif mods[0] == "bulk":
        async_rules.bulk(low, item, mods)
    else:
        raise low.unsupported()


def _issue_copy(low: Lowering, item: Instruction, mods: list[str]) -> None:
    target, target_width, target_offset = low.address(item.operands[0])
    source, source_width, source_offset = low.address(item.operands[1])
    if source is None or source_width != 8:
        raise low.unsupported()
    bytes_ = int(item.operands[2], 0)
    if bytes_ not in (4, 8, 16):
        raise low.unsupported_form()
    size: ops.Operand = None
    ignore: ops.Operand = None
    further = item.operands[3:-1] if "L2::cache_hint" in mods else item.operands[3:]
    if len(further) > 1:
        raise low.unsupported_form()
    for text in further:
        value = low.source(text, low.register_kind(text, "u32"))
        if isinstance(value, ops.Predicate):
            ignore = value
        else:
            size = value
    operands = [source, size, ignore, source_offset, target, target_width]
    low.emit_guarded(
        "cp.async", operands, imm=target_offset, width=bytes_, space=ops.SHARED, flags=ops.OWN_TAINT
    )
