"""Where the variables of a kernel and of the functions it calls lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptxsim.errors import Reason, RefusedProgram
from ptxsim.frontend import LIBRARY_CALLS, Function, Instruction, Module, Variable
from ptxsim.lowering.operation import Constant, UnsupportedInstruction
from ptxsim.message import Message, phrase

RED_ZONE = (
    128  # bytes between shared arrays; a multiple of the 32 banks keeps conflicts as they are
)
_WINDOW = 1024  # bytes: a multiple of it is where a GPU's window of shared memory begins
PRIVATE_GAP = 16  # bytes between a function's local arrays and whatever lies next to them
_RETURN_ADDRESS = 8  # bytes
# Where CUDA keeps shared memory for cooperative_groups, and how many bytes the groups may use. What
# it holds when a block begins is not said.
_RESERVED, _RESERVED_BYTES = "%reserved_smem_offset_1", 288
_MOST_ALIGN = 1 << 16
_MOST_LOCAL = 512 << 10  # bytes per thread, as CUDA has it; limits.hpp has the same
_MOST_SHARED = 1 << 20  # bytes of static arrays, more than any GPU has; limits.hpp has the same


@dataclass(frozen=True)
class SharedArrayInfo:
    name: str
    start: int  # simulated shared address
    size: int  # bytes; 0 for the dynamic array, whose size the launch gives


@dataclass(frozen=True)
class LocalMemory:
    """The local arrays of one function, which PTX declares as one."""

    function: str  # mangled
    start: int  # lane-private address
    size: int  # bytes

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


def align_up(value: int, to: int) -> int:
    return (value + to - 1) // to * to


def too_large(what: Message | str, of: Message) -> RefusedProgram:
    why = phrase("{what} has more {of} than the simulator takes", what=what, of=of)
    return RefusedProgram(Reason.TOO_LARGE, why)


def callees(function: Function) -> list[str]:
    """The names that its calls give, whether or not there are such functions."""
    calls = (c for c in function.body if isinstance(c, Instruction) and _is_call(c))
    places = ((call, _callee_at(call)) for call in calls)
    return [call.operands[at] for call, at in places if at is not None]


def _is_call(item: Instruction) -> bool:
    return item.opcode.split(".")[0] == "call"


def _callee_at(call: Instruction) -> int | None:
    """Which operand names the function: the first that is no list in parentheses."""
    named = (at for at, text in enumerate(call.operands) if text and text[0] != "(")
    return next(named, None)


class Layout:
    """Where the variables of a kernel and its functions lie: shared, lane-private, parameters."""

    def __init__(
        self, module: Module, functions: list[Function], globals_: Mapping[str, int]
    ) -> None:
        self.module_symbols = {n: Constant(a, 8) for n, a in globals_.items()}
        self.arrays: list[SharedArrayInfo] = []
        self.local_bytes = 0
        self.locals: list[LocalMemory] = []
        self.private: list[tuple[int, int]] = []  # (start, size) of everything lane-private
        self.param_offsets: dict[str, int] = {}
        self.frames: dict[str, Frame] = {f.name: Frame() for f in functions}
        self.functions = {f.name: f for f in functions}
        self.param_bytes = 0
        self.reserved_bytes = _RESERVED_BYTES if any(map(_uses_reserved, functions)) else 0
        _check_alignment([*module.variables, *(v for f in functions for v in _declared(f))])
        self.formals: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        self._shared(module, functions)
        for function in functions:
            self._storage(function)
        for name, count in LIBRARY_CALLS.items():
            self.formals[name] = [self._private(8, 8) for _ in range(count)]
            self.results[name] = [self._private(8, 8)]
        if self.local_bytes > _MOST_LOCAL:
            raise too_large(
                functions[0].name,
                phrase("local memory per thread ({size} bytes)", size=self.local_bytes),
            )
        if self.arrays[-1].start > _MOST_SHARED:
            shared = phrase("shared memory ({size} bytes)", size=self.arrays[-1].start)
            raise too_large(functions[0].name, shared)

    def _shared(self, module: Module, functions: list[Function]) -> None:
        variables = [v for v in module.variables if v.space == "shared"]
        variables += [v for f in functions for v in f.variables if v.space == "shared"]
        if self.reserved_bytes:
            variables.insert(0, Variable(_RESERVED, "shared", self.reserved_bytes, 16))
        packed = zones = 0
        for variable in (v for v in variables if v.size):
            packed = align_up(packed, variable.align)
            zones = align_up(zones + RED_ZONE, variable.align)
            start = packed + zones
            self.arrays.append(SharedArrayInfo(variable.name, start, variable.size))
            packed += variable.size
        dynamic = [v for v in variables if not v.size]
        packed = align_up(packed, max([16, *(v.align for v in dynamic)]))
        # On a GPU it begins where the static arrays end, in a window that begins at a multiple of
        # 1024: without static arrays that is what swizzled tiles need.
        zones = align_up(zones + RED_ZONE, max([_WINDOW, *(v.align for v in dynamic)]))
        start = packed + zones
        for variable in dynamic:
            self.module_symbols[variable.name] = Constant(start, 8)
        name = dynamic[0].name if dynamic else "dynamic shared memory"
        for array in self.arrays:
            self.module_symbols[array.name] = Constant(array.start, 8)
        self.arrays.append(SharedArrayInfo(name, start, 0))

    def _private(self, size: int, align: int) -> int:
        start = align_up(self.local_bytes + PRIVATE_GAP, max(align, 16))
        self.local_bytes = start + size
        self.private.append((start, size))
        return start

    def _storage(self, function: Function) -> None:
        frame_start = align_up(self.local_bytes, 16)
        if function.entry:
            offset = 0
            for param in function.params:
                offset = align_up(offset, param.align)
                self.param_offsets[param.name] = offset
                offset += param.size
            self.param_bytes = offset
        else:
            self.formals[function.name] = [self._private(p.size, p.align) for p in function.params]
        for variable in function.variables:
            if variable.space == "local":
                if variable.size > _MOST_LOCAL:
                    raise RefusedProgram(
                        Reason.UNSOUND,
                        phrase(
                            "{function} has {size} bytes of local memory per thread in one array; "
                            "CUDA allows {most}",
                            function=function.name,
                            size=variable.size,
                            most=_MOST_LOCAL,
                        ),
                    )
                start = self._private(variable.size, variable.align)
                self.locals.append(LocalMemory(function.name, start, variable.size))
                self.module_symbols[f"{function.name}/{variable.name}"] = Constant(start, 8)
        self.frames[function.name].local = (frame_start, self.local_bytes)
        self.results[function.name] = [self._private(r.size, r.align) for r in function.returns]

    def stack_bytes(self, function: Function) -> int:
        """What a call of ``function`` takes of a thread's stack at least: its local arrays and the
        address to return to. How many registers ptxas saves there is not known."""
        return _RETURN_ADDRESS + sum(v.size for v in function.variables if v.space == "local")

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
        names["vprintf#2"] = Constant(self.results["vprintf"][0], 8)
        self._call_parameters(function, names)
        return names

    def _call_parameters(self, function: Function, names: dict[str, Constant]) -> None:
        """A call sequence's .param variables are the callee's own parameter storage."""
        for item in function.body:
            if not isinstance(item, Instruction) or not _is_call(item):
                continue
            place = _callee_at(item)
            if place is None:
                raise UnsupportedInstruction.form(item)
            callee = item.operands[place]
            if callee not in self.formals:
                raise UnsupportedInstruction(item, _unknown_callee(callee))
            groups = (
                (item.operands[:place], self.results),
                (item.operands[place + 1 :], self.formals),
            )
            for texts, storage in groups:
                given = [a.strip() for t in texts for a in t.strip("()").split(",") if a.strip()]
                for name, offset in zip(given, storage[callee], strict=False):
                    names[name] = Constant(offset, 8)


def _uses_reserved(function: Function) -> bool:
    items = (item for item in function.body if isinstance(item, Instruction))
    return any(_RESERVED in item.operands for item in items)


def _declared(function: Function) -> list[Variable]:
    return [*function.params, *function.returns, *function.variables]


def _check_alignment(variables: list[Variable]) -> None:
    for variable in variables:
        align = variable.align
        if variable.size < 0 or not 0 < align <= _MOST_ALIGN or align & (align - 1):
            raise RefusedProgram(
                Reason.UNREADABLE,
                f"{variable.name} is aligned to {align} bytes, which is no power of two up to "
                f"{_MOST_ALIGN}",
            )


def _unknown_callee(callee: str) -> Message:
    if callee[0] == "%":
        return phrase("calls through function pointers and virtual functions are not simulated")
    return phrase("the device function {name} is not simulated", name=callee)


def _named(variables: list[Variable], places: list[int]) -> dict[str, Constant]:
    return {v.name: Constant(p, 8) for v, p in zip(variables, places, strict=True)}
