"""Lowering rules of arithmetic, conversions, comparisons and selections.

The engine's operations have PTX's names, without modifiers that do not change the result: rounding
to nearest; flush-to-zero, which nvcc does not ask for by default; ``.approx``, which is computed
exactly here.
"""

from ptxsim.frontend.records import SIZES, Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import SELECTS, Constant, Operand, Predicate, Register

_IGNORED = {"rn", "ftz", "approx", "full", "noftz"}
_FLOPS = {"fma": 2, "mad": 2, "add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "rcp": 1}
_BY_SIZE = {"mov", "and", "or", "xor", "not", "cnot", "selp", "shl"}
_SIGN_FREE_SOURCES = {"popc", "clz", "brev", "bfi", "shf", "prmt", "lop3", "bmsk", "fns"}
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_ROUND = {"rni": "n", "rzi": "z", "rmi": "m", "rpi": "p"}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def arithmetic(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """Destination first, then sources, all of the last type but where PTX says otherwise."""
    base = item.opcode.partition(".")[0]
    kept = [m for m in mods if m not in _IGNORED]
    if base == "prmt" or kept[-1:] == ["relu"]:
        kept = [*kept[1:], kept[0]]  # the type stands first
    if not kept or kept[-1] not in SIZES:
        raise low.unsupported()
    kind = kept[-1]
    kinds = _source_kinds(base, kept, kind)
    result = _result_kind(base, kept, kind)
    name = ".".join([base, *_canonical(base, kept)])
    if name not in low.shapes:
        raise low.unsupported()
    given, table = item.operands[1:], 0
    if base == "lop3":
        given, table = given[:3], int(item.operands[4], 0) & 255
    sources = [low.source(text, kinds[min(i, len(kinds) - 1)]) for i, text in enumerate(given)]
    target = low.target(item.operands[0], result)
    if isinstance(target, Register) and target.width == 8 and SIZES[result] < 8:
        raise low.unsupported()
    pairs = 2 if kind.endswith("x2") else 1
    flops = _FLOPS.get(base, 0) * pairs if kind[0] == "f" or kind[:2] == "bf" else 0
    low.emit_guarded(name, [target, *sources], imm=table, flops=flops)


def _canonical(base: str, kept: list[str]) -> list[str]:
    """The type part of the engine's name: bit types where the sign does not matter."""
    kind = kept[-1]
    if base in _BY_SIZE:
        return ["pred"] if kind == "pred" else [f"b{SIZES[kind] * 8}"]
    if base in _SIGN_FREE_SOURCES:
        return [*kept[:-1], f"b{SIZES[kind] * 8}"]
    if base == "slct":
        return [f"b{SIZES[kept[0]] * 8}", kept[1]]
    if kind[0] == "b" and kind[:2] != "bf":
        kept = [*kept[:-1], f"u{SIZES[kind] * 8}"]
    if base in {"addc", "subc"} or (base in {"add", "sub"} and "cc" in kept):
        kept = [*kept[:-1], f"u{SIZES[kind] * 8}"]
    return kept


def _source_kinds(base: str, kept: list[str], kind: str) -> list[str]:
    if base in {"shl", "shr"}:
        return [kind, "u32"]
    if base == "slct":
        return [kept[0], kept[0], kept[1]]
    if base == "bfe":
        return [kind, "u32", "u32"]
    if base == "bfi":
        return [kind, kind, "u32", "u32"]
    if base == "mad" and "wide" in kept:
        return [kind, kind, _double(kind)]
    return [kind]


def _result_kind(base: str, kept: list[str], kind: str) -> str:
    if base in {"mul", "mad"} and "wide" in kept:
        return _double(kind)
    if base in {"popc", "clz", "bfind"}:
        return "u32"
    if base == "testp":
        return "pred"
    if base == "slct":
        return kept[0]
    return kind


def _double(kind: str) -> str:
    return f"{kind[0]}{SIZES[kind] * 16}"


# --- conversions


def convert(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """cvt: the conversion, then .sat or .relu of a floating-point result."""
    to, source = mods[-2], mods[-1]
    how = [m for m in mods[:-2] if m != "ftz"]
    if source[0] in "su" and SIZES[source] * 2 <= SIZES.get(to, 0) and to[0] == "f":
        how = [m for m in how if m not in {"rz", "rm", "rp"}]  # nothing is rounded
    after = ""
    for word in ("sat", "relu"):
        if word in how and to[0] in "fb":
            how.remove(word)
            after = f"{word}.{to}"
        elif word in how and source[0] in "fb":
            how.remove(word)  # such a conversion saturates anyway
    values = [low.source(text, source) for text in item.operands[1:]]
    kind = "b32" if to in (*_PAIRS, "tf32") else to
    target = low.target(item.operands[0], kind)
    if not isinstance(target, Register):
        raise low.unsupported_form()
    # A narrow result in a wide register is extended as its type says.
    widened = target.width == 8 and SIZES[kind] < 8
    widening = "cvt.r.s64.s32" if to[0] == "s" else "cvt.r.u64.u32"
    steps = [step for step in (after, widened and widening) if step]
    result = low.register(4 if SIZES[kind] < 8 else 8) if steps else target
    _converted(low, how, to, source, [result, *values], last=not steps)
    for step in steps:
        last = step is steps[-1]
        following = target if last else low.register(result.width)
        emit = low.emit_guarded if last else low.emit
        emit(step, [following, result])
        result = following


def _converted(
    low: Lowering, how: list[str], to: str, source: str, operands: list[Operand], *, last: bool
) -> None:
    emit = low.emit_guarded if last else low.emit
    half = _PAIRS.get(to)
    if half is None or how == ["rn"]:
        emit(conversion_name(how, to, source), operands)
        return
    result, high, low_part = operands  # two roundings of another kind, packed
    name = conversion_name(how, half, source)
    emit("pack.b32", [result, *(low.result(name, 4, value) for value in (low_part, high))])


def conversion_name(how: list[str], to: str, source: str) -> str:
    """The engine's name of ``cvt`` with these modifiers, e.g. "cvt.z.s32.f32"."""
    if to == "tf32":
        return ".".join(["cvt", *how, to, source])
    how = [m for m in how if m != "rn"]
    if to in _PAIRS:
        return ".".join(["cvt", *how, to, source])
    mode = _ROUND.get(how[0], how[0]) if how else "r"
    to = to.replace("b", "u") if to[0] == "b" and to != "bf16" else to
    return ".".join(["cvt", mode, to, source, *how[1:]])


# --- comparisons and selections


def _outcomes(low: Lowering, cmp: str, kind: str, texts: list[str]) -> list[Predicate]:
    """Return the predicates of a comparison; of two halves, one for each."""
    cmp = _UNSIGNED_NAMES.get(cmp, cmp)
    values = [low.source(text, kind) for text in texts]
    half = _PAIRS.get(kind)
    if half is None:
        if kind[0] == "b" and kind != "bf16":
            kind = f"u{SIZES[kind] * 8}"
        outcome = low.predicate()
        low.emit(f"setp.{cmp}.{kind}", [outcome, *values])
        return [outcome]
    halves: list[tuple[Register, Register]] = []
    for value in values:
        halves.append((low.register(4), low.register(4)))
        low.emit("unpack.b32", [*halves[-1], value])
    outcomes = [low.predicate(), low.predicate()]
    for outcome, pair in zip(outcomes, zip(*halves, strict=True), strict=True):
        low.emit(f"setp.{cmp}.{half}", [outcome, *pair])
    return outcomes


def compare(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """setp.cmp[.bool].type p[|q], a, b[, c]; q is the opposite of p, or of the upper halves."""
    kept = [m for m in mods if m != "ftz"]
    kind = kept[-1]
    combine = kept[1] if len(kept) == 3 else None
    if (len(item.operands) == 4) != (combine is not None):
        raise low.unsupported_form()
    outcomes = _outcomes(low, kept[0], kind, item.operands[1:3])
    names = item.operands[0].split("|")
    if len(outcomes) == 1 and len(names) == 2:
        outcomes.append(low.predicate())
        low.emit("not.pred", [outcomes[1], outcomes[0]])
    other = low.source(item.operands[3], "pred") if combine else None
    if combine and len(names) == 2:
        held = low.predicate()  # p may be the very predicate that is combined with
        low.emit("mov.pred", [held, other])
        other = held
    for text, outcome in zip(names, outcomes, strict=False):
        if text != "_":
            target = low.target(text, "pred")
            sources = [outcome] if combine is None else [outcome, other]
            name = "mov.pred" if combine is None else f"{combine}.pred"
            low.emit_guarded(name, [target, *sources])


def set_register(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """set.cmp[.bool].dtype.stype d, a, b[, c]: all ones, or 1.0, where the comparison holds."""
    kept = [m for m in mods if m != "ftz"]
    cmp, *combine, to, kind = kept
    if len(combine) > 1 or (len(item.operands) == 4) != bool(combine):
        raise low.unsupported_form()
    outcomes = _outcomes(low, cmp, kind, item.operands[1:3])
    if combine:
        other = low.source(item.operands[3], "pred")
        combined = [low.predicate() for _ in outcomes]
        for result, outcome in zip(combined, outcomes, strict=True):
            low.emit(f"{combine[0]}.pred", [result, outcome, other])
        outcomes = combined
    true = _ONE.get(_PAIRS.get(to, to), 0xFFFF if len(outcomes) == 2 else 0xFFFFFFFF)
    target = low.target(item.operands[0], "b32" if to in _PAIRS else to)
    if len(outcomes) == 1:
        _selected(low, target, true, outcomes[0], guarded=True)
        return
    halves: list[Operand] = [low.register(4), low.register(4)]
    for half, outcome in zip(halves, outcomes, strict=True):
        _selected(low, half, true, outcome, guarded=False)
    low.emit_guarded("pack.b32", [target, *halves])


def _selected(
    low: Lowering, target: Operand, true: int, outcome: Predicate, *, guarded: bool
) -> None:
    emit = low.emit_guarded if guarded else low.emit
    emit("selp.b32", [target, Constant(true, 4), Constant(0, 4), outcome], flags=SELECTS)


def select(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    a, b, p = item.operands[1:]
    values: list[Operand] = [low.source(a, kind), low.source(b, kind), low.source(p, "pred")]
    low.emit_guarded(
        f"selp.b{SIZES[kind] * 8}", [low.target(item.operands[0], kind), *values], flags=SELECTS
    )


# --- moves


def move(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    target, source = item.operands
    if kind not in SIZES or SIZES[kind] > 8:
        raise low.unsupported()
    if source[0] == "{":
        _packed(low, kind, target, source)
    elif target[0] == "{":
        _unpacked(low, kind, target, source)
    else:
        bits = "pred" if kind == "pred" else f"b{SIZES[kind] * 8}"
        low.emit_guarded(f"mov.{bits}", [low.target(target, kind), low.source(source, kind)])


def _packed(low: Lowering, kind: str, target: str, source: str) -> None:
    parts = low.vector(source, _element(low, kind, source), output=False)
    if len(parts) == 4:
        parts = [low.result("pack.b32", 4, *pair) for pair in (parts[:2], parts[2:])]
    low.emit_guarded(f"pack.b{SIZES[kind] * 8}", [low.target(target, kind), *parts])


def _unpacked(low: Lowering, kind: str, target: str, source: str) -> None:
    element = _element(low, kind, target)
    names = [p.strip() for p in target.strip("{}").split(",")]
    outputs = [None if n == "_" else low.target(n, element) for n in names]
    value = low.source(source, kind)
    if len(outputs) == 2:
        low.emit_guarded(f"unpack.b{SIZES[kind] * 8}", [*outputs, value])
        return
    pairs: list[Operand] = [low.register(4), low.register(4)]
    low.emit("unpack.b64", [*pairs, value])
    low.emit_guarded("unpack.b32", [*outputs[:2], pairs[0]])
    low.emit_guarded("unpack.b32", [*outputs[2:], pairs[1]])


def _element(low: Lowering, kind: str, vector: str) -> str:
    """The type of the elements of a vector that makes up a ``kind``."""
    count = vector.count(",") + 1
    element = {(8, 2): "b32", (8, 4): "b16", (4, 2): "b16"}.get((SIZES[kind], count))
    if element is None:
        raise low.unsupported()
    return element
