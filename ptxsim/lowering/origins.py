"""Where the code of a kernel comes from."""

from __future__ import annotations

from ptxsim.frontend import Instruction, Module
from ptxsim.lowering.called_functions import possible_functions


def origins(module: Module) -> dict[str, tuple[str, ...]]:
    """By kernel: the source files outside the submission that its instructions come from, with
    those of the functions that it may call. Kernels without any are left out."""
    by_function = {
        name: {item.loc for item in function.body if isinstance(item, Instruction)}
        for name, function in module.functions.items()
    }
    found = {}
    for name, function in module.functions.items():
        if not function.entry:
            continue
        places = set().union(*(by_function[f.name] for f in possible_functions(module, name)))
        files: set[str] = set()
        for place in places:
            location = module.locations[place] if place >= 0 else None
            files.update(location.outside if location else ())
        if files:
            found[name] = tuple(sorted(files))
    return found
