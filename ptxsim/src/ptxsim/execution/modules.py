"""The modules of one program: their kernels, and their variables in device memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ptxsim.engine import Engine
from ptxsim.execution import messages
from ptxsim.execution.memory import DeviceMemory
from ptxsim.execution.watcher import Watcher
from ptxsim.findings.names import plain_name
from ptxsim.frontend.module import ptx_text
from ptxsim.living import LivingKernels
from ptxsim.lowering.memory_layout import initial_bytes

_REGISTERS = 32  # of a thread: PTX does not say


@dataclass(frozen=True)
class Loaded:
    """A module whose variables lie in memory."""

    kernels: LivingKernels
    addresses: dict[str, int]  # of its variables and functions


class Modules:
    """What a program registers. It is loaded when the memory is first used. file: the memory."""

    def __init__(self, engine: Engine, file: int, watcher: Watcher) -> None:
        self._engine = engine
        self._file = file
        self._watcher = watcher
        self._texts: list[str] = []  # of modules that are not loaded yet
        self._waiting: dict[str, messages.NewVariable] = {}  # until their modules are loaded
        self._of_kernel: dict[str, Loaded] = {}
        self._made: DeviceMemory | None = None

    def add(self, ptx: bytes) -> None:
        self._texts.append(ptx_text(ptx))

    def add_variable(self, variable: messages.NewVariable) -> None:
        self._waiting[variable.name] = variable

    @property
    def memory(self) -> DeviceMemory:
        """Device memory with all modules' variables; its use loads the modules that are new."""
        if self._made and not self._texts:
            return self._made
        here = Path.cwd()
        modules = [LivingKernels(text, here, self._engine) for text in self._texts]
        self._texts.clear()
        if self._made is None:
            cell = min((each.global_cell for each in modules), default=4)
            self._made = DeviceMemory(self._engine, self._file, cell, self._watcher)
        for each in modules:
            each.global_cell = self._made.cell
            self._load(each, self._made)
        return self._made

    def _load(self, kernels: LivingKernels, memory: DeviceMemory) -> None:
        addresses: dict[str, int] = dict(kernels.functions)
        own = []
        for variable in kernels.variables:
            if variable.name in self._waiting:
                addresses[variable.name] = self._waiting[variable.name].address
            else:
                data = np.zeros(max(variable.size, 1), np.uint8)
                addresses[variable.name] = memory.add_own(plain_name(variable.name), data)
                own.append((variable, data))
        for variable, data in own:
            data[:] = initial_bytes(variable, addresses)
        for variable in kernels.variables:
            if asked := self._waiting.pop(variable.name, None):
                name = partial(plain_name, variable.name)
                memory.add(asked.address, asked.size, name, initial_bytes(variable, addresses))
        entries = kernels.declared.entries
        self._of_kernel |= dict.fromkeys(entries, Loaded(kernels, addresses))

    def of_kernel(self, kernel: str) -> Loaded | None:
        """The module that has a kernel; None: there is none."""
        return self._of_kernel.get(kernel) if self.memory else None

    def figures(self, name: str) -> str:
        """What sink_kernel reads of a kernel; empty: there is none."""
        loaded = self.of_kernel(name)
        if loaded is None:
            return ""
        entry = loaded.kernels.declared.entries[name]
        cluster = entry.cluster or (0, 0, 0)
        params = list(itertools.chain.from_iterable((p.offset, p.size) for p in entry.params))
        shared = loaded.kernels.shared_bytes(name, loaded.addresses)
        figures = [_REGISTERS, shared, entry.max_threads, *cluster, len(entry.params), *params]
        return " ".join(map(str, figures))
