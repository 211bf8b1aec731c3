"""Tensor-core instructions in PTX."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from grader.model import Finding, Launch, Plan
from grader.ptx import Instruction, Module, read_module
from grader.sim.findings import instruction_note, merge
from grader.sim.program import reachable_functions

_TENSOR_CORE = ("mma.", "wmma.", "wgmma.", "tcgen05.")


def find_tensor_cores(ptx: str, source_root: Path, plans: Iterable[Plan]) -> tuple[Finding, ...]:
    """A note for every tensor-core instruction of the kernels that ``plans`` launch.

    Whether they may stand is the lab's to say. Raises Rejected for PTX that cannot be read.
    """
    return merge(tensor_core_notes(read_module(ptx, source_root), plans))


def tensor_core_notes(module: Module, plans: Iterable[Plan]) -> list[Finding]:
    kernels = {o.kernel for plan in plans for o in plan.operations if isinstance(o, Launch)}
    functions = [f for k in sorted(kernels) for f in reachable_functions(module, k)]
    return [
        instruction_note(module, "tensor-core", f"{item.opcode} runs on tensor cores", item)
        for function in functions
        for item in function.body
        if isinstance(item, Instruction) and item.opcode.startswith(_TENSOR_CORE)
    ]
