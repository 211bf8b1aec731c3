"""Instructions of PTX, each with the types of its operands and what it computes, in Python.

Values are bits as Python integers. Floating-point inputs are small multiples of a quarter, so that
every result is exact in its type, or is rounded once from an exact double.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

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


# --- meanings


def _ints(kind: str, f: Callable[..., int]) -> Value:
    """``f`` of the operands as numbers of one type."""
    return lambda *values: f(*(integer(v, kind) for v in values))


def _reals(kind: str, f: Callable[..., float]) -> Value:
    """``f`` of the operands as numbers of one type; of pairs, for each half."""
    half = HALVES.get(kind)
    if half is None:
        return lambda *values: from_real(f(*(real(v, kind) for v in values)), kind)
    one = _reals(half, f)
    return lambda *values: (
        (one(*(v & 0xFFFF for v in values)) or 0)
        | (one(*(v >> 16 & 0xFFFF for v in values)) or 0) << 16
    )


def _quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divided(kind: str, remainder: bool) -> Value:
    def value(a: int, b: int) -> int | None:
        a, b = integer(a, kind), integer(b, kind)
        quotient = _quotient(a, b)
        return None if quotient is None else a - b * quotient if remainder else quotient

    return value


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _compared(cmp: str, kind: str) -> Callable[[int, int], bool]:
    """Of numbers; no input is a NaN."""
    name = _UNSIGNED_NAMES.get(cmp, cmp.removesuffix("u"))
    number = real if "f" in kind else integer
    if cmp in ("num", "nan"):
        return lambda a, b: cmp == "num"
    return lambda a, b: _COMPARE[name](number(a, kind), number(b, kind))


def _lop3(table: int) -> Value:
    def value(a: int, b: int, c: int) -> int:
        return sum(
            (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k
            for k in range(32)
        )

    return value


def _permuted(mode: str) -> Value:
    def value(a: int, b: int, c: int) -> int:
        source = [(b << 32 | a) >> 8 * k & 255 for k in range(8)]
        low = c & 3
        picks = {
            "": [c >> 4 * k & 15 for k in range(4)],
            "f4e": [low + k for k in range(4)],
            "b4e": [(low - k) & 7 for k in range(4)],
            "rc8": [low] * 4,
            "ecl": [max(low, k) for k in range(4)],
            "ecr": [min(low, k) for k in range(4)],
            "rc16": [2 * (low & 1) + (k & 1) for k in range(4)],
        }[mode]
        chosen = [source[p & 7] if p < 8 else 255 * (source[p & 7] >> 7) for p in picks]
        return sum(byte << 8 * k for k, byte in enumerate(chosen))

    return value


def _dot(a_kind: str, b_kind: str, width: int, at: int) -> Value:
    """dp4a (bytes) and dp2a (halves of the first by bytes of the second, from byte ``at`` on)."""

    def value(a: int, b: int, c: int) -> int:
        count = 32 // width
        xs = [integer(a >> width * k, f"{a_kind[0]}{width}") for k in range(count)]
        ys = [integer(b >> 8 * (k + at), f"{b_kind[0]}8") for k in range(count)]
        return c + sum(x * y for x, y in zip(xs, ys, strict=True))

    return value


def _extracted(kind: str) -> Value:
    def value(a: int, b: int, c: int) -> int:
        bits, at, length = bits_of(kind), b & 255, c & 255
        field = (a >> at) & ((1 << length) - 1)
        if kind[0] == "s" and length:
            top = a >> min(at + length - 1, bits - 1) & 1
            have = max(0, min(length, bits - at))
            field |= -top << have if top else 0
        return field

    return value


def _inserted(a: int, b: int, c: int, d: int, bits: int) -> int:
    at, length = c & 255, d & 255
    field = ((1 << length) - 1) << at & ((1 << bits) - 1)
    return b & ~field | a << at & field


def _found(kind: str, amount: bool) -> Value:
    def value(a: int) -> int:
        number = integer(a, kind)
        number = ~number if number < 0 else number
        top = number.bit_length() - 1
        return bits_of(kind) - 1 - top if amount and top >= 0 else top

    return value


def _reverse(a: int, bits: int) -> int:
    return int(f"{a:0{bits}b}"[::-1], 2)


def _shifted(kind: str, left: bool) -> Value:
    bits = bits_of(kind)

    def value(a: int, b: int) -> int:
        by = min(b, bits)
        return a << by if left else integer(a, kind) >> by

    return value


def _funnel(direction: str, mode: str) -> Value:
    def value(a: int, b: int, c: int) -> int:
        by = min(c, 32) if mode == "clamp" else c & 31
        both = b << 32 | a
        return both << by >> 32 if direction == "l" else both >> by

    return value


def _rounded(value: float, how: str) -> float:
    toward = {"rmi": math.floor, "rpi": math.ceil, "rzi": math.trunc, "rni": round}[how]
    return math.copysign(toward(value), value)


def _converted(to: str, source: str, how: str, *, saturated: bool = False) -> Value:
    def value(a: int) -> int:
        number = real(a, source) if "f" in source else integer(a, source)
        if how in ("rni", "rzi", "rmi", "rpi"):
            number = _rounded(number, how)
        if "f" in to:
            number = min(max(number, 0), 1) + 0.0 if saturated else number
            if abs(number) > 60000 or float(number) != number:
                return None
            bits = from_real(float(number), to)
            return bits if how == "rn" or real(bits, to) == number else None
        if saturated or "f" in source:
            low = -(1 << (bits_of(to) - 1)) if to[0] == "s" else 0
            number = min(max(int(number), low), low + mask(to))
        return int(number)

    return value


# --- the forms


def _integers() -> Iterator[Form]:
    for bits in (16, 32, 64):
        for sign in "su":
            t = f"{sign}{bits}"
            two, three = (t, t), (t, t, t)
            yield Form(f"add.{t}", t, two, _ints(t, lambda a, b: a + b))
            yield Form(f"sub.{t}", t, two, _ints(t, lambda a, b: a - b))
            yield Form(f"mul.lo.{t}", t, two, _ints(t, lambda a, b: a * b))
            yield Form(f"mul.hi.{t}", t, two, _ints(t, lambda a, b, n=bits: a * b >> n))
            yield Form(f"mad.lo.{t}", t, three, _ints(t, lambda a, b, c: a * b + c))
            yield Form(f"mad.hi.{t}", t, three, _ints(t, lambda a, b, c, n=bits: (a * b >> n) + c))
            yield Form(f"div.{t}", t, two, _divided(t, remainder=False))
            yield Form(f"rem.{t}", t, two, _divided(t, remainder=True))
            yield Form(f"min.{t}", t, two, _ints(t, min))
            yield Form(f"max.{t}", t, two, _ints(t, max))
            yield Form(f"sad.{t}", t, three, _ints(t, lambda a, b, c: c + abs(a - b)))
            yield Form(f"shr.{t}", t, (t, "u32"), _shifted(t, left=False))
            if sign == "s":
                yield Form(f"neg.{t}", t, (t,), _ints(t, lambda a: -a))
                yield Form(f"abs.{t}", t, (t,), _ints(t, abs))
            if bits < 64:
                w = f"{sign}{2 * bits}"
                yield Form(f"mul.wide.{t}", w, two, _ints(t, lambda a, b: a * b))
                yield Form(
                    f"mad.wide.{t}", w, (t, t, w),
                    lambda a, b, c, t=t: integer(a, t) * integer(b, t) + c,
                )  # fmt: skip
            if bits > 16:
                yield Form(f"bfe.{t}", t, (t, "u32", "u32"), _extracted(t))
                yield Form(f"bfind.{t}", "u32", (t,), _found(t, amount=False))
                yield Form(f"bfind.shiftamt.{t}", "u32", (t,), _found(t, amount=True))
    for t in ("s32", "u32"):
        for a, b in product(("s32", "u32"), repeat=2):
            yield Form(f"dp4a.{a}.{b}", "s32", (a, b, "s32"), _dot(a, b, 8, 0))
            yield Form(f"dp2a.lo.{a}.{b}", "s32", (a, b, "s32"), _dot(a, b, 16, 0))
            yield Form(f"dp2a.hi.{a}.{b}", "s32", (a, b, "s32"), _dot(a, b, 16, 2))
        low = _ints(f"{t[0]}24", lambda a, b: a * b)
        high = _ints(f"{t[0]}24", lambda a, b: a * b >> 16)
        yield Form(f"mul24.lo.{t}", t, (t, t), low)
        yield Form(f"mul24.hi.{t}", t, (t, t), high)
        yield Form(f"mad24.lo.{t}", t, (t, t, t), lambda a, b, c, f=low: (f(a, b) or 0) + c)
        yield Form(
            f"szext.wrap.{t}", t, (t, "u32"),
            lambda a, b, t=t: integer(a, f"{t[0]}{b & 31}") if b & 31 else 0,
        )  # fmt: skip
    yield Form("min.relu.s32", "s32", ("s32", "s32"), _ints("s32", lambda a, b: max(0, min(a, b))),
               sm=90)  # fmt: skip
    yield Form("add.sat.s32", "s32", ("s32", "s32"), _ints("s32", lambda a, b: _clamped(a + b)))
    yield Form("sub.sat.s32", "s32", ("s32", "s32"), _ints("s32", lambda a, b: _clamped(a - b)))


def _pairs_of_integers() -> Iterator[Form]:
    for t in ("u16", "s16"):
        for name, f in (("add", lambda a, b: a + b), ("min", min), ("max", max)):

            def both(a: int, b: int, f: Value = f, t: str = t) -> int:
                low, high = (f(integer(a >> at, t), integer(b >> at, t)) & 0xFFFF for at in (0, 16))
                return high << 16 | low

            yield Form(f"{name}.{t}x2", "b32", ("b32", "b32"), both, sm=90)


def _byte_distances(a: int, b: int, _c: int) -> int:
    return sum(abs((a >> at & 255) - (b >> at & 255)) << at for at in (0, 8, 16, 24))


def _nth_set(a: int, b: int, c: int) -> int | None:
    """fns: the place of the c-th set bit of ``a``, counted from place ``b`` on."""
    c = signed(c, 32)
    if b > 31:
        return None
    if c == 0:
        return b if a >> b & 1 else -1
    places = range(b, 32) if c > 0 else range(b, -1, -1)
    found = [at for at in places if a >> at & 1]
    return found[abs(c) - 1] if abs(c) <= len(found) else -1


def _clamped(value: int) -> int:
    return min(max(value, -(1 << 31)), (1 << 31) - 1)


def _bits() -> Iterator[Form]:
    for t in ("b16", "b32", "b64", "pred"):
        yield Form(f"and.{t}", t, (t, t), lambda a, b: a & b)
        yield Form(f"or.{t}", t, (t, t), lambda a, b: a | b)
        yield Form(f"xor.{t}", t, (t, t), lambda a, b: a ^ b)
        yield Form(f"not.{t}", t, (t,), lambda a: ~a)
        yield Form(f"mov.{t}", t, (t,), lambda a: a)
        if t == "pred":
            continue
        yield Form(f"cnot.{t}", t, (t,), lambda a: int(a == 0))
        yield Form(f"shl.{t}", t, (t, "u32"), _shifted(t, left=True))
        yield Form(f"shr.{t}", t, (t, "u32"), _shifted(t, left=False))
        for kind in (t, *(f"{c}{t[1:]}" for c in "suf" if t + c != "b16f")):
            yield Form(f"selp.{kind}", t, (t, t, "pred"), lambda a, b, p: a if p else b)
            if kind != t:
                yield Form(f"mov.{kind}", kind, (kind,), lambda a: a)
            yield Form(
                f"slct.{kind}.s32", t, (t, t, "s32"),
                lambda a, b, c: a if integer(c, "s32") >= 0 else b,
            )  # fmt: skip
            yield Form(
                f"slct.{kind}.f32",
                t,
                (t, t, "f32"),
                lambda a, b, c: a if real(c, "f32") >= 0 else b,
            )
    for t in ("b32", "b64"):
        n = bits_of(t)
        yield Form(f"popc.{t}", "u32", (t,), lambda a: a.bit_count())
        yield Form(f"clz.{t}", "u32", (t,), lambda a, n=n: n - a.bit_length())
        yield Form(f"brev.{t}", t, (t,), lambda a, n=n: _reverse(a, n))
        yield Form(
            f"bfi.{t}", t, (t, t, "u32", "u32"), lambda a, b, c, d, n=n: _inserted(a, b, c, d, n)
        )
    for table in (0x80, 0x96, 0xE8, 0x1D):
        yield Form(
            "lop3.b32", "b32", ("b32",) * 3, _lop3(table), f"{{d}}, {{0}}, {{1}}, {{2}}, {table}"
        )
    for direction, mode in product("lr", ("clamp", "wrap")):
        yield Form(
            f"shf.{direction}.{mode}.b32", "b32", ("b32", "b32", "u32"), _funnel(direction, mode)
        )
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        name = f"prmt.b32.{mode}".rstrip(".")
        yield Form(name, "b32", ("b32",) * 3, _permuted(mode))
    yield Form(
        "bmsk.clamp.b32", "b32", ("u32", "u32"),
        lambda a, b: ((1 << min(b, 32)) - 1) << a if a < 32 else 0,
    )  # fmt: skip
    yield Form(
        "bmsk.wrap.b32", "b32", ("u32", "u32"), lambda a, b: ((1 << (b & 31)) - 1) << (a & 31)
    )
    yield Form("mov.b64", "b64", ("b32", "b32"), lambda a, b: b << 32 | a, "{d}, {{{0}, {1}}}")
    yield Form("mov.b32", "b32", ("b16", "b16"), lambda a, b: b << 16 | a, "{d}, {{{0}, {1}}}")
    yield Form(
        "mov.b64", "b64", ("b16",) * 4, lambda a, b, c, d: d << 48 | c << 32 | b << 16 | a,
        "{d}, {{{0}, {1}, {2}, {3}}}",
    )  # fmt: skip
    yield Form("mov.b64", "b32", ("b64",), lambda a: a, "{{{d}, _}}, {0}")
    yield Form("mov.b64", "b32", ("b64",), lambda a: a >> 32, "{{_, {d}}}, {0}")
    yield Form("mov.b32", "b16", ("b32",), lambda a: a, "{{{d}, _}}, {0}")
    yield Form("mov.b32", "b16", ("b32",), lambda a: a >> 16, "{{_, {d}}}, {0}")
    yield Form("mov.b64", "b16", ("b64",), lambda a: a >> 32, "{{_, _, {d}, _}}, {0}")


def _fma(a: float, b: float, c: float) -> float:
    """Raises ValueError where a double does not hold the result."""
    if Fraction(a) * Fraction(b) + Fraction(c) != Fraction(a * b + c):
        raise ValueError("rounded twice")
    return a * b + c


def _floats() -> Iterator[Form]:
    for t in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        two, three = (t, t), (t, t, t)
        rn = "rn." if t in ("f32", "f64") else ""
        if "bf" not in t:
            yield Form(f"add.{rn}{t}", t, two, _reals(t, lambda a, b: a + b))
            yield Form(f"sub.{rn}{t}", t, two, _reals(t, lambda a, b: a - b))
            yield Form(f"mul.{rn}{t}", t, two, _reals(t, lambda a, b: a * b))
        else:
            yield Form(f"add.{t}", t, two, _reals(t, lambda a, b: a + b), sm=90)
            yield Form(f"sub.{t}", t, two, _reals(t, lambda a, b: a - b), sm=90)
            yield Form(f"mul.{t}", t, two, _reals(t, lambda a, b: a * b), sm=90)
        yield Form(f"fma.rn.{t}", t, three, _reals(t, _fma))
        yield Form(f"min.{t}", t, two, _reals(t, min))
        yield Form(f"max.{t}", t, two, _reals(t, max))
        yield Form(f"neg.{t}", t, (t,), _reals(t, lambda a: -a))
        yield Form(f"abs.{t}", t, (t,), _reals(t, abs))
        if t not in ("f32", "f64"):
            relu = lambda a, b, c: max(0.0, _fma(a, b, c))  # noqa: E731
            yield Form(f"fma.rn.relu.{t}", t, three, _reals(t, relu))
            yield Form(f"min.NaN.{t}", t, two, _reals(t, min))
            yield Form(f"max.NaN.{t}", t, two, _reals(t, max))
        if t in ("f32", "f16", "f16x2"):
            sat = lambda x: min(max(x, 0.0), 1.0) + 0.0  # noqa: E731
            yield Form(f"add.sat.{t}", t, two, _reals(t, lambda a, b, s=sat: s(a + b)))
            yield Form(f"mul.sat.{t}", t, two, _reals(t, lambda a, b, s=sat: s(a * b)))
            yield Form(
                f"fma.rn.sat.{t}", t, three, _reals(t, lambda a, b, c, s=sat: s(_fma(a, b, c)))
            )
    yield Form("min.NaN.f32", "f32", ("f32", "f32"), _reals("f32", min))
    for t in ("f32", "f64"):
        exact = lambda a, b: None if b not in (1, 2, 4, -2, 0.5) else a / b  # noqa: E731
        divided: Value = lambda a, b, t=t, f=exact: (  # noqa: E731
            None if (q := f(real(a, t), real(b, t))) is None else from_real(q, t)
        )
        yield Form(f"div.rn.{t}", t, (t, t), divided)
        yield Form(
            f"copysign.{t}", t, (t, t),
            lambda a, b, top=bits_of(t) - 1: b & ((1 << top) - 1) | a >> top << top,  # noqa: B008
        )  # fmt: skip
        for what, holds in (("finite", 1), ("number", 1), ("infinite", 0), ("notanumber", 0)):
            yield Form(f"testp.{what}.{t}", "pred", (t,), lambda a, h=holds: h)
        yield Form(f"testp.normal.{t}", "pred", (t,), lambda a, t=t: int(real(a, t) != 0))
        yield Form(f"testp.subnormal.{t}", "pred", (t,), lambda a: 0)


def _comparisons() -> Iterator[Form]:
    kinds = [f"{s}{b}" for b in (16, 32, 64) for s in "su"]
    kinds += ["b16", "b32", "b64", "f32", "f64", "f16", "bf16"]
    for t in kinds:
        names = ["eq", "ne"] if t[0] == "b" and t != "bf16" else list(_COMPARE)
        names += [*_UNSIGNED_NAMES] if t[0] == "u" else []
        names += ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] if "f" in t else []
        for cmp in names:
            f = _compared(cmp, t)
            sm = 90 if t == "bf16" else 80
            plain: Value = lambda a, b, f=f: int(f(a, b))  # noqa: E731
            yield Form(f"setp.{cmp}.{t}", "pred", (t, t), plain, sm=sm)
            if cmp not in ("lt", "eq", "ltu"):
                continue
            other: Value = lambda a, b, f=f: int(not f(a, b))  # noqa: E731
            yield Form(f"setp.{cmp}.{t}", "pred", (t, t), plain, "{d}|_, {0}, {1}", sm)
            yield Form(f"setp.{cmp}.{t}", "pred", (t, t), other, "_|{d}, {0}, {1}", sm)
            for word, join in (
                ("and", lambda x, y: x & y),
                ("or", lambda x, y: x | y),
                ("xor", lambda x, y: x ^ y),
            ):
                first: Value = lambda a, b, c, f=f, j=join: j(int(f(a, b)), c)  # noqa: E731
                second: Value = lambda a, b, c, f=f, j=join: j(int(not f(a, b)), c)  # noqa: E731
                name, three = f"setp.{cmp}.{word}.{t}", (t, t, "pred")
                yield Form(name, "pred", three, first, "{d}, {0}, {1}, {2}", sm)
                yield Form(name, "pred", three, first, "{d}|%p7, {0}, {1}, {2}", sm)
                yield Form(name, "pred", three, second, "%p7|{d}, {0}, {1}, {2}", sm)
                ones: Value = lambda a, b, c, g=first: -(g(a, b, c) or 0)  # noqa: E731
                yield Form(f"set.{cmp}.{word}.u32.{t}", "u32", three, ones, sm=sm)
            ones: Value = lambda a, b, f=f: -int(f(a, b))  # noqa: E731
            yield Form(f"set.{cmp}.u32.{t}", "u32", (t, t), ones, sm=sm)
            yield Form(f"set.{cmp}.s32.{t}", "s32", (t, t), ones, sm=sm)
            one: Value = lambda a, b, f=f: 0x3F800000 * int(f(a, b))  # noqa: E731
            yield Form(f"set.{cmp}.f32.{t}", "f32", (t, t), one, sm=sm)
            if t in ("f16", "bf16"):
                unit = from_real(1.0, t)
                half_one: Value = lambda a, b, f=f, u=unit: u * int(f(a, b))  # noqa: E731
                yield Form(f"set.{cmp}.{t}.{t}", t, (t, t), half_one, sm=sm)
                pair: Value = lambda a, b, f=f, u=unit: (  # noqa: E731
                    u * int(f(a & 0xFFFF, b & 0xFFFF)) | u * int(f(a >> 16, b >> 16)) << 16
                )
                masks: Value = lambda a, b, f=f: (  # noqa: E731
                    0xFFFF * int(f(a & 0xFFFF, b & 0xFFFF))
                    | 0xFFFF * int(f(a >> 16, b >> 16)) << 16
                )
                x2 = f"{t}x2"
                yield Form(f"set.{cmp}.{x2}.{x2}", x2, (x2, x2), pair, sm=sm)
                yield Form(f"set.{cmp}.u32.{x2}", "u32", (x2, x2), masks, sm=sm)
                low: Value = lambda a, b, f=f: int(f(a & 0xFFFF, b & 0xFFFF))  # noqa: E731
                high: Value = lambda a, b, f=f: int(f(a >> 16, b >> 16))  # noqa: E731
                yield Form(f"setp.{cmp}.{x2}", "pred", (x2, x2), low, "{d}|%p7, {0}, {1}", sm)
                yield Form(f"setp.{cmp}.{x2}", "pred", (x2, x2), high, "%p7|{d}, {0}, {1}", sm)


def _tf32(a: int, *, to_even: bool) -> int:
    """Thirteen bits less of a float."""
    low = (1 << 13) - 1
    return (a + (low >> 1) + (a >> 13 & 1 if to_even else 1)) & ~low


def _conversions() -> Iterator[Form]:
    ints = [f"{s}{b}" for b in (8, 16, 32, 64) for s in "su"]
    for to, source in product(ints, ints):
        yield Form(f"cvt.{to}.{source}", to, (source,), _converted(to, source, ""))
        yield Form(
            f"cvt.sat.{to}.{source}", to, (source,), _converted(to, source, "", saturated=True)
        )
    for f, i in product(("f16", "bf16", "f32", "f64"), ints):
        sm = 90 if f == "bf16" else 80
        yield Form(f"cvt.rn.{f}.{i}", f, (i,), _converted(f, i, ""), sm=sm)
        for how in ("rni", "rzi", "rmi", "rpi"):
            yield Form(f"cvt.{how}.{i}.{f}", i, (f,), _converted(i, f, how), sm=sm)
            yield Form(
                f"cvt.{how}.sat.{i}.{f}", i, (f,), _converted(i, f, how, saturated=True), sm=sm
            )
        if f != "f64" or i[1:] == "64":
            for how in ("rz", "rm", "rp"):  # small numbers are exact
                yield Form(f"cvt.{how}.{f}.{i}", f, (i,), _converted(f, i, ""), sm=sm)
    for to, source in product(("f16", "bf16", "f32", "f64"), repeat=2):
        narrows = bits_of(to) < bits_of(source)
        for how in ("rn", "rz", "rm", "rp") if narrows else ("", "rni", "rzi", "rmi", "rpi"):
            name = f"cvt.{how}.{to}.{source}".replace("..", ".")
            sm = 90 if "bf16" in (to, source) else 80
            yield Form(name, to, (source,), _converted(to, source, how), sm=sm)
            name = name.replace(f".{to}.", f".sat.{to}.")
            yield Form(name, to, (source,), _converted(to, source, how, saturated=True), sm=sm)
    for f in ("f16", "bf16"):
        for how in ("rn", "rz", "rn.relu"):

            def both(a: int, b: int, f: str = f, relu: bool = "relu" in how) -> int:
                low, high = (max(0.0, x) if relu else x for x in (real(b, "f32"), real(a, "f32")))
                return from_real(high, f) << 16 | from_real(low, f)

            yield Form(f"cvt.{how}.{f}x2.f32", f"{f}x2", ("f32", "f32"), both)
            one: Value = lambda a, f=f, r="relu" in how: from_real(  # noqa: E731
                max(0.0, real(a, "f32")) if r else real(a, "f32"), f
            )
            yield Form(f"cvt.{how}.{f}.f32", f, ("f32",), one)
    yield Form("cvt.rna.tf32.f32", "b32", ("f32",), lambda a: _tf32(a, to_even=False))
    yield Form("cvt.rn.tf32.f32", "b32", ("f32",), lambda a: _tf32(a, to_even=True), sm=90)


FORMS: tuple[Form, ...] = (
    *_integers(),
    *_pairs_of_integers(),
    *_bits(),
    *_floats(),
    *_comparisons(),
    *_conversions(),
    Form("vabsdiff4.u32.u32.u32", "u32", ("u32",) * 3, _byte_distances),
    Form("fns.b32", "b32", ("b32", "b32", "s32"), _nth_set),
)
