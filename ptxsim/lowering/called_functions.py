"""The functions that a kernel may call."""

from __future__ import annotations

from ptxsim.frontend import LIBRARY_CALLS, Function, Instruction, Module
from ptxsim.lowering.memory_layout import callees
from ptxsim.lowering.operation import UnsupportedInstruction
from ptxsim.message import Message, phrase

_MAX_INSTRUCTIONS = 100_000  # of all of them together
_MAX_FUNCTIONS = 256


def reachable_functions(module: Module, kernel: str) -> list[Function]:
    """The kernel and every function it may call."""
    found: dict[str, Function] = {}
    todo = [kernel]
    while todo:
        name = todo.pop()
        if name in module.functions and name not in found and name not in LIBRARY_CALLS:
            found[name] = module.functions[name]
            todo += callees(found[name])
    return list(found.values())


def possible_functions(module: Module, kernel: str) -> list[Function]:
    """The kernel and all code that may run in it. A call through a pointer may lead to any function
    of the module, and into a kernel that nobody launches."""
    found = reachable_functions(module, kernel)
    named = {name for function in found for name in callees(function)}
    known = named <= {*module.functions, *LIBRARY_CALLS}
    return found if known else list(module.functions.values())


def recursive(functions: list[Function]) -> set[str]:
    """The functions that may call themselves, directly or through others."""
    calls = {function.name: set(callees(function)) for function in functions}
    found = set()
    for name, direct in calls.items():
        todo, seen = list(direct), set(direct)
        while todo:
            new = calls.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        if name in seen:
            found.add(name)
    return found


def refuse_too_many(functions: list[Function]) -> None:
    """Refuses what would take the analysis of the control flow, which is quadratic, too long."""
    kernel = functions[0]
    instructions = sum(len(function.body) for function in functions)
    for count, most, what in (
        (instructions, _MAX_INSTRUCTIONS, phrase("PTX instructions")),
        (len(functions), _MAX_FUNCTIONS, phrase("functions")),
    ):
        if count > most:
            raise too_much(kernel, count, most, what)


def too_much(function: Function, count: int, most: int, what: Message) -> UnsupportedInstruction:
    why = phrase(
        "the kernel has {found} {what}, and the simulator takes at most {most}",
        found=count,
        what=what,
        most=most,
    )
    first = next(item for item in function.body if isinstance(item, Instruction))
    return UnsupportedInstruction(first, why)
