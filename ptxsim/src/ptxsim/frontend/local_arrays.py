"""Moves apart the local arrays of code that nvcc -G made.

PTX declares all local arrays of a function as one, so an index that leaves one of them finds
another. Unoptimised code computes the address of an element from the array's own, which is a fixed
offset, so the arrays can be moved by changing these offsets; only then an access past the end of
one is in none. Optimised code would offset other addresses, too.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxsim.frontend.debug_info import LocalVariable, local_variables
from ptxsim.frontend.records import Function, Instruction, Part, PtxModule

_APART = 128  # bytes: an array's elements keep their alignment
_BASE = re.compile(r"%SPL?")
_DIRECT = re.compile(r"\[\s*(%SPL?)\s*(?:\+\s*(\d{1,9})\s*)?\]")


def move_apart(module: PtxModule) -> None:
    """Change the functions of a module with debug information, where this is possible."""
    known = local_variables(module.sections)
    for function in module.functions.values() if known else ():
        _move_apart(function, known)


def _move_apart(function: Function, known: dict[str, list[LocalVariable]]) -> None:
    places = [k for k, each in enumerate(function.variables) if each.space == "local"]
    uses = list(_uses(function))
    if len(places) != 1 or None in uses:
        return
    whole = function.variables[places[0]]
    bases = {offset for use in uses if use for _, place, offset in [use] if place == 2}
    variables = known.get(whole.name.split("@")[0], ())  # without its scope
    named = [each for each in variables if each.offset + each.size <= whole.size]
    parts = _parts(whole.size, bases, sorted(named))
    starts = [part.offset for part in parts]

    def moved(offset: int) -> int:
        return offset + _APART * (bisect_right(starts, offset) - 1)

    for use in filter(None, uses):
        item, place, offset = use
        direct = _DIRECT.fullmatch(item.operands[place])
        text = str(moved(offset))
        item.operands[place] = f"[{direct[1]}+{text}]" if direct else text
    apart = tuple(part._replace(offset=moved(part.offset)) for part in parts)
    size = apart[-1].offset + apart[-1].size
    function.variables[places[0]] = replace(whole, size=size, parts=apart)


def _uses(function: Function) -> Iterator[tuple[Instruction, int, int] | None]:
    """Where an offset in local memory stands: instruction, operand, offset. None for a use of the
    memory's address in any other way."""
    for item in function.instructions:
        for place, text in enumerate(item.operands):
            if direct := _DIRECT.fullmatch(text):
                yield item, place, int(direct[2] or 0)
            elif not _BASE.search(text) or item.opcode == "cvta.local.u64":
                continue
            elif item.opcode == "add.u64" and place == 1 and item.operands[2].isdecimal():
                yield item, 2, int(item.operands[2])
            elif not (item.opcode == "mov.u64" and place == 0):
                yield None


def _parts(size: int, bases: set[int], named: Sequence[LocalVariable]) -> list[Part]:
    """The variables that have names, and what lies between them and is used by its address."""
    apart: list[LocalVariable] = []
    for each in named:
        inside = any(each.offset < base < each.offset + each.size for base in bases)
        if not inside and (not apart or apart[-1].offset + apart[-1].size <= each.offset):
            apart.append(each)
    names = {each.offset: each for each in apart}
    ends = {each.offset + each.size for each in apart}
    starts = sorted(start for start in {0, *bases, *names, *ends} if start < size)
    found = []
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        variable = names.get(start)
        found.append(
            Part(start, end - start, variable.name, variable.element)
            if variable
            else Part(start, end - start)
        )
    return found
