"""Reads the sections and symbols of a 64-bit ELF file; every offset is checked first.

Host objects and cubins are made from hostile text, so a file's figures are not trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from grader.model import Record

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NO_DATA = 8  # SHT_NOBITS
_SYMBOLS = 2  # SHT_SYMTAB
_MAX_NAME = 4096  # bytes
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


class Symbol(Record):
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
        *_, size, count, names = _HEADER.unpack_from(data)
        start = _HEADER.unpack_from(data)[6]
        if count and size != _SECTION.size:
            raise Damaged(f"section headers of {size} bytes")
        headers = list(_SECTION.iter_unpack(self._cut(start, count * _SECTION.size)))
        if headers and names >= count:
            raise Damaged("no section holds the names of sections")
        table = self._part(headers[names]) if headers else memoryview(b"")
        self.sections = tuple(
            Section(
                name=text(table, header[0]),
                kind=header[1],
                size=header[5],
                data=self._part(header),
                link=header[6],
            )
            for header in headers
        )

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def symbols(self, *, undefined: bool = False) -> Iterator[tuple[int, Symbol]]:
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
                    yield (
                        index,
                        Symbol(
                            name=text(names, name), kind=info & 15, other=other, section=section
                        ),
                    )

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
