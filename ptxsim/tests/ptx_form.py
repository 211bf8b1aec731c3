"""An instruction of PTX with the types of its operands and what it computes, in Python.

Values are bits as Python integers. Floating-point inputs are small multiples of a quarter, so that
every result is exact in its type, or is rounded once from an exact double.
"""

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

LANES = 32
Value = Callable[..., int | None]  # the operands' bits → the result's; None: not defined

_BITS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "bf16": 16, "tf32": 32}
HALVES = {"f16x2": "f16", "bf16x2": "bf16"}


def bits_of(kind: str) -> int:
    return _BITS.get(kind) or int(kind[1:])


def mask(kind: str) -> int:
    return (1 << bits_of(kind)) - 1


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)


def integer(value: int, kind: str) -> int:
    """The number that bits of an integer type stand for."""
    return signed(value, bits_of(kind)) if kind[0] == "s" else value & mask(kind)


def real(value: int, kind: str) -> float:
    """The number that bits of a floating-point type stand for."""
    if kind == "bf16":
        return real(value << 16, "f32")
    layout = {"f16": "<H e", "f32": "<I f", "f64": "<Q d"}[kind].split(" ")
    return float(struct.unpack("<" + layout[1], struct.pack(layout[0], value & mask(kind)))[0])


def from_real(value: float, kind: str) -> int:
    """Bits of the number of type ``kind`` that is nearest to ``value``. Raises ValueError or
    OverflowError where that is beyond this oracle."""
    if not math.isfinite(value):
        raise ValueError("not a number")
    if kind == "bf16":
        bits = from_real(value, "f32")
        if real(bits, "f32") != value:
            raise ValueError("a bfloat is made of exact values only")
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    letters = {"f16": "He", "f32": "If", "f64": "Qd"}[kind]
    (bits,) = struct.unpack("<" + letters[0], struct.pack("<" + letters[1], value))
    return int(bits)


@dataclass(frozen=True)
class Form:
    opcode: str
    result: str  # type
    sources: tuple[str, ...]  # types
    value: Value
    text: str = ""  # the operands, where they do not just follow each other: "{d}|_, {0}"
    sm: int = 80

    def write(self, target: str, sources: tuple[str, ...]) -> str:
        if self.text:
            operands = self.text.format(*sources, d=target)
        else:
            operands = ", ".join((target, *sources))
        return f"{self.opcode} {operands};"


def of_ints(kind: str, f: Callable[..., int]) -> Value:
    """``f`` of the operands as numbers of one type."""
    return lambda *values: f(*(integer(v, kind) for v in values))


def of_reals(kind: str, f: Callable[..., float]) -> Value:
    """``f`` of the operands as numbers of one type; of pairs, for each half."""
    half = HALVES.get(kind)
    if half is None:
        return lambda *values: from_real(f(*(real(v, kind) for v in values)), kind)
    one = of_reals(half, f)
    return lambda *values: (
        (one(*(v & 0xFFFF for v in values)) or 0)
        | (one(*(v >> 16 & 0xFFFF for v in values)) or 0) << 16
    )


@dataclass(frozen=True)
class Operand:
    what: str  # the kind of operand
    text: str
    values: tuple[int, ...]  # one for each lane


@cache
def _spread(seed: int, bits: int) -> tuple[int, ...]:
    """Numbers for each lane: small ones, extremes, and a mixture of bits."""
    top = (1 << bits) - 1
    corners = (0, 1, top, top >> 1, (top >> 1) + 1, 5, top - 2, 31, 7, 12)
    mixed = [(lane * 0x9E3779B97F4A7C15 + seed * 0xC2B2AE3D27D4EB4F) >> 3 for lane in range(LANES)]
    return tuple(
        (corners[(lane * 7 + seed * 3) % 10] if (lane + seed) % 3 else m) & top
        for lane, m in enumerate(mixed)
    )


@cache
def _quarters(seed: int, kind: str) -> tuple[int, ...]:
    """Small multiples of a quarter, none of them zero twice in a row."""
    half = HALVES.get(kind)
    if half is not None:
        low, high = _quarters(seed, half), _quarters(seed + 5, half)
        return tuple(a | b << 16 for a, b in zip(low, high, strict=True))
    numbers = [((lane * 11 + seed * 17) % 49 - 24) / 4 for lane in range(LANES)]
    return tuple(from_real((1, 2, 4, -2)[lane % 4] if (lane + seed) % 5 == 4 else x, kind)
                 for lane, x in enumerate(numbers))  # fmt: skip


# Registers by what they hold: name, PTX type, values. Three of each.
REGISTERS: dict[str, tuple[str, Callable[[int], tuple[int, ...]]]] = {
    "i16": ("b16", lambda n: _spread(n, 16)),
    "i32": ("b32", lambda n: _spread(n + 3, 32)),
    "i64": ("b64", lambda n: _spread(n + 6, 64)),
    "f16": ("b16", lambda n: _quarters(n, "f16")),
    "bf16": ("b16", lambda n: _quarters(n, "bf16")),
    "f32": ("b32", lambda n: _quarters(n, "f32")),
    "f64": ("b64", lambda n: _quarters(n, "f64")),
    "f16x2": ("b32", lambda n: _quarters(n, "f16x2")),
    "bf16x2": ("b32", lambda n: _quarters(n, "bf16x2")),
}
COUNT = 4  # registers of each

_IMMEDIATES = {
    "int": ("3", "-2", "0", "1", "-1", "0xC", "31", "0x80000001", "0xFFFFFFFFFFFFFFF5", "5U"),
    "f32": ("0f3FA00000", "1.5", "-2.0", "0d3FF8000000000000", "1e0"),
    "f64": ("0d3FF4000000000000", "1.5", "-2.0", "0d3FF8000000000000"),
}
SPECIALS: dict[str, tuple[int, ...]] = {
    "%tid.x": tuple(range(LANES)),
    "%ntid.x": (LANES,) * LANES,
    "%lanemask_lt": tuple((1 << lane) - 1 for lane in range(LANES)),
}
GLOBAL_AT = 0x7E00_0000_0100  # where the variable ``glob`` lies


def _flavour(kind: str) -> str:
    """Which registers hold values of this type."""
    return kind if kind in REGISTERS else f"i{max(bits_of(kind), 16)}"


@cache
def predicate(number: int) -> tuple[int, ...]:
    return tuple((0x5A3C96E1 >> (lane + 5 * number) % 32) & 1 for lane in range(LANES))


def _immediate(text: str, kind: str) -> int:
    if "f" in kind:
        if text[:2] == "0f":
            return int(text[2:], 16)
        number = real(int(text[2:], 16), "f64") if text[:2] == "0d" else float(text)
        return from_real(number, kind)
    return int(text.rstrip("U"), 0) & mask(kind)


def alternatives(kind: str, place: int) -> Iterator[Operand]:
    """Everything that might stand for an operand of this type; the plain register first."""
    if kind == "pred":
        yield Operand("predicate", f"%p{place}", predicate(place))
        yield Operand("negated predicate", f"!%p{place}", tuple(1 - p for p in predicate(place)))
        for text in ("0", "1", "-1"):
            yield Operand("immediate", text, (int(text != "0"),) * LANES)
        yield Operand("register", f"%i32_{place}", (0,) * LANES)
        return
    own = _flavour(kind)
    yield Operand("register", f"%{own}_{place}", REGISTERS[own][1](place))
    flavours = ("i16", "i32", "i64") if own[0] == "i" else ("f16", "f32", "f64")
    for other in flavours:
        if other != own:
            yield Operand(f"register of {other}", f"%{other}_{place}", REGISTERS[other][1](place))
    for text in _IMMEDIATES.get(kind, _IMMEDIATES["int"]):
        if "f" in kind and kind not in _IMMEDIATES:
            continue
        if bits_of(kind) < 32 and len(text) > 5:
            continue  # ptxas cuts off what does not fit; the simulator refuses it
        yield Operand("immediate", text, (_immediate(text, kind),) * LANES)
    if kind in ("b32", "b64"):
        for text in _IMMEDIATES[f"f{kind[1:]}"][:1]:
            yield Operand("immediate", text, (_immediate(text, f"f{kind[1:]}"),) * LANES)
    for text, values in SPECIALS.items():
        yield Operand("special register", text, values)
    for text, offset in (("glob", 0), ("glob+8", 8)):
        yield Operand("variable", text, (GLOBAL_AT + offset,) * LANES)
    yield Operand("predicate", f"%p{place}", predicate(place))


@dataclass(frozen=True)
class Line:
    """One instruction as it is written, and what it leaves in its destination."""

    opcode: str
    sm: int
    what: str  # which kind of operand stands where
    text: str
    target: str  # a register
    values: Callable[[int], int | None]  # by lane; None: PTX does not say, or the oracle cannot
    lanes: tuple[int, ...] = (1,) * LANES  # whether each of them executes it

    @property
    def name(self) -> str:
        return f"{self.text}  ({self.what})"

    def wanted(self) -> list[int | None]:
        size = 1 if self.target == "%po" else int(self.target[2:])
        old = 0 if self.target == "%po" else OLD
        values = [self.values(lane) if self.lanes[lane] else old for lane in range(LANES)]
        return [None if value is None else value & (1 << size) - 1 for value in values]


OLD = 0x5A5A5A5A5A5A5A5A  # in the destination before


def lines(form: Form) -> Iterator[Line]:
    """``form`` with every kind of operand at every place."""
    plain = [next(alternatives(kind, place)) for place, kind in enumerate(form.sources)]
    destinations = targets(form.result)
    own = destinations[0]
    for place, kind in enumerate(form.sources):
        for operand in alternatives(kind, place):
            if "+" in operand.text and "{{" in form.text:
                continue  # no sum may stand in a vector: ptxas reads no further
            sources = [*plain[:place], operand, *plain[place + 1 :]]
            yield _line(form, f"{operand.what} at {place}", own, sources)
    constant = [
        next((o for o in alternatives(k, p) if o.what == "immediate"), plain[p])
        for p, k in enumerate(form.sources)
    ]
    yield _line(form, "immediates", own, constant)
    for target in destinations[1:]:
        yield _line(form, "another destination", target, plain)
    for guard, lanes in (("@%p3", predicate(3)), ("@!%p3", tuple(1 - p for p in predicate(3)))):
        yield _line(form, f"guard {guard}", own, plain, guard, lanes)
    for place, kind in enumerate(form.sources):
        if targets(kind)[0] == own:
            inside = Operand("destination", own, (OLD & mask(kind),) * LANES)
            if kind != "pred":
                yield _line(form, f"destination at {place}", own,
                            [*plain[:place], inside, *plain[place + 1 :]])  # fmt: skip


def targets(kind: str) -> list[str]:
    """A destination of this type, then others that it might take."""
    if kind == "pred":
        return ["%po"]
    size = max(bits_of(kind), 16)
    return [f"%o{size}", *(f"%o{other}" for other in (16, 32, 64) if other != size)]


def _line(
    form: Form,
    what: str,
    target: str,
    sources: list[Operand],
    guard: str = "",
    lanes: tuple[int, ...] = (1,) * LANES,
) -> Line:
    def value(lane: int) -> int | None:
        pairs = zip(sources, form.sources, strict=True)
        try:
            result = form.value(*(o.values[lane] & mask(kind) for o, kind in pairs))
        except (ValueError, OverflowError):  # other operands' bits read as a floating-point number
            return None
        if result is None or form.result == "pred" or "f" in form.result:
            return result
        return integer(result, form.result)

    text = form.write(target, tuple(operand.text for operand in sources))
    return Line(form.opcode, form.sm, what, f"{guard} {text}".strip(), target, value, lanes)
