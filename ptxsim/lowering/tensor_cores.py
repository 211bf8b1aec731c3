"""Tensor-core instructions in PTX."""

from __future__ import annotations

from collections.abc import Iterable

from ptxsim.findings.events import instruction_note
from ptxsim.findings.finding import Finding, Kind
from ptxsim.frontend import Instruction, Module
from ptxsim.lowering.called_functions import possible_functions
from ptxsim.message import verbatim
from ptxsim.records import Launch, Plan

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
