"""The modules of one program: their kernels, and their variables in device memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ptxsim.engine import Engine
from ptxsim.execution import messages
from ptxsim.execution.memory import DeviceMemory
from ptxsim.execution.write_log import WriteLog
from ptxsim.findings.names import plain_name
from ptxsim.frontend.interface import Entry
from ptxsim.frontend.module import ptx_text
from ptxsim.living import LivingKernels
from ptxsim.lowering.memory_layout import initial_bytes
from ptxsim.plan.limits import MAX_THREADS
from ptxsim.ptxas import KernelFigures, measured

_FEW_INSTRUCTIONS = 100  # of a kernel, which a thread of any block has registers for


@dataclass(frozen=True)
class Loaded:
    """A module whose variables lie in memory."""

    kernels: LivingKernels
    entries: dict[str, Entry]
    addresses: dict[str, int]  # of its variables and functions


@dataclass
class _Module:
    """A module that the program has registered."""

    texts: list[str]  # PTX; several are linked
    known: dict[str, messages.NewVariable] = field(default_factory=dict)  # by host code, mangled
    kernels: LivingKernels | None = None
    loaded: Loaded | None = None
    measured: dict[str, KernelFigures] | None = None  # by kernel; None: not yet


class Modules:
    """All that a program registers, loaded when the memory is first used. file: the memory."""

    def __init__(self, engine: Engine, file: int, log: WriteLog) -> None:
        self._engine = engine
        self._file = file
        self._log = log
        self._all: list[_Module] = []
        self._new: list[_Module] = []  # those that are not loaded yet
        self._made: DeviceMemory | None = None

    def add(self, ptx: bytes) -> None:
        module = _Module(ptx_text(ptx).rstrip("\0").split("\0"))
        self._all.append(module)
        self._new.append(module)

    def add_variable(self, variable: messages.NewVariable) -> None:
        self._module(variable.module).known[variable.name] = variable

    @property
    def memory(self) -> DeviceMemory:
        """Device memory with all modules' variables; its use loads the modules that are new."""
        if self._made and not self._new:
            return self._made
        loading, self._new = self._new, []
        kernels = [self._kernels(each) for each in loading]
        cell = min((each.global_cell for each in kernels), default=4)
        if self._made is None:
            self._made = DeviceMemory(self._engine, self._file, cell, self._log)
        elif cell < self._made.cell:
            self._made.refine(cell)
        for module, own in zip(loading, kernels, strict=True):
            module.loaded = self._load(own, module.known, self._made)
        for module in self._all:
            if module.loaded:
                module.loaded.kernels.use_cells(self._made.cell)
        return self._made

    def close(self) -> None:
        """Free the memory, which nobody uses any more."""
        for module in self._all:
            if module.kernels:
                module.kernels.close()
        if self._made:
            self._made.close()
        self._made = None
        self._all.clear()
        self._log.watched.clear()

    def _load(
        self,
        kernels: LivingKernels,
        known: dict[str, messages.NewVariable],
        memory: DeviceMemory,
    ) -> Loaded:
        addresses: dict[str, int] = dict(kernels.functions)
        own = []
        for variable in kernels.variables:
            if variable.name in known:
                addresses[variable.name] = known[variable.name].address
            else:
                data = np.zeros(max(variable.size, 1), np.uint8)
                addresses[variable.name] = memory.add_own(plain_name(variable.name), data)
                own.append((variable, data))
        for variable, data in own:
            data[:] = initial_bytes(variable, addresses)
        for variable in kernels.variables:
            if asked := known.get(variable.name):
                name = partial(plain_name, variable.name)
                memory.add(asked.address, asked.size, name, initial_bytes(variable, addresses))
        return Loaded(kernels, kernels.declared.entries, addresses)

    def _kernels(self, module: _Module) -> LivingKernels:
        if module.kernels is None:
            module.kernels = LivingKernels(module.texts, Path.cwd(), self._engine)
        return module.kernels

    def variables(self, number: int) -> str:
        """The variables of a module, by name and size. Raises BrokenChannel."""
        found = self._kernels(self._module(number)).variables
        return "\n".join(f"{each.name} {max(each.size, 1)}" for each in found)

    def of_kernel(self, kernel: str, number: int) -> Loaded | None:
        """The module of this number if it has the kernel. Raises BrokenChannel."""
        loaded = self._module(number).loaded if self.memory else None
        return loaded if loaded and kernel in loaded.entries else None

    def figures(self, name: str, number: int) -> str:
        """The figures of a kernel for sink_kernel; empty: there is none. Raises BrokenChannel."""
        loaded = self.of_kernel(name, number)
        if loaded is None:
            return ""
        entry = loaded.entries[name]
        cluster = entry.cluster or (0, 0, 0)
        params = list(itertools.chain.from_iterable((p.offset, p.size) for p in entry.params))
        shared = loaded.kernels.shared_bytes(name, loaded.addresses)
        large = loaded.kernels.instructions(name) > _FEW_INSTRUCTIONS
        measured = KernelFigures().registers, int(large and entry.max_threads == MAX_THREADS)
        figures = [*measured, shared, entry.max_threads, *cluster, len(entry.params), *params]
        return " ".join(map(str, figures))

    def measure(self, name: str, number: int) -> str:
        """The figures of a kernel for sink_measure. Raises BrokenChannel."""
        module = self._module(number)
        if module.measured is None:
            module.measured = measured(module.texts)
        return " ".join(map(str, module.measured.get(name, KernelFigures())))

    def _module(self, number: int) -> _Module:
        if number >= len(self._all):
            raise messages.BrokenChannel
        return self._all[number]
