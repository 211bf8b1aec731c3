"""Loads, stores, atomics and operations across the lanes of a warp, with every kind of operand."""

from collections.abc import Callable, Iterator
from functools import reduce

from ptx_form import LANES, Line, Operand, alternatives, bits_of, integer, targets

MEMORY = bytes((17 * k + 3) & 255 for k in range(64))  # what every variable begins with
VARIABLES = {"global": "glob", "const": "con", "shared": "sh", "local": "loc"}
_MEMORY_TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "f64")
_FIRST = (1, *(0,) * (LANES - 1))  # the lane that writes
_ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exch": lambda a, b: b,
    "min": min,
    "max": max,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}


def addresses(space: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, byte of the variable) of every way to write an address in a space. %a_SPACE
    points to byte 16 of its variable, %n_SPACE is the same in 32 bits, %g_SPACE generic."""
    if space in VARIABLES:
        yield "register", f"[%a_{space}]", 16
        yield "register + offset", f"[%a_{space}+8]", 24
        yield "register - offset", f"[%a_{space}+-16]", 0
        yield "variable", f"[{VARIABLES[space]}]", 0
        yield "variable + offset", f"[{VARIABLES[space]}+40]", 40
        if space in ("shared", "local"):
            yield "register of 32 bits", f"[%n_{space}+8]", 24
    else:
        for of in VARIABLES:
            yield f"generic of {of}", f"[%g_{of}+8]", 24
        yield "generic variable", "[glob+8]", 8


def loaded(at: int, kind: str) -> int:
    size = bits_of(kind) // 8
    return integer(int.from_bytes(MEMORY[at : at + size], "little"), kind)


def memory_lines() -> Iterator[Line]:
    for space in (*VARIABLES, ""):
        dot = f".{space}" if space else ""
        for what, address, at in addresses(space):
            for kind in _MEMORY_TYPES:
                yield from _loads(dot, kind, what, address, at)
                if "const" not in space + what:
                    yield from _stores(dot, kind, what, address)
            if space not in ("const", "local") and "const" not in what and "local" not in what:
                yield from _atomics(dot, what, address, at)


def _constant(value: int) -> Callable[[int], int]:
    return lambda _lane: value


def _loads(dot: str, kind: str, what: str, address: str, at: int) -> Iterator[Line]:
    size = bits_of(kind) // 8
    for target in targets(kind):
        value = _constant(loaded(at, kind))
        text = f"@%first ld{dot}.{kind} {target}, {address};"
        yield Line(f"ld{dot}.{kind}", 80, what, text, target, value, _FIRST)
    for count in (2, 4):
        if size * count > 16 or at + size * count > 64 or at % (size * count):
            continue
        target = targets(kind)[0]
        parts = ", ".join(["_"] * (count - 1) + [target])
        opcode = f"ld{dot}.v{count}.{kind}"
        value = _constant(loaded(at + size * (count - 1), kind))
        text = f"@%first {opcode} {{{parts}}}, {address};"
        yield Line(opcode, 80, f"vector, {what}", text, target, value, _FIRST)


def _stores(dot: str, kind: str, what: str, address: str) -> Iterator[Line]:
    """Stores, what is stored loaded again, and what was there put back."""
    target = targets(kind)[0]
    whole, keep = f"b{max(bits_of(kind), 8)}", f"%k{max(bits_of(kind), 16)}"
    for operand in alternatives(kind, 1):
        text = (
            f"{{ @%first ld{dot}.{whole} {keep}, {address}; "
            f"@%first st{dot}.{kind} {address}, {operand.text}; "
            f"@%first ld{dot}.{kind} {target}, {address}; "
            f"@%first st{dot}.{whole} {address}, {keep}; }}"
        )
        words, value = f"{operand.what}, {what}", _constant(integer(operand.values[0], kind))
        yield Line(f"st{dot}.{kind}", 80, words, text, target, value, _FIRST)


def _atomics(dot: str, what: str, address: str, at: int) -> Iterator[Line]:
    for name, kind in (
        *((n, k) for n in ("add", "min", "max") for k in ("u32", "s32", "u64")),
        *((n, k) for n in ("and", "or", "xor", "exch") for k in ("b32", "b64")),
        *(("inc", "u32"), ("dec", "u32")),
    ):
        if at % (bits_of(kind) // 8):
            continue
        before = loaded(at, kind)
        operation = _ATOMICS[name]
        target = targets(kind)[0]
        whole, keep = f"b{bits_of(kind)}", f"%k{bits_of(kind)}"
        for operand in ("3", "0", f"%c{bits_of(kind)}"):
            given = {"3": 3, "0": 0}.get(operand, 5)
            after = integer(operation(before, given), kind)
            words = f"{'register' if operand[0] == '%' else 'immediate'}, {what}"
            for opcode, call, value in (
                (f"atom{dot}.{name}.{kind}", f"{target}, {address}, {operand}", before),
                (f"red{dot}.{name}.{kind}", f"{address}, {operand}", after),
                (f"atom{dot}.{name}.{kind}", f"_, {address}, {operand}", after),
            ):
                if name == "exch" and opcode.startswith("red"):
                    continue
                again = "" if call.startswith("%o") else f"ld{dot}.{kind} {target}, {address};"
                text = (
                    f"{{ @%first ld{dot}.{whole} {keep}, {address}; @%first {opcode} {call}; "
                    f"@%first {again or 'mov.pred %p8, 0;'} "
                    f"@%first st{dot}.{whole} {address}, {keep}; }}"
                )
                yield Line(opcode, 80, words, text, target, _constant(value), _FIRST)


_MASKS = ("0xFFFFFFFF", "-1", "%all")  # every lane; %all is a register that holds it
_FROM: dict[str, Callable[[int, int], int]] = {
    "idx": lambda lane, by: by & 31,
    "up": lambda lane, by: lane - by if lane >= by else lane,
    "down": lambda lane, by: lane + by if lane + by < LANES else lane,
    "bfly": lambda lane, by: lane ^ by,
}
_SUMS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b,
    "min.s32": min,
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


def warp_lines() -> Iterator[Line]:
    for mask in _MASKS:
        which = "register" if mask[0] == "%" else "immediate"
        for operand in alternatives("b32", 0):
            words = f"{operand.what}, mask {which}"
            yield from _shuffles(operand, words, mask)
            yield from _reductions(operand, words, mask)
            yield _matched(operand, words, mask, "b32")
        for operand in alternatives("b64", 0):
            yield _matched(operand, f"{operand.what}, mask {which}", mask, "b64")
        for operand in alternatives("pred", 0):
            yield from _votes(operand, f"{operand.what}, mask {which}", mask)
    yield Line("activemask.b32", 80, "", "activemask.b32 %o32;", "%o32", lambda _lane: -1)


def _shuffles(operand: Operand, words: str, mask: str) -> Iterator[Line]:
    for mode, source in _FROM.items():
        clamp = "0" if mode == "up" else "31"
        for by, kind in (("5", "immediate"), ("%c32", "register")):
            opcode = f"shfl.sync.{mode}.b32"
            for target in ("%o32", "%o32|%p7"):
                text = f"{opcode} {target}, {operand.text}, {by}, {clamp}, {mask};"

                def value(lane: int, operand: Operand = operand, source: _Source = source) -> int:
                    return operand.values[source(lane, 5)]

                yield Line(opcode, 80, f"{words}, lane {kind}", text, "%o32", value)


_Source = Callable[[int, int], int]


def _reductions(operand: Operand, words: str, mask: str) -> Iterator[Line]:
    for name, function in _SUMS.items():
        kind = name.partition(".")[2]
        total = reduce(function, (integer(v, kind) for v in operand.values))
        text = f"redux.sync.{name} %o32, {operand.text}, {mask};"
        yield Line(f"redux.sync.{name}", 80, words, text, "%o32", _same(total))


def _matched(operand: Operand, words: str, mask: str, kind: str) -> Line:
    def value(lane: int) -> int:
        return sum(1 << k for k, v in enumerate(operand.values) if v == operand.values[lane])

    opcode = f"match.any.sync.{kind}"
    return Line(opcode, 80, words, f"{opcode} %o32, {operand.text}, {mask};", "%o32", value)


def _votes(operand: Operand, words: str, mask: str) -> Iterator[Line]:
    yes = [value & 1 for value in operand.values]
    ballot = sum(bit << lane for lane, bit in enumerate(yes))
    for mode, outcome in (("all", all(yes)), ("any", any(yes)), ("uni", all(yes) or not any(yes))):
        opcode = f"vote.sync.{mode}.pred"
        text = f"{opcode} %po, {operand.text}, {mask};"
        yield Line(opcode, 80, words, text, "%po", _same(int(outcome)))
    text = f"vote.sync.ballot.b32 %o32, {operand.text}, {mask};"
    yield Line("vote.sync.ballot.b32", 80, words, text, "%o32", _same(ballot))


def _same(value: int) -> Callable[[int], int]:
    return lambda _lane: value
