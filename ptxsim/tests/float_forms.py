"""Arithmetic on floating-point numbers, comparisons and conversions, and what they compute."""

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from ptx_form import Form, Value, bits_of, from_real, integer, mask, of_reals, real

_COMPARE = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _compared(cmp: str, kind: str) -> Callable[[int, int], bool]:
    """Of numbers; no input is a NaN."""
    name = _UNSIGNED_NAMES.get(cmp, cmp.removesuffix("u"))
    number = real if "f" in kind else integer
    if cmp in ("num", "nan"):
        return lambda a, b: cmp == "num"
    return lambda a, b: _COMPARE[name](number(a, kind), number(b, kind))


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


def _fma(a: float, b: float, c: float) -> float:
    """Raises ValueError where a double does not hold the result."""
    if Fraction(a) * Fraction(b) + Fraction(c) != Fraction(a * b + c):
        raise ValueError("rounded twice")
    return a * b + c


def _floats() -> Iterator[Form]:
    for t in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        two, three = (t, t), (t, t, t)
        rn = "rn." if t in ("f32", "f64") else ""
        for f in (operator.add, operator.sub, operator.mul):
            sm = 90 if "bf" in t else 80
            yield Form(f"{f.__name__}.{rn}{t}", t, two, of_reals(t, f), sm=sm)
        yield Form(f"fma.rn.{t}", t, three, of_reals(t, _fma))
        yield Form(f"min.{t}", t, two, of_reals(t, min))
        yield Form(f"max.{t}", t, two, of_reals(t, max))
        yield Form(f"neg.{t}", t, (t,), of_reals(t, lambda a: -a))
        yield Form(f"abs.{t}", t, (t,), of_reals(t, abs))
        if t not in ("f32", "f64"):
            relu = lambda a, b, c: max(0.0, _fma(a, b, c))  # noqa: E731
            yield Form(f"fma.rn.relu.{t}", t, three, of_reals(t, relu))
            yield Form(f"min.NaN.{t}", t, two, of_reals(t, min))
            yield Form(f"max.NaN.{t}", t, two, of_reals(t, max))
        if t in ("f32", "f16", "f16x2"):
            sat = lambda x: min(max(x, 0.0), 1.0) + 0.0  # noqa: E731
            yield Form(f"add.sat.{t}", t, two, of_reals(t, lambda a, b, s=sat: s(a + b)))
            yield Form(f"mul.sat.{t}", t, two, of_reals(t, lambda a, b, s=sat: s(a * b)))
            yield Form(
                f"fma.rn.sat.{t}", t, three, of_reals(t, lambda a, b, c, s=sat: s(_fma(a, b, c)))
            )
    yield Form("min.NaN.f32", "f32", ("f32", "f32"), of_reals("f32", min))
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


FLOAT_FORMS: tuple[Form, ...] = (*_floats(), *_comparisons(), *_conversions())
