"""Operations across the lanes of a warp, with every kind of operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from operand_lines import Line, Operand, alternatives
from ptx_form import LANES, integer

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
    for mode, outcome in (
        ("all", all(yes)),
        ("any", any(yes)),
        ("uni", all(yes) or not any(yes)),
    ):
        opcode = f"vote.sync.{mode}.pred"
        text = f"{opcode} %po, {operand.text}, {mask};"
        yield Line(opcode, 80, words, text, "%po", _same(int(outcome)))
    text = f"vote.sync.ballot.b32 %o32, {operand.text}, {mask};"
    yield Line("vote.sync.ballot.b32", 80, words, text, "%o32", _same(ballot))


def _same(value: int) -> Callable[[int], int]:
    return lambda _lane: value
