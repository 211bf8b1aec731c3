"""Facts about the text of a kernel: hints why elements may be wrong, tensor cores, foreign code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxsim.findings.finding import Finding, Kind
from ptxsim.findings.reports import instruction_note
from ptxsim.frontend import Function, Instruction, Module
from ptxsim.lowering.called_functions import possible_functions
from ptxsim.lowering.shared_arrays import lay_out_shared, reads_of_addresses
from ptxsim.message import phrase, verbatim
from ptxsim.records import Launch, Plan

_BITS = {"f16": 11, "f16x2": 11, "bf16": 8, "bf16x2": 8}


def hints(module: Module, kernel: str) -> Iterator[Finding]:
    functions = possible_functions(module, kernel)
    for item in _half_sums(functions):
        text = phrase(
            "{instruction} adds in {bits} bits: a sum of many products loses most of what is added "
            "to it; convert to float and add there",
            instruction=verbatim(item.opcode),
            bits=_BITS[item.opcode.rpartition(".")[2]],
        )
        yield instruction_note(module, Kind.HINT, text, item)
    if functions[0].name != kernel:
        return
    shared = lay_out_shared(module, functions)
    for item in reads_of_addresses(functions, shared, "xor"):
        text = phrase(
            "this computes with the bits of an address in shared memory, whose first address is "
            "{first} here, as on sm_{target}; it is 0 before sm_90 and 1024 from there on, so what "
            "is right on the one may be wrong on the other",
            first=shared.first,
            target=module.target,
        )
        yield instruction_note(module, Kind.HINT, text, item)
        return


def _half_sums(functions: Iterable[Function]) -> Iterator[Instruction]:
    for function in functions:
        for item in function.body:
            if isinstance(item, Instruction):
                kind = item.opcode.rpartition(".")[2]
                if item.opcode.startswith(("fma.", "add.")) and kind in _BITS:
                    yield item


_TENSOR_CORE = ("mma.", "wmma.", "wgmma.", "tcgen05.")


def tensor_core_notes(module: Module, plans: Iterable[Plan]) -> list[Finding]:
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    kernels = {o.kernel for o in operations if isinstance(o, Launch)}
    functions = [f for k in sorted(kernels) for f in possible_functions(module, k)]
    return [
        instruction_note(module, Kind.TENSOR_CORE, verbatim(item.opcode), item)
        for function in functions
        for item in function.body
        if isinstance(item, Instruction) and item.opcode.startswith(_TENSOR_CORE)
    ]


def origins(module: Module) -> dict[str, tuple[str, ...]]:
    """Return, by kernel, the source files outside the submission that its instructions come from,
    with those of the functions that it may call. Kernels without any are left out."""
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
