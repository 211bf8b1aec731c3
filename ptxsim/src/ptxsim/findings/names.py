"""Mangled names as a reader of the source knows them.

Anybody chooses names, so a name may be mangled wrongly: ``_Z9999k``. Whatever cannot be read is
returned as it is. What is returned for readers is short, however long the name is.
"""

import re

from ptxsim.frontend.records import SIZES
from ptxsim.plan.limits import MOST_NAME

_LENGTH = re.compile(r"[0-9]{1,6}")
_NO_LENGTH = ("S", "T", *(f"L{kind}" for kind in "bcahstijlmxy"))  # S1_, T0_, Li128E
_SPLIT, _HALF = "_$_", 2  # bytes
_MOST_SHOWN = 80  # characters
_TO_SHORTEN = re.compile(rf"\b_Z[A-Za-z0-9_.$]+|\w{{{_MOST_SHOWN + 1},}}")


def identifiers(mangled: str) -> tuple[str, ...]:
    """Every identifier in a mangled name, in order: "_ZN1a1kI1bEEvv" → a, k, b."""
    found, at = [], 0
    while match := _LENGTH.search(mangled, at):
        before = mangled[at : match.start()]
        at = match.end()
        if before.endswith(_NO_LENGTH):
            continue
        candidate = mangled[at : at + int(match[0])]
        if len(candidate) == int(match[0]) and candidate.isidentifier():
            found.append(candidate)
            at += len(candidate)
    return tuple(found)


def plain_name(mangled: str) -> str:
    """A C++ name without what it is declared in: "_ZZ1kvE2As" → "As", "_ZN1a1kI1bEEvv" → "k"."""
    mangled, _, _ = mangled.partition("@")  # the scope it is declared in
    if not _is_mangled(mangled):
        return _short(mangled)
    names, _ = _path(mangled)
    found = names or identifiers(mangled)
    return _short(found[-1] if found else mangled)


def array_name(mangled: str, type_: str, *, by_index: bool) -> str:
    """The name of a shared variable in the source: "s[31]" for ``_ZZ1kvE1s_$_31``, which is what
    nvcc makes of an element that constants alone index. Other compilers than NVVM 7 just count the
    elements that are used: "s[…]".

    type_: of a variable that is no array.
    """
    base, *path = mangled.partition("@")[0].split(_SPLIT)
    if not path or not all(map(str.isdecimal, path)):
        return plain_name(mangled)
    if not by_index:
        return f"{plain_name(base)}[…]"
    if len(path) > 1 and path[-1] == "0" and SIZES.get(type_) == _HALF:
        path.pop()  # the only member of a __half or of a __nv_bfloat16
    return plain_name(base) + "".join(f"[{index}]" for index in path)


def kernel_name(mangled: str) -> str:
    """``sgemm<…>`` for ``_Z5sgemmILi8EEvPfS_iii``; anything else unchanged."""
    if not _is_mangled(mangled):
        return _short(mangled)
    names, at = _path(mangled)
    if not names:
        return _short(mangled)
    return _short("::".join(names)) + ("<…>" if mangled[at : at + 1] == "I" else "")


def _is_mangled(name: str) -> bool:
    """Whether there are names in it to look for: in a longer one that could take minutes."""
    return name.startswith("_Z") and len(name) <= MOST_NAME


def _short(name: str) -> str:
    return name if len(name) <= _MOST_SHOWN else f"{name[: _MOST_SHOWN - 1]}…"


def _path(mangled: str) -> tuple[list[str], int]:
    """The names of the scopes and the entity, and where they end; [] for what is local."""
    nested = mangled.startswith("_ZN")
    at = 3 if nested else 2
    names: list[str] = []
    while (nested or not names) and (number := _LENGTH.match(mangled, at)):
        start = number.end()
        at = start + int(number[0])
        names.append("(anonymous)" if "_GLOBAL__N_" in mangled[start:at] else mangled[start:at])
    return names, at


def readable(text: str) -> str:
    """``text`` with ``kernel_name`` applied to every mangled or long name in it."""
    return _TO_SHORTEN.sub(lambda name: kernel_name(name[0]), text)
