"""A module before it runs: read, how finely to watch it, what its variables begin with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.errors import Rejected
from grader.model import Verdict
from grader.sim.parser import parse
from grader.sim.ptx import SIZES, Instruction, Module, PtxError, Variable


def read_module(ptx: str, source_root: Path) -> Module:
    """Raises Rejected(IE) for PTX that cannot be read."""
    try:
        return parse(ptx, source_root)
    except PtxError as error:
        raise Rejected(Verdict.IE, f"the simulator cannot read the PTX: {error}") from None


def cells(module: Module) -> tuple[int, int]:
    """Bytes per shadow cell of shared and of global memory: the narrowest access decides, so that
    neighbouring halves written by two threads are not taken for a race."""
    shared = everywhere = 4
    for function in module.functions.values():
        for item in function.body:
            if not isinstance(item, Instruction) or not item.opcode.startswith(
                ("ld", "st", "atom", "red.")
            ):
                continue
            words = item.opcode.split(".")
            width = SIZES.get(words[-1], 4)
            if {"local", "param"} & set(words) or item.opcode.startswith("ldmatrix"):
                continue
            if not {"global", "const"} & set(words):
                shared = min(shared, width)
            if not any(w.startswith("shared") for w in words):
                everywhere = min(everywhere, width)
    return shared, everywhere


def initial_bytes(variable: Variable, addresses: Mapping[str, int]) -> NDArray[np.uint8]:
    data = np.zeros(max(variable.size, 1), np.uint8)
    values = b"".join(
        _bits(addresses.get(value, 0) if isinstance(value, str) else value, width)
        for value, width in variable.initial
    )
    if len(values) > variable.size:
        raise Rejected(
            Verdict.IE,
            f"the simulator cannot read the PTX: {variable.name} has {variable.size} bytes and "
            f"{len(values)} bytes of values",
        )
    data[: len(values)] = np.frombuffer(values, np.uint8)
    return data


def _bits(value: int, width: int) -> bytes:
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
