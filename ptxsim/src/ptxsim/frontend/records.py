"""Parts of a PTX module: variables, functions, instructions and their source lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxsim.frontend.debug_info import DebugSection
from ptxsim.plan.records import Dim3
from ptxsim.text import Message

SIZES = {"pred": 1, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16, "f16x2": 4, "bf16x2": 4}
SIZES |= {"u16x2": 4, "s16x2": 4, "f32x2": 8}
SIZES |= {f"{kind}{bits}": bits // 8 for kind in "suf" for bits in (8, 16, 32, 64)} | {"bf16": 2}


class PtxError(Exception):
    """PTX that is not read; names its line, and the source line if known."""

    def __init__(self, message: Message, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


@dataclass(frozen=True, slots=True)
class Location:
    """A source position. ``file`` is relative to the source root, or absolute when outside it."""

    file: str
    line: int
    inside: bool  # the file is below the source root
    outside: tuple[str, ...] = ()  # files of inlined calls that do not


@dataclass(slots=True)
class Instruction:
    opcode: str  # "ld.global.v4.f32"
    operands: list[str]
    guard: str | None  # predicate register
    negate: bool
    loc: int  # index into PtxModule.locations
    row: int  # of the PTX text, from 1; of its first word


@dataclass(frozen=True, slots=True)
class Label:
    name: str


class Address(NamedTuple):
    """Address in a variable's initial value: (address of ``symbol`` + ``offset``) & ``mask``,
    shifted to the mask's lowest bit."""

    symbol: str
    offset: int = 0
    mask: int = (1 << 64) - 1


class Part(NamedTuple):
    """One of the local arrays of a function."""

    offset: int  # bytes
    size: int
    name: str = ""  # "": not known
    element: int = 0  # bytes of an element; 0: not known


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    space: str  # "global", "const", "shared", "local", "param"
    size: int  # bytes; 0 for an extern array
    align: int
    initial: tuple[tuple[int | Address, int], ...] = ()  # (bits or address, bytes) in order
    extern: bool = False
    type: str = ""  # "f32", "u64", "b8"
    parts: tuple[Part, ...] = ()  # of local memory, which belong together otherwise


@dataclass(slots=True)
class Function:
    name: str
    entry: bool
    params: list[Variable]
    returns: list[Variable]
    body: list[Instruction | Label] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)  # name → type
    families: dict[str, str] = field(default_factory=dict)  # "%r" of "%r<9>" → type
    variables: list[Variable] = field(default_factory=list)
    targets: dict[str, list[str]] = field(default_factory=dict)  # .branchtargets
    max_threads: int | None = None  # per block, as .maxntid or .reqntid says
    cluster: Dim3 | None = None  # blocks, as __cluster_dims__ says; None: each launch says it

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Yield the body without its labels."""
        return (item for item in self.body if isinstance(item, Instruction))

    def register_type(self, name: str) -> str | None:
        """The declared type of a register; None when ``name`` is no register."""
        kind = self.registers.get(name)
        if kind is None:
            kind = self.families.get(name.rstrip("0123456789"))
            if kind is not None:
                self.registers[name] = kind
        return kind


@dataclass(slots=True)
class PtxModule:
    variables: list[Variable]
    functions: dict[str, Function]
    externs: set[str]  # functions declared only
    locations: list[Location | None]
    target: int = 0  # 90 of sm_90a; 0: not said
    # The parts into which the compiler splits an array have their indices in their names.
    split_by_index: bool = False
    sections: dict[str, DebugSection] = field(default_factory=dict)  # for debuggers
    private: set[str] = field(default_factory=set)  # what other modules cannot name
