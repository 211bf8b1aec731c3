"""Video instructions, and what the PTX ISA's pseudo-code says that they compute; where it leaves
room, what ptxas makes of them (ptxsim/engine/arithmetic/video.cpp)."""

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product

from ptx_form import Form, integer, signed

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SIGNS = tuple(product(("u32", "s32"), repeat=3))


def _averaged(a: int, b: int) -> int:
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


_WHAT: dict[str, Callable[[int, int], int]] = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": _averaged,
    **{f"vset.{name}": getattr(operator, name) for name in _COMPARISONS},
    "vshl.clamp": lambda a, b: signed(a << min(b, 32), 34),
    "vshl.wrap": lambda a, b: signed(a << (b & 31), 34),
    "vshr.clamp": lambda a, b: a >> min(b, 32),
    "vshr.wrap": lambda a, b: a >> (b & 31),
}
_SECOND: dict[str, Callable[[int, int], int]] = {"add": operator.add, "min": min, "max": max}


def _part(value: int, selector: str, kind: str) -> int:
    bits = {"b": 8, "h": 16}.get(selector[:1], 32)
    at = int(selector[1:] or "0")
    return integer(value >> bits * at, f"{kind[0]}{bits}")


def _saturated(value: int, kind: str, bits: int) -> int:
    top = 1 << (bits - (kind == "s32"))
    return min(max(value, -top if kind == "s32" else 0), top - 1)


def _merged(into: int, value: int, at: int, bits: int) -> int:
    mask = ((1 << bits) - 1) << at
    return into & ~mask & 0xFFFFFFFF | value << at & mask


def _scalar(
    what: str, kinds: Sequence[str], sat: bool, a: str, b: str, d: str, second: str
) -> Form:
    """a, b, d: selectors, "" for the whole register."""
    result, first, other = kinds
    bits = {"b": 8, "h": 16}.get(d[:1], 32)

    def value(x: int, y: int, z: int = 0) -> int:
        found = _WHAT[what](_part(x, a, first), _part(y, b, other))
        if sat:
            found = _saturated(int(found), result, bits)
        if second:
            return _SECOND[second](integer(int(found), result), integer(z, result))
        return _merged(z, int(found), bits * int(d[1:] or 0), bits) if d else int(found)

    base, _, mode = what.partition(".")
    more = ["sat"] * sat + [mode] * (base in ("vshl", "vshr")) + [second] * bool(second)
    if base == "vset":
        opcode = ".".join((base, first, other, mode, *more))
    else:
        opcode = ".".join((base, *kinds, *more))
    sources = (first, other) + (("u32",) if second or d else ())
    places = ["{0}" + f".{a}" * bool(a), "{1}" + f".{b}" * bool(b), "{2}"][: len(sources)]
    text = ", ".join(("{d}" + f".{d}" * bool(d), *places))
    return Form(opcode, "u32", sources, value, text)


def _simd(
    what: str, count: int, kinds: Sequence[str], more: str, a: str, b: str, mask: str
) -> Form:
    """a, b, mask: digits, the lowest part's last; "" for what PTX takes then. more: sat, add."""
    result, first, other = kinds
    bits, letter = 32 // count, {2: "h", 4: "b"}[count]

    def value(x: int, y: int, z: int) -> int:
        both, merged, total = y << 32 | x, z, z
        for k in range(count):
            at, from_ = (int(s[-1 - k]) if s else k + count * n for n, s in enumerate((a, b)))
            p = integer(both >> bits * at, f"{first[0]}{bits}")
            q = integer(both >> bits * from_, f"{other[0]}{bits}")
            found = int(_WHAT[what](p, q))
            if more == "sat":
                found = _saturated(found, result, bits)
            if not mask or str(k) in mask:
                merged = _merged(merged, found, bits * k, bits)
                total += found
        return total if more == "add" else merged

    base, _, word = what.partition(".")
    if base == "vset":
        opcode = ".".join(part for part in (f"{base}{count}", first, other, word, more) if part)
    else:
        opcode = ".".join(part for part in (f"{base}{count}", *kinds, more) if part)
    names = [f".{letter}{digits}" if digits else "" for digits in (mask, a, b)]
    text = f"{{d}}{names[0]}, {{0}}{names[1]}, {{1}}{names[2]}, {{2}}"
    return Form(opcode, "u32", ("b32", "b32", "b32"), value, text)


def _multiplied(kinds: Sequence[str], words: tuple[str, ...], signs: str, a: str, b: str) -> Form:
    _, first, other = kinds
    minus = [sign == "-" for sign in signs]
    is_signed = "s32" in (first, other) or minus[0] != minus[1] or minus[2]

    def value(x: int, y: int, z: int) -> int:
        kind = "s32" if is_signed else "u32"
        z, p, q = (integer(n, kind) for n in (z, _part(x, a, first), _part(y, b, other)))
        found = p * q * (-1 if minus[0] != minus[1] else 1)
        found += (-z if minus[2] else z) + ("po" in words)
        found >>= 7 * ("shr7" in words) + 15 * ("shr15" in words)
        return _saturated(found, "s32" if is_signed else "u32", 32) if "sat" in words else found

    sign = ["-" * each for each in minus]
    text = (
        "{d}, "
        + f"{sign[0]}{{0}}" + f".{a}" * bool(a) + ", "
        + f"{sign[1]}{{1}}" + f".{b}" * bool(b) + ", "
        + f"{sign[2]}{{2}}"
    )  # fmt: skip
    return Form(".".join(("vmad", *kinds, *words)), "u32", ("b32", "b32", "b32"), value, text)


def _forms() -> Iterator[Form]:
    selectors = cycle(["", "b0", "b3", "h1", "b1", "h0", "b2"])
    targets = cycle(["", "b0", "h1", "b3", "", "h0", "b1"])
    seconds = cycle(["", "add", "", "min", "max"])
    for what, kinds in product(_WHAT, _SIGNS):
        base = what.partition(".")[0]
        if base == "vavrg" or (base == "vset" and kinds[0] == "s32"):
            continue
        if base in ("vshl", "vshr") and kinds[2] == "s32":
            continue
        for sat in (False, True)[: 1 + (base != "vset")]:
            d = next(targets)
            second = "" if d else next(seconds)
            yield _scalar(what, kinds, sat, next(selectors), next(selectors), d, second)
    halves = cycle(["", "10", "33", "02"])
    bytes_ = cycle(["", "3210", "7401", "0000", "5247"])
    masks = {2: cycle(["", "0", "1", "10"]), 4: cycle(["", "0", "20", "310", "3210", "3"])}
    for what, count, kinds in product(_WHAT, (2, 4), _SIGNS):
        base = what.partition(".")[0]
        if base in ("vshl", "vshr") or (base == "vset" and kinds[0] == "s32"):
            continue
        from_ = halves if count == 2 else bytes_
        for more in ("", "sat", "add"):
            if more == "sat" and base == "vset":
                continue
            yield _simd(what, count, kinds, more, next(from_), next(from_), next(masks[count]))
    words = cycle([(), ("sat",), ("shr7",), ("sat", "shr15")])
    for kinds, signs in product(_SIGNS, ("   ", "-  ", " - ", "-- ", "  -")):
        for _ in range(2):
            yield _multiplied(kinds, next(words), signs, next(selectors), next(selectors))
    for kinds in _SIGNS:
        yield _multiplied(kinds, ("po", *next(words)), "   ", "", "h1")


VIDEO_FORMS = tuple(_forms())
