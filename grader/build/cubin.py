"""Reads the sections and symbols of a 64-bit ELF file; every offset is checked first.

Host objects and cubins are made from hostile text, so a file's figures are not trusted.
"""

import struct
from collections.abc import Iterator

from grader.base import KernelInfo
from ptxsim.plan import MOST_NAME, Record

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NO_DATA = 8  # SHT_NOBITS
_SYMBOLS = 2  # SHT_SYMTAB
_MAX_NAME = MOST_NAME + 64  # bytes; a section's begins with ".text." or the like
FUNCTION = 2  # STT_FUNC
UNDEFINED = 0  # SHN_UNDEF


class Damaged(ValueError):  # noqa: N818 - says what the file is
    """Not an ELF file, or one whose offsets lead outside."""


class Section(Record):
    name: str
    kind: int
    size: int  # bytes; those without data, such as .bss, have a size too
    data: memoryview
    link: int  # index of a related section


class ElfSymbol(Record):
    name: str
    kind: int  # FUNCTION, …
    other: int
    section: int  # index of the section that it stands in, or UNDEFINED


class Elf:
    """One ELF file. Raises Damaged, also while it is read."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise Damaged("not a 64-bit ELF file")
        *_, start, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
        if count and size != _SECTION.size:
            raise Damaged(f"section headers of {size} bytes")
        headers = list(_SECTION.iter_unpack(self._cut(start, count * _SECTION.size)))
        if headers and names >= count:
            raise Damaged("no section holds the names of sections")
        table = self._part(headers[names]) if headers else memoryview(b"")
        self.sections = tuple(
            Section(name=text(table, name), kind=kind, size=size, data=self._part(each), link=link)
            for each in headers
            for name, kind, _, _, _, size, link, *_ in (each,)
        )

    def symbols(self, *, undefined: bool = False) -> Iterator[tuple[int, ElfSymbol]]:
        """Every symbol with its index, or only those that another file has to define."""
        for table in self.sections:
            if table.kind != _SYMBOLS:
                continue
            if table.link >= len(self.sections):
                raise Damaged("symbols without names")
            names = self.sections[table.link].data
            whole = table.data[: len(table.data) // _SYMBOL.size * _SYMBOL.size]
            for index, (name, info, other, section, _, _) in enumerate(_SYMBOL.iter_unpack(whole)):
                if section == UNDEFINED or not undefined:
                    own = text(names, name)
                    yield index, ElfSymbol(name=own, kind=info & 15, other=other, section=section)

    def _part(self, header: tuple[int, ...]) -> memoryview:
        return memoryview(b"") if header[1] == _NO_DATA else self._cut(header[4], header[5])

    def _cut(self, start: int, size: int) -> memoryview:
        if start > len(self._data) or size > len(self._data) - start:
            raise Damaged("an offset leads outside the file")
        return self._data[start : start + size]


def text(table: memoryview, start: int) -> str:
    """The name that begins at ``start`` and ends with a zero byte."""
    if start >= len(table):
        return ""
    name = bytes(table[start : start + _MAX_NAME])
    return name.partition(b"\0")[0].decode(errors="replace")


# --- figures -----------------------------------------------------------------------------------

_ENTRY = 0x10  # STO_CUDA_ENTRY: a kernel, not a device function
_SIZED = 4  # EIFMT_SVAL: an attribute with a size and bytes; others have none
_FRAME = 0x11  # EIATTR_FRAME_SIZE: (symbol, bytes of local memory)
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
    about: dict[int, dict[int, int]] = {_REGISTERS: {}, _FRAME: {}}  # by attribute and symbol
    for kind, value in _attributes(sections.get(".nv.info")):
        if kind in about and len(value) == _PAIR.size:
            about[kind].update([_PAIR.unpack(value)])
    reserved = _RESERVED_BYTES if _RESERVED in sections else 0
    found = []
    for index, symbol in elf.symbols():
        if symbol.kind != FUNCTION or not symbol.other & _ENTRY:
            continue
        if index not in about[_REGISTERS] or symbol.section >= len(elf.sections):
            raise Damaged(f"no registers for {symbol.name}")
        shared = sections.get(f".nv.shared.{symbol.name}")
        static = max(shared.size - reserved, 0) if shared else 0
        spilled = _spilled(sections.get(f".nv.info.{symbol.name}"), elf.sections[symbol.section])
        found.append(
            KernelInfo(
                name=symbol.name,
                registers=about[_REGISTERS][index],
                shared_bytes=static,
                spill_bytes=spilled,
                local_bytes=about[_FRAME].get(index, 0),
            )
        )
    return tuple(found)


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
