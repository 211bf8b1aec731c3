"""The interpreter library through ctypes: its operations, its records, its calls.

Layouts here mirror headers of engine/; ``load_engine`` compares every field and constant with the
library's own list (engine/layout.cpp).
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ptxsim.errors import EngineError
from ptxsim.findings.finding import Event
from ptxsim.lowering.operation import FLAG_BITS, SPACES, SPECIAL_REGISTERS

ENGINE = Path(__file__).parent / "engine"  # its C++
FLAGS = (
    "-std=c++20",
    "-O2",
    "-ftree-vectorize",
    "-march=native",
    "-ffp-contract=off",  # only fma may fuse
    "-fno-math-errno",
    "-fvisibility=hidden",
)

INSTRUCTION = np.dtype(
    [
        ("operation", "i4"),
        ("o", "i4", 8),
        ("pool", "i4"),
        ("imm", "i8"),
        ("guard", "i2"),
        ("negate", "u1"),
        ("width", "u1"),
        ("vec", "u1"),
        ("space", "u1"),
        ("flags", "u1"),
        ("dwidth", "u1"),
    ]
)
PRESET = np.dtype([("slot", "u4"), ("width", "u4"), ("value", "u8")])
ARRAY = np.dtype([("start", "u4"), ("size", "u4")])
FLOW = np.dtype([("warps", "u8"), ("lanes", "u8"), ("splits", "u8")])
_COUNTS = ("requests", "cost", "bytes", "cost8", "cost16", "passes8", "passes16", "lines", "zeros")
MEMORY = np.dtype([(name, "u8") for name in _COUNTS])
PATTERN = np.dtype([("mask", "u4"), ("extra", "u4"), ("at", "u4", 32)])
_DIM = ("u4", 3)
EVENT = np.dtype(
    [
        ("kind", "u4"),
        ("pc", "u4"),
        ("other_pc", "u4"),
        ("space", "u4"),
        ("address", "u8"),
        ("count", "u8"),
        ("region", "i8"),
        ("region_start", "u8"),
        ("region_size", "u8"),
        ("size", "u4"),
        ("write", "u4"),
        ("other_write", "u4"),
        ("same_value", "u4"),
        ("block", *_DIM),
        ("thread", *_DIM),
        ("other_block", *_DIM),
        ("other_thread", *_DIM),
        ("arrived", "u4"),
        ("expected", "u4"),
        ("mask", "u4"),
        ("lanes", "u4"),
    ]
)


class PackedProgram(ctypes.Structure):
    _fields_ = (
        ("code", c_void_p),
        ("length", c_uint64),
        ("pool", c_void_p),
        ("pool_length", c_uint64),
        ("constants", c_void_p),
        ("constants_length", c_uint64),
        ("special", c_void_p),
        ("arrays", c_void_p),
        ("arrays_length", c_uint64),
        ("private_ranges", c_void_p),
        ("private_length", c_uint64),
        ("reach", c_void_p),
        ("ranks", c_uint64),
        ("slots", c_uint32),
        ("predicates", c_uint32),
        ("entry", c_uint32),
        ("local_bytes", c_uint32),
        ("shared_bytes", c_uint32),
        ("shared_cell", c_uint32),
        ("global_cell", c_uint32),
        ("reserved_bytes", c_uint32),
    )


_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "sim_operations": (c_int, []),
    "sim_operation": (c_char_p, [c_int]),
    "sim_operation_shape": (c_char_p, [c_int]),
    "sim_layout": (c_char_p, []),
    "sim_program": (c_int, [POINTER(PackedProgram), POINTER(c_void_p), POINTER(c_uint64)]),
    "sim_program_free": (None, [c_void_p]),
    "sim_machine": (c_void_p, []),
    "sim_machine_free": (None, [c_void_p]),
    "sim_sample": (None, [c_void_p, c_uint64, c_uint64]),
    "sim_region": (c_int, [c_void_p, c_uint64, c_uint64, c_void_p, c_int, c_uint32]),
    "sim_define": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64, c_uint32]),
    "sim_undefine": (c_int, [c_void_p, c_uint64]),
    "sim_resize": (c_int, [c_void_p, c_uint64, c_uint64]),
    "sim_cluster": (None, [c_void_p, POINTER(c_uint32)]),
    "sim_tensor_map": (
        c_char_p,
        [
            c_void_p,
            c_uint32,
            c_uint32,
            c_uint64,
            POINTER(c_uint64),
            POINTER(c_uint64),
            POINTER(c_uint32),
            POINTER(c_uint32),
            POINTER(c_uint32),
        ],
    ),
    "sim_first_look": (c_int, [c_void_p, c_uint64]),
    "sim_second_look": (c_int, [c_void_p]),
    "sim_undo_looks": (None, [c_void_p]),
    "sim_trace": (None, [c_void_p, c_int]),
    "sim_follows": (None, [c_void_p, c_int]),
    "sim_uses": (c_uint64, [c_void_p, c_uint64, POINTER(c_void_p)]),
    "sim_launch": (
        c_int,
        [
            c_void_p,
            c_void_p,
            POINTER(c_uint32),
            POINTER(c_uint32),
            c_uint32,
            POINTER(c_uint8),
            c_uint64,
            c_uint64,
            c_double,
            c_uint64,
            c_uint32,
            c_uint64,
        ],
    ),
    "sim_events": (c_uint64, [c_void_p]),
    "sim_event": (c_void_p, [c_void_p]),
    "sim_clear_events": (None, [c_void_p]),
    "sim_printed": (c_char_p, [c_void_p]),
    "sim_blocks": (c_void_p, [c_void_p]),
    "sim_guarded": (c_void_p, [c_void_p]),
    "sim_memory": (c_void_p, [c_void_p]),
    "sim_source": (c_void_p, [c_void_p]),
    "sim_patterns": (c_void_p, [c_void_p]),
    "sim_shared_wavefronts": (c_uint32, [c_void_p, c_uint32, c_uint32]),
}


# Statuses that a call of the engine returns.
_STATUS = ("RAN", "OUT_OF_TIME", "DEADLOCKED", "TRAPPED", "NO_MEMORY", "TOO_LARGE", "REFUSED")
RAN, OUT_OF_TIME, DEADLOCK, TRAPPED, NO_MEMORY, TOO_LARGE, REFUSED = range(len(_STATUS))
_RECORDS = {
    "PackedIns": INSTRUCTION,
    "Preset": PRESET,
    "SharedArray": ARRAY,
    "FlowCount": FLOW,
    "MemoryCount": MEMORY,
    "Pattern": PATTERN,
    "Event": EVENT,
}


@dataclass(frozen=True)
class Engine:
    library: ctypes.CDLL
    operations: dict[str, int]  # name → number
    shapes: dict[str, str]  # name → the operands it takes, as operations.hpp writes them


def engine_sources() -> tuple[Path, ...]:
    return tuple(sorted(ENGINE.rglob("*.cpp")))


def build_engine(target: Path, compiler: str = "g++") -> Path:
    """Compile the interpreter to ``target``. Raises EngineError."""
    command = [compiler, *FLAGS, "-fPIC", "-shared", "-o", str(target)]
    done = subprocess.run(
        [*command, *map(str, engine_sources())], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise EngineError(f"{compiler} cannot compile the simulator: {done.stderr.strip()[:500]}")
    return target


@cache
def load_engine(path: Path) -> Engine:
    """The interpreter that was compiled to ``path``. Raises EngineError."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    check_layout(library.sim_layout().decode())
    numbers = range(library.sim_operations())
    names = [library.sim_operation(k).decode() for k in numbers]
    shapes = [library.sim_operation_shape(k).decode() for k in numbers]
    return Engine(
        library,
        dict(zip(names, numbers, strict=True)),
        dict(zip(names, shapes, strict=True)),
    )


def layout() -> Iterator[str]:
    """Every field and constant that the engine shares with us, as layout.cpp writes them."""
    for name, dtype in _RECORDS.items():
        yield f"{name} {dtype.itemsize}"
        for field, (kind, offset, *_) in (dtype.fields or {}).items():
            yield f"{name}.{field} {offset} {kind.itemsize}"
    yield f"PackedProgram {ctypes.sizeof(PackedProgram)}"
    for field, _ in PackedProgram._fields_:
        place = getattr(PackedProgram, field)
        yield f"PackedProgram.{field} {place.offset} {place.size}"
    yield from (f"Flag.{name} {value}" for name, value in FLAG_BITS.items())
    registers = (name[1:].replace(".", "_").upper() for name in SPECIAL_REGISTERS)
    groups = {
        "Space": SPACES,
        "EventKind": Event.__members__,
        "Status": _STATUS,
        "SpecialRegister": registers,
    }
    for group, names in groups.items():
        yield from (f"{group}.{name} {value}" for value, name in enumerate(names))


def check_layout(described: str) -> None:
    """Raises EngineError that names the difference."""
    own, theirs = list(layout()), described.splitlines()
    wrong = sorted(set(own) ^ set(theirs))
    if wrong or len(own) != len(theirs):
        what = ", ".join(wrong[:4]) or "a name occurs twice"
        words = f"the simulator's library and its Python side disagree ({what}): reinstall"
        raise EngineError(words)


def view(address: int, dtype: np.dtype, count: int) -> np.ndarray:
    """A copy of ``count`` records at ``address`` in the engine's memory."""
    if not count:
        return np.empty(0, dtype)
    raw = ctypes.string_at(address, dtype.itemsize * count)
    return np.frombuffer(raw, dtype)
