"""The functions that a kernel may call, by name and through pointers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ptxsim.frontend.module import SIMULATED_CALLS
from ptxsim.frontend.records import Address, Function, Instruction, Label, PtxModule, Variable
from ptxsim.lowering.memory_layout import callee_at, callees, is_call, listed
from ptxsim.lowering.operation import FUNCTION_STEP, UnsupportedInstruction
from ptxsim.text import Message, phrase

_MAX_INSTRUCTIONS = 100_000  # of all of them together
_MAX_FUNCTIONS = 256

FUNCTIONS_AT = 0x5E00_0000_0000  # the address of the first function that has one
TARGET = "call target"  # the instruction that finds out which function a pointer means
_Signature: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # bytes of results and parameters


def reachable_functions(module: PtxModule, kernel: str) -> list[Function]:
    """The kernel and every function it may call."""
    found: dict[str, Function] = {}
    todo = [kernel]
    while todo:
        name = todo.pop()
        if name in module.functions and name not in found and name not in SIMULATED_CALLS:
            found[name] = module.functions[name]
            todo += callees(found[name])
    return list(found.values())


def possible_functions(module: PtxModule, kernel: str) -> list[Function]:
    """The kernel and all code that may run in it. A call through a pointer may lead to any function
    of the module, and into a kernel that nobody launches."""
    found = reachable_functions(module, kernel)
    named = {name for function in found for name in callees(function)}
    known = named <= {*module.functions, *SIMULATED_CALLS}
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
    return UnsupportedInstruction(next(function.instructions), why)


def resolve_pointers(module: PtxModule) -> tuple[PtxModule, dict[str, int]]:
    """The module with its calls through pointers made calls of dispatchers, and the addresses of
    its functions.

    A dispatcher is a function of our own for each kind of parameters and results: it branches by
    the pointer, passes everything on to the function meant, and returns what that returns.
    """
    if all(function.entry for function in module.functions.values()):
        return module, {}
    by_signature: dict[_Signature | None, list[str]] = defaultdict(list)
    for name in dict.fromkeys(_addressed(module)):
        function = module.functions[name]
        by_signature[None if function.entry else _signature(function)].append(name)
    ordered = [name for names in by_signature.values() for name in names]
    addresses = {name: FUNCTIONS_AT + FUNCTION_STEP * k for k, name in enumerate(ordered)}
    functions = dict(module.functions)
    for function in module.functions.values():
        if any(_pointer(item, function) for item in function.body):
            changed = _without_pointers(function, by_signature, addresses)
            functions[function.name], called = changed
            for signature in called:
                names = by_signature.get(signature, [])
                made = _dispatcher(signature, [module.functions[name] for name in names])
                functions[made.name] = made
    return replace(module, functions=functions), addresses


def _addressed(module: PtxModule) -> Iterator[str]:
    """The functions whose address something takes."""
    for variable in module.variables:
        for value, _ in variable.initial:
            if isinstance(value, Address) and value.symbol in module.functions:
                yield value.symbol
    for function in module.functions.values():
        for item in function.instructions:
            if not is_call(item):
                names = (text.partition("+")[0] for text in item.operands)
                yield from (name for name in names if name in module.functions)


def _signature(function: Function) -> _Signature:
    results, params = function.returns, function.params
    return tuple(each.size for each in results), tuple(each.size for each in params)


def _pointer(item: Instruction | Label, function: Function) -> str | None:
    """The register that a call goes through."""
    if isinstance(item, Label) or not is_call(item):
        return None
    at = callee_at(item)
    register = item.operands[at] if at is not None else ""
    return register if function.register_type(register) is not None else None


def _without_pointers(
    function: Function, by_signature: dict[_Signature | None, list[str]], addresses: dict[str, int]
) -> tuple[Function, set[_Signature]]:
    """The function calling dispatchers, and what they take and return."""
    body: list[Instruction | Label] = []
    registers, variables = dict(function.registers), list(function.variables)
    sizes = {each.name: each.size for each in variables if each.space == "param"}
    called = set()
    for number, item in enumerate(function.body):
        pointer = _pointer(item, function)
        if isinstance(item, Label) or pointer is None:
            body.append(item)
            continue
        at = item.operands.index(pointer)
        given = [text for text in item.operands[at + 1 :] if text[0] == "("]
        results, params = listed(item.operands[:at]), listed(given)
        if not sizes.keys() >= {*results, *params}:  # no variables: refused when it is lowered
            body.append(item)
            continue
        signature = tuple(map(sizes.__getitem__, results)), tuple(map(sizes.__getitem__, params))
        called.add(signature)
        names = by_signature.get(signature, [])
        first = addresses[names[0]] if names else FUNCTIONS_AT
        index, which = f"%target@{number}", f"target@{number}"
        registers[index] = "b32"
        variables.append(Variable(which, "param", 4, 4))
        operands = [index, pointer, str(first), str(len(names))]
        body.append(replace(item, opcode=TARGET, operands=operands))
        body.append(replace(item, opcode="st.param.b32", operands=[f"[{which}]", index]))
        lists = [f"({', '.join(each)})" for each in (results, [which, *params])]
        operands = [lists[0], _dispatcher_name(signature), lists[1]]
        body.append(replace(item, opcode="call", operands=operands))
    return replace(function, body=body, registers=registers, variables=variables), called


def _dispatcher_name(signature: _Signature) -> str:
    return f"functions of {signature}"


def _dispatcher(signature: _Signature, functions: Sequence[Function]) -> Function:
    """The first parameter is the number of the function meant."""
    results, params = (
        [Variable(f"{kind}{k}", "param", size, 16) for k, size in enumerate(sizes)]
        for kind, sizes in zip(("result", "param"), signature, strict=True)
    )
    made = Function(
        name=_dispatcher_name(signature),
        entry=False,
        params=[Variable("which", "param", 4, 4), *params],
        returns=results,
        registers={"%x1": "b16", "%x2": "b16", "%x4": "b32", "%x8": "b64"},
        targets={"functions": [function.name for function in functions]},
    )

    def add(opcode: str, *operands: str) -> None:
        made.body.append(Instruction(opcode, list(operands), None, False, -1, 0))

    def move(variable: Variable, source: str, target: str) -> None:
        at = 0
        while at < variable.size:
            width = next(
                size for size in (8, 4, 2, 1) if at % size == 0 <= variable.size - at - size
            )
            add(f"ld.param.b{8 * width}", f"%x{width}", f"[{source}+{at}]")
            add(f"st.param.b{8 * width}", f"[{target}+{at}]", f"%x{width}")
            at += width

    if functions:
        add("ld.param.b32", "%x4", "[which]")
        add("brx.idx", "%x4", "functions")
    for function in functions:
        made.body.append(Label(function.name))
        passed = [f"{each.name}@{function.name}" for each in params]
        got = [f"{each.name}@{function.name}" for each in results]
        made.variables += [Variable(name, "param", 1, 1) for name in (*passed, *got)]
        for variable, name in zip(params, passed, strict=True):
            move(variable, variable.name, name)
        add("call", f"({', '.join(got)})", function.name, f"({', '.join(passed)})")
        for variable, name in zip(results, got, strict=True):
            move(variable, name, variable.name)
        add("ret")
    return made
