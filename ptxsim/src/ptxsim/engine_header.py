"""The types that Python shares with the engine, and the C++ header that declares them.

``python -m ptxsim.engine_header`` writes the header after a change of these, of an event, or of
operation.py's tables. It is checked in, so that whoever reads the engine's C++ finds its types;
an engine compiled with another one is not loaded.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ptxsim.findings.event_table import Event
from ptxsim.lowering.operation import (
    FLAG_BITS,
    FUNCTION_STEP,
    ORDER_BITS,
    SPACES,
    SPECIAL_REGISTERS,
)
from ptxsim.plan.limits import LIMITS
from ptxsim.plan.records import POISONS

HEADER = Path(__file__).parent / "engine" / "shared.hpp"
# Statuses that a call of the engine returns.
_STATUS = ("RAN", "OUT_OF_TIME", "DEADLOCKED", "TRAPPED", "NO_MEMORY", "TOO_LARGE", "REFUSED")
TEXTURE_MAGIC = int.from_bytes(b"texture!", "little")
RAN, OUT_OF_TIME, DEADLOCK, TRAPPED, NO_MEMORY, TOO_LARGE, REFUSED = range(len(_STATUS))

# The fields of each record, as the header has them.
_RECORDS = {
    "PackedIns": """
  i32 operation;
  i32 o[8];
  i32 pool;  // index into the pool, -1: none
  i64 imm;
  i16 guard;
  u8 negate, width, vec, space, flags, dwidth;
""",
    "Preset": """
  u32 slot, width;
  u64 value;
""",
    "SharedArray": """
  u32 start, size;
""",
    # Counts of a program's run, for each instruction.
    "FlowCount": """
  u64 warps, lanes;
  u64 splits;  // jumps that some lanes of a group followed and others did not
""",
    "MemoryCount": """
  u64 requests;
  u64 cost;  // sectors or wavefronts
  u64 bytes;
  // When sampling: the cost if each lane moved 8 or 16 aligned bytes round its address, as when
  // ptxas merges neighbouring accesses; of shared memory the same had it no bank conflicts; lines
  // of 128 bytes in global memory.
  u64 cost8, cost16, passes8, passes16, lines;
  u64 zeros;  // wavefronts of the copies of which some lanes bring no bytes
""",
    # Where the lanes of an access went: to shared memory, in the execution with the most bank
    # conflicts; to global memory, in the first one of the most lanes, and between which bytes in
    # all of them.
    "Pattern": """
  u64 low, high;
  u32 mask;
  u32 extra;   // wavefronts that conflicts add at 4, 8 and 16 bytes together
  u32 at[32];  // shared addresses; in global memory bytes from a line of 128 bytes
""",
    # A texture object, at the address that serves as its handle, or a surface object.
    "Texture": """
  u64 magic, address;
  u32 extents[3];  // texels; 1 beyond its dimensions
  u32 layers;      // 0: it has none
  u32 pitch;       // bytes from one row to the next; planes and layers follow one another
  u8 dimensions, channels;
  u8 element, type;  // of a channel: its bytes; unsigned, signed or floating
  u8 modes[3];       // along each dimension, as AddressMode numbers them
  u8 linear, normalized, reads_normalized, surface;
""",
    # One finding before it becomes a sentence.
    "Event": """
  u32 kind, pc, other_pc, space;
  u64 address, count;
  i64 region;  // allocation or shared array; -1: none
  u64 region_start, region_size;
  i64 details[4];  // of some kinds, in the order of their record in findings/details.py
  u32 size, write, other_write, same_value;
  Dim block, thread, other_block, other_thread;
  u32 calls[8];  // that lead to pc, innermost first; 0: none
""",
    # What a launch wrote to a watched element.
    "Write": """
  u32 element, pc, width;
  u32 unwritten;   // nobody had written it before
  u32 definition;  // the instruction that computed the value; ~0: not known
  u32 inputs;      // of that instruction, as far as known
  u64 before, after;
  u64 values[3];   // of the inputs
  u64 sources[3];  // where they were loaded from: a generic address, and from bit 60 on log2(bytes)
  Dim block, thread;
""",
    "PackedProgram": """
  const PackedIns* code;
  u64 length;
  const i32* pool;
  u64 pool_length;
  const Preset* constants;
  u64 constants_length;
  const i32* special;  // SPECIALS entries
  const SharedArray* arrays;
  u64 arrays_length;
  const SharedArray* private_ranges;
  u64 private_length;
  const u32* reach;  // one row of bits per rank
  u64 ranks;
  u32 slots, predicates, entry, local_bytes, shared_bytes, shared_cell, global_cell, reserved_bytes;
  const u64* own_arrays;  // one for each instruction
  const u8* extern_arrays;  // the same; where there are several
  u64 externs;
""",
}
_FIELDS = re.compile(r"(const \w+\*|\w+) ([\w, \[\]]+);")
_SCALAR = re.compile(r"([ui])(\d+)")


def _fields(text: str) -> Iterator[tuple[str, str, int]]:
    """Name, NumPy's type and the count of each field."""
    for kind, names in _FIELDS.findall(re.sub("//.*", "", text)):
        scalar = _SCALAR.fullmatch("u32" if kind == "Dim" else "u64" if "*" in kind else kind)
        assert scalar, kind
        for name, _, count in (each.strip().partition("[") for each in names.split(",")):
            copies = 3 if kind == "Dim" else int(count.rstrip("]") or 1)
            yield name, f"{scalar[1]}{int(scalar[2]) // 8}", copies


DTYPES = tuple(
    np.dtype([field[: 2 + (field[2] > 1)] for field in _fields(text)], align=True)
    for text in _RECORDS.values()
)
INSTRUCTION, PRESET, ARRAY, FLOW, MEMORY, PATTERN, TEXTURE, EVENT, WRITE, PROGRAM = DTYPES


def header() -> str:
    """Return the header's text."""
    registers = [name[1:].replace(".", "_").upper() for name in SPECIAL_REGISTERS]
    parts = [
        _enumeration("Space : u8", [*SPACES, "SPACES"]),
        _enumeration("Status : int", _STATUS),
        _enumeration("EventKind : u32", [event.name for event in Event]),
        _enumeration("SpecialRegister", [*registers, "SPECIALS"]),
        _constants("u32", LIMITS) + "  // CUDA's",
        _constants("u32", {"POISON": POISONS[0]}) + "  // what never-written memory reads as",
        _constants("u64", {"TEXTURE_MAGIC": TEXTURE_MAGIC}) + "  // of a Texture",
        _constants("u32", {"FUNCTION_STEP": FUNCTION_STEP}) + "  // bytes between their addresses",
        _constants("u8", FLAG_BITS) + "  // Ins::flags",
        _constants("i32", ORDER_BITS) + "  // Ins::order()",
        *(
            f"struct {name} {{{fields}}};\nstatic_assert(sizeof({name}) == {dtype.itemsize});"
            for (name, fields), dtype in zip(_RECORDS.items(), DTYPES, strict=True)
        ),
    ]
    body = "\n\n".join(parts)
    return f"""\
// What Python shares with the engine. `python -m ptxsim.engine_header` writes it.
// clang-format off
#pragma once

#include "types.hpp"

namespace sim {{

{body}

constexpr const char* LAYOUT = "{hashlib.sha256(body.encode()).hexdigest()[:16]}";

}}  // namespace sim
"""


def fields(record: str) -> str:
    """The fields of a record as C++, on one line."""
    return " ".join(line.partition("//")[0].strip() for line in _RECORDS[record].splitlines())


def _enumeration(name: str, members: Iterable[str]) -> str:
    return f"enum {name} {{\n" + "".join(f"  {member},\n" for member in members) + "};"


def _constants(kind: str, values: Mapping[str, int]) -> str:
    named = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"constexpr {kind} {named};"


if __name__ == "__main__":
    HEADER.write_text(header())
