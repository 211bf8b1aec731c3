"""Several PTX modules made one, as nvlink does with the modules of a program."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ptxsim.frontend.module import read_module
from ptxsim.frontend.records import PtxModule


def read_linked(texts: Sequence[str], source_root: Path) -> PtxModule:
    """The modules as one, in which each finds functions and variables of the others; what a module
    keeps to itself gets another name if a second one has it too. Raises what read_module raises."""
    modules = [read_module(text, source_root) for text in texts]
    named = Counter(name for each in modules for name in _names(each))
    for number, text in enumerate(texts):
        if own := sorted(name for name in modules[number].private if named[name] > 1):
            names = rf"(?<![\w$%.])(?:{'|'.join(map(re.escape, own))})(?![\w$])"
            modules[number] = read_module(re.sub(names, rf"\g<0>${number}", text), source_root)
    linked = modules[0]
    for other in modules[1:]:
        _add(linked, other)
    return linked


def _names(module: PtxModule) -> set[str]:
    return {*module.functions, *module.externs, *(each.name for each in module.variables)}


def _add(linked: PtxModule, other: PtxModule) -> None:
    """Add what is not there; of what is .weak in both, the first stays."""
    for function in other.functions.values():
        for item in function.instructions:
            item.loc += len(linked.locations)
    linked.functions = other.functions | linked.functions
    linked.locations += other.locations
    linked.externs = (linked.externs | other.externs) - {*linked.functions}
    variables = {each.name: each for each in linked.variables}
    for each in other.variables:
        if each.name not in variables or variables[each.name].extern:
            variables[each.name] = each
    linked.variables = list(variables.values())
