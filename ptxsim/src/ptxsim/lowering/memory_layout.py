"""Variables of a kernel and of the functions it calls: where they lie, and their first values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxsim.findings.names import plain_name
from ptxsim.frontend.interface import laid_out
from ptxsim.frontend.module import SIMULATED_CALLS
from ptxsim.frontend.records import SIZES, Address, Function, Instruction, Part, PtxModule, Variable
from ptxsim.lowering.operation import Constant, UnsupportedInstruction
from ptxsim.lowering.shared_arrays import align_up, lay_out_shared
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.plan.limits import MAX_LOCAL_BYTES
from ptxsim.text import Message, phrase

PRIVATE_GAP = 16  # bytes between a function's local arrays and whatever lies next to them
_RETURN_ADDRESS = 8  # bytes
_MOST_ALIGN = 1 << 16
_MOST_SHARED = 1 << 20  # bytes of static arrays, more than any GPU has; limits.hpp has the same


@dataclass(frozen=True)
class LocalMemory:
    """A local array, or those of one function together, as PTX declares them."""

    function: str  # mangled
    start: int  # lane-private address
    size: int  # bytes
    name: str = ""  # of the array, where it is known
    element: int = 0  # bytes of an element of that

    def distance(self, address: int) -> int:
        """How many bytes ``address`` lies before the start or past the last byte."""
        return max(self.start - address, address - (self.start + self.size - 1), 0)


@dataclass
class Frame:
    """Slots, predicates and lane-private bytes of one function, for recursive calls."""

    wide: tuple[int, int] = (0, 0)
    narrow: tuple[int, int] = (0, 0)
    predicates: tuple[int, int] = (0, 0)
    local: tuple[int, int] = (0, 0)


def too_large(what: Message | str, of: Message) -> RefusedProgram:
    why = phrase("{what} has more {of} than the simulator takes", what=what, of=of)
    return RefusedProgram(Reason.TOO_LARGE, why)


def callees(function: Function) -> list[str]:
    """The names that its calls give, whether or not there are such functions."""
    places = ((item, callee_at(item)) for item in function.instructions if is_call(item))
    return [call.operands[at] for call, at in places if at is not None]


def is_call(item: Instruction) -> bool:
    return item.opcode.split(".")[0] == "call"


def callee_at(call: Instruction) -> int | None:
    """Return the place of the operand that names the function: the first that is no list in
    parentheses."""
    named = (at for at, text in enumerate(call.operands) if text and text[0] != "(")
    return next(named, None)


def listed(texts: Sequence[str]) -> list[str]:
    """The names in lists in parentheses."""
    return [a.strip() for text in texts for a in text.strip("()").split(",") if a.strip()]


class MemoryLayout:
    """Where the variables of a kernel and its functions lie: shared, lane-private, parameters."""

    def __init__(
        self, module: PtxModule, functions: list[Function], globals_: Mapping[str, int]
    ) -> None:
        self.module_symbols = {n: Constant(a, 8) for n, a in globals_.items()}
        self.local_bytes = 0
        self.locals: list[LocalMemory] = []
        self.private: list[tuple[int, int]] = []  # (start, size) of everything lane-private
        self.param_offsets: dict[str, int] = {}
        self.frames: dict[str, Frame] = {f.name: Frame() for f in functions}
        self.functions = {f.name: f for f in functions}
        self.param_bytes = 0
        own = (v for f in functions for v in (*f.params, *f.returns, *f.variables))
        _check_alignment([*module.variables, *own])
        self.formals: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        self.shared = lay_out_shared(module, functions)
        self.module_symbols |= {n: Constant(a, 8) for n, a in self.shared.addresses.items()}
        for function in functions:
            self._storage(function)
        for name, count in SIMULATED_CALLS.items():
            self.formals[name] = [self._private(8, 8) for _ in range(count)]
            self.results[name] = [self._private(8, 8)]
        if self.local_bytes > MAX_LOCAL_BYTES:
            raise too_large(
                plain_name(functions[0].name),
                phrase("local memory per thread ({size} bytes)", size=self.local_bytes),
            )
        if self.shared.end > _MOST_SHARED:
            shared = phrase("shared memory ({size} bytes)", size=self.shared.end)
            raise too_large(plain_name(functions[0].name), shared)

    def _private(self, size: int, align: int) -> int:
        start = align_up(self.local_bytes + PRIVATE_GAP, max(align, 16))
        self.local_bytes = start + size
        self.private.append((start, size))
        return start

    def _storage(self, function: Function) -> None:
        frame_start = align_up(self.local_bytes, 16)
        if function.entry:
            for param, at in zip(function.params, laid_out(function.params), strict=True):
                self.param_offsets[param.name] = at.offset
                self.param_bytes = at.offset + at.size
        else:
            self.formals[function.name] = [self._private(p.size, p.align) for p in function.params]
        for variable in function.variables:
            if variable.space == "local":
                if variable.size > MAX_LOCAL_BYTES:
                    raise RefusedProgram(
                        Reason.UNSOUND,
                        phrase(
                            "{function} has {size} bytes of local memory per thread in one array; "
                            "CUDA allows {most}",
                            function=plain_name(function.name),
                            size=variable.size,
                            most=MAX_LOCAL_BYTES,
                        ),
                    )
                start = self._private(variable.size, variable.align)
                parts = variable.parts or (Part(0, variable.size),)
                self.private[-1:] = [(start + part.offset, part.size) for part in parts]
                self.locals += [
                    LocalMemory(function.name, start + offset, size, name, element)
                    for offset, size, name, element in parts
                ]
                self.module_symbols[f"{function.name}/{variable.name}"] = Constant(start, 8)
        self.frames[function.name].local = (frame_start, self.local_bytes)
        self.results[function.name] = [self._private(r.size, r.align) for r in function.returns]

    def stack_bytes(self, function: Function) -> int:
        """Return the least stack that a call of ``function`` takes of a thread: its local arrays
        and the address to return to. How many registers ptxas saves there is not known."""
        own = [v for v in function.variables if v.space == "local"]
        return _RETURN_ADDRESS + sum(
            sum(part.size for part in v.parts) if v.parts else v.size for v in own
        )

    def symbols(self, function: Function) -> dict[str, Constant]:
        """Names this function may use as addresses."""
        names = dict(self.module_symbols)
        prefix = f"{function.name}/"
        names |= {k.removeprefix(prefix): v for k, v in names.items() if k.startswith(prefix)}
        if function.entry:
            names |= {n: Constant(o, 8) for n, o in self.param_offsets.items()}
        else:
            names |= _named(function.params, self.formals[function.name])
        names |= _named(function.returns, self.results[function.name])
        for name, places in self.formals.items():
            names |= {f"{name}#{k}": Constant(place, 8) for k, place in enumerate(places)}
        for name in SIMULATED_CALLS:
            names[f"{name}#result"] = Constant(self.results[name][0], 8)
        self._call_parameters(function, names)
        return names

    def _call_parameters(self, function: Function, names: dict[str, Constant]) -> None:
        """A call sequence's .param variables are the callee's own parameter storage."""
        passed = {each.name for each in function.variables if each.space == "param"}
        for item in filter(is_call, function.instructions):
            place = callee_at(item)
            if place is None:
                raise UnsupportedInstruction.form(item)
            callee = item.operands[place]
            if function.register_type(callee) is not None:  # what it passes is not declared
                raise UnsupportedInstruction.form(item)
            if callee not in self.formals:
                why = phrase("the device function {name} is not simulated", name=callee)
                raise UnsupportedInstruction(item, why)
            groups = (
                (item.operands[:place], self.results),
                (item.operands[place + 1 :], self.formals),
            )
            for texts, storage in groups:
                given = listed(texts)
                if not passed.issuperset(given):  # registers, constants
                    raise UnsupportedInstruction.form(item)
                for name, offset in zip(given, storage[callee], strict=False):
                    names[name] = Constant(offset, 8)


def _check_alignment(variables: list[Variable]) -> None:
    for variable in variables:
        align = variable.align
        if variable.size < 0 or not 0 < align <= _MOST_ALIGN or align & (align - 1):
            raise RefusedProgram(
                Reason.UNREADABLE,
                f"{variable.name} is aligned to {align} bytes, which is no power of two up to "
                f"{_MOST_ALIGN}",
            )


def _named(variables: list[Variable], places: list[int]) -> dict[str, Constant]:
    return {v.name: Constant(p, 8) for v, p in zip(variables, places, strict=True)}


def cells(module: PtxModule) -> tuple[int, int]:
    """Bytes per shadow cell of shared and of global memory: the narrowest access decides, so that
    neighbouring halves written by two threads are not taken for a race."""
    shared = everywhere = 4
    for function in module.functions.values():
        for item in function.instructions:
            words = item.opcode.split(".")
            if words[0] in ("suld", "sust"):
                everywhere = min(everywhere, SIZES.get(words[-2], 4))
            if not item.opcode.startswith(("ld", "st", "atom", "red.")):
                continue
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
    if value.symbol not in addresses:
        return 0
    lowest = (value.mask & -value.mask).bit_length() - 1
    return ((addresses[value.symbol] + value.offset) & value.mask) >> lowest
