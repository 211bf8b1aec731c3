"""Instructions on integers and on bits, and what they compute."""

from collections.abc import Iterator
from itertools import product

from ptx_form import Form, Value, bits_of, integer, of_ints, real, signed


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


def _extended(a: int, bits: int, kind: str) -> int:
    return integer(a, f"{kind[0]}{bits}") if bits else 0


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


def _integers() -> Iterator[Form]:
    for bits in (16, 32, 64):
        for sign in "su":
            t = f"{sign}{bits}"
            two, three = (t, t), (t, t, t)
            yield Form(f"add.{t}", t, two, of_ints(t, lambda a, b: a + b))
            yield Form(f"sub.{t}", t, two, of_ints(t, lambda a, b: a - b))
            yield Form(f"mul.lo.{t}", t, two, of_ints(t, lambda a, b: a * b))
            yield Form(f"mul.hi.{t}", t, two, of_ints(t, lambda a, b, n=bits: a * b >> n))
            yield Form(f"mad.lo.{t}", t, three, of_ints(t, lambda a, b, c: a * b + c))
            yield Form(
                f"mad.hi.{t}", t, three, of_ints(t, lambda a, b, c, n=bits: (a * b >> n) + c)
            )
            yield Form(f"div.{t}", t, two, _divided(t, remainder=False))
            yield Form(f"rem.{t}", t, two, _divided(t, remainder=True))
            yield Form(f"min.{t}", t, two, of_ints(t, min))
            yield Form(f"max.{t}", t, two, of_ints(t, max))
            yield Form(f"sad.{t}", t, three, of_ints(t, lambda a, b, c: c + abs(a - b)))
            yield Form(f"shr.{t}", t, (t, "u32"), _shifted(t, left=False))
            if sign == "s":
                yield Form(f"neg.{t}", t, (t,), of_ints(t, lambda a: -a))
                yield Form(f"abs.{t}", t, (t,), of_ints(t, abs))
            if bits < 64:
                w = f"{sign}{2 * bits}"
                yield Form(f"mul.wide.{t}", w, two, of_ints(t, lambda a, b: a * b))
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
        low = of_ints(f"{t[0]}24", lambda a, b: a * b)
        high = of_ints(f"{t[0]}24", lambda a, b: a * b >> 16)
        yield Form(f"mul24.lo.{t}", t, (t, t), low)
        yield Form(f"mul24.hi.{t}", t, (t, t), high)
        yield Form(f"mad24.lo.{t}", t, (t, t, t), lambda a, b, c, f=low: (f(a, b) or 0) + c)
        yield Form(f"szext.clamp.{t}", t, (t, "u32"), lambda a, b, t=t: _extended(a, min(b, 32), t))
        yield Form(f"szext.wrap.{t}", t, (t, "u32"), lambda a, b, t=t: _extended(a, b & 31, t))
    relu = of_ints("s32", lambda a, b: max(0, min(a, b)))
    yield Form("min.relu.s32", "s32", ("s32", "s32"), relu, sm=90)
    yield Form("add.sat.s32", "s32", ("s32", "s32"), of_ints("s32", lambda a, b: _clamped(a + b)))
    yield Form("sub.sat.s32", "s32", ("s32", "s32"), of_ints("s32", lambda a, b: _clamped(a - b)))


def _pairs_of_integers() -> Iterator[Form]:
    for t in ("u16", "s16"):
        for name, f in (("add", lambda a, b: a + b), ("min", min), ("max", max)):

            def both(a: int, b: int, f: Value = f, t: str = t) -> int:
                low, high = (f(integer(a >> at, t), integer(b >> at, t)) & 0xFFFF for at in (0, 16))
                return high << 16 | low

            yield Form(f"{name}.{t}x2", "b32", ("b32", "b32"), both, sm=90)


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


INTEGER_FORMS: tuple[Form, ...] = (
    *_integers(),
    *_pairs_of_integers(),
    *_bits(),
    Form("fns.b32", "b32", ("b32", "b32", "s32"), _nth_set),
)
