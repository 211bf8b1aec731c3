"""What is known of a module before it runs: sizes of shadow cells, initial values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ptxsim.frontend import SIZES, Address, Instruction, Module, Variable


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
    at = 0
    for value, width in variable.initial:
        bits = _address(value, addresses) if isinstance(value, Address) else value
        data[at : at + width] = np.frombuffer(bits.to_bytes(8, "little")[:width], np.uint8)
        at += width
    return data


def _address(value: Address, addresses: Mapping[str, int]) -> int:
    """0 for a function's: calls through pointers are not simulated."""
    if value.symbol not in addresses:
        return 0
    lowest = (value.mask & -value.mask).bit_length() - 1
    return ((addresses[value.symbol] + value.offset) & value.mask) >> lowest
