"""The figures of every kernel, read from the cubin.

ptxas also prints them (``-v``), but PTX can make it print other lines: it repeats a pragma that it
does not know as it stands, line breaks included. The cubin holds nothing but what ptxas wrote:

- ``.nv.info`` holds the registers of every function,
- ``.nv.shared.NAME`` is as long as the kernel's static shared memory,
- ``.nv.info.NAME`` lists the addresses of the loads and stores that spill registers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from grader.compile.elf import FUNCTION, Damaged, Elf, Section
from grader.model import KernelInfo

_ENTRY = 0x10  # STO_CUDA_ENTRY: a kernel, not a device function
_SIZED = 4  # EIFMT_SVAL: an attribute with a size and bytes; others have none
_REGISTERS = 0x2F  # EIATTR_REGCOUNT: (symbol, registers)
_NOTES = 0x55  # EIATTR_ANNOTATIONS: (what, address) …
_SPILL = 1
_WIDTHS = (1, 1, 2, 2, 4, 8, 16, 0)  # bytes, by bits 73 to 75 of a load or store
_RESERVED = ".nv.shared.reserved.0"  # there when static shared memory begins behind the system's
_RESERVED_BYTES = 1024  # from Hopper on
_PAIR = struct.Struct("<II")
_INSTRUCTION = struct.Struct("<QQ")


def kernels(cubin: bytes) -> tuple[KernelInfo, ...]:
    """Every __global__ function of a cubin for Volta or later. Raises Damaged."""
    elf = Elf(cubin)
    sections = {section.name: section for section in elf.sections}
    registers = dict(_registers(sections.get(".nv.info")))
    reserved = _RESERVED_BYTES if _RESERVED in sections else 0
    found = []
    for index, symbol in elf.symbols():
        if symbol.kind != FUNCTION or not symbol.other & _ENTRY:
            continue
        if index not in registers or symbol.section >= len(elf.sections):
            raise Damaged(f"no registers for {symbol.name}")
        shared = sections.get(f".nv.shared.{symbol.name}")
        found.append(
            KernelInfo(
                name=symbol.name,
                registers=registers[index],
                shared_bytes=max(shared.size - reserved, 0) if shared else 0,
                spill_bytes=_spilled(
                    sections.get(f".nv.info.{symbol.name}"), elf.sections[symbol.section]
                ),
            )
        )
    return tuple(found)


def _registers(info: Section | None) -> Iterator[tuple[int, int]]:
    for kind, value in _attributes(info):
        if kind == _REGISTERS and len(value) == _PAIR.size:
            yield _PAIR.unpack(value)


def _spilled(info: Section | None, code: Section) -> int:
    """Bytes that the spilling instructions of one kernel move."""
    moved = 0
    for kind, value in _attributes(info):
        if kind != _NOTES:
            continue
        for what, address in _PAIR.iter_unpack(value[: len(value) // _PAIR.size * _PAIR.size]):
            if what != _SPILL:
                continue
            if address + _INSTRUCTION.size > len(code.data):
                raise Damaged(f"{code.name} has no instruction at {address:#x}")
            _, high = _INSTRUCTION.unpack_from(code.data, address)
            moved += _WIDTHS[high >> 9 & 7]
    return moved


def _attributes(info: Section | None) -> Iterator[tuple[int, memoryview]]:
    data = info.data if info else memoryview(b"")
    at = 0
    while at + 4 <= len(data):
        sized, kind = data[at] == _SIZED, data[at + 1]
        size = int.from_bytes(data[at + 2 : at + 4], "little") if sized else 0
        yield kind, data[at + 4 : at + 4 + size]
        at += 4 + size
