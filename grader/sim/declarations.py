"""Declarations of PTX → ``Variable``: of modules, of functions, their parameters."""

from __future__ import annotations

import re

from grader.sim.ptx import SIZES, PtxError, Variable, number

_VARIABLE = re.compile(
    r"(?:\.align\s+(?P<align>\d+)\s+)?(?:\.(?:v2|v4)\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$%]+)"
    r"(?P<dims>(?:\s*\[\s*\d*\s*\])*)"
)


def parameters(text: str | None) -> list[Variable]:
    """Of a function's header; what is no declaration is left out."""
    found = []
    for part in (text or "").split(","):
        part = part.strip().removeprefix(".param").strip()
        part = re.sub(r"\.ptr(\s+\.(global|shared|const|local))?(\s+\.align\s+\d+)?\s*", "", part)
        match = _VARIABLE.match(part)
        if match:
            found.append(_variable(match, "param"))
    return found


def local_variable(text: str, space: str) -> Variable:
    """Declared inside a function: ".align 4 .b8 name[64]". Raises PtxError."""
    return _variable(_matched(text, text), space)


def _matched(declaration: str, text: str) -> re.Match[str]:
    match = _VARIABLE.match(declaration)
    if match is None:
        raise PtxError(f"declaration not understood: {text}")
    return match


def _variable(match: re.Match[str], space: str) -> Variable:
    element = SIZES[match["type"]]
    count = 1
    for dim in re.findall(r"\[\s*(\d*)\s*\]", match["dims"] or ""):
        count *= int(dim) if dim else 0
    align = int(match["align"]) if match["align"] else element
    return Variable(match["name"], space, element * count, align)


def module_variable(text: str, space: str) -> Variable:
    """Declared outside functions, with what it begins with. Raises PtxError."""
    extern = ".extern" in text.split()[:2]
    declaration, _, initial = text.partition("=")
    declaration = declaration[declaration.index(f".{space}") + len(space) + 1 :]
    declaration = re.sub(r"\.attribute\s*\([^)]*\)", "", declaration).strip()
    match = _matched(declaration, text)
    variable = _variable(match, space)
    element = SIZES[match["type"]]
    values = tuple(
        (_number_or_symbol(value.strip(), match["type"]), element)
        for value in initial.strip().strip("{}").split(",")
        if value.strip()
    )
    return Variable(variable.name, space, variable.size, variable.align, values, extern)


def _number_or_symbol(text: str, kind: str) -> int | str:
    try:
        return number(text, kind)
    except ValueError:
        return text.removeprefix("generic(").removesuffix(")")
