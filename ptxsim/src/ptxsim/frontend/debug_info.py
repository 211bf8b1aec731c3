"""Local variables as nvcc -G describes them in the sections of its PTX, in DWARF 2."""

from dataclasses import dataclass, field
from typing import NamedTuple

# Tags, attributes, forms, operations of DWARF 2 (dwarfstd.org, section 7).
_VARIABLES = {0x05, 0x34}  # formal_parameter, variable
_POINTERS = {0x0F, 0x10, 0x42}  # pointer, reference, rvalue_reference
_ARRAY, _SUBRANGE = 0x01, 0x21
_SAME_SIZE = {0x16, 0x26, 0x35, 0x37}  # typedef, const, volatile, restrict
_NAME, _LOCATION, _BYTE_SIZE, _TYPE, _UPPER_BOUND, _COUNT = 0x03, 0x02, 0x0B, 0x49, 0x2F, 0x37
_FIXED = {0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x11: 1, 0x12: 2, 0x13: 4}
_BLOCKS = {0x03: 2, 0x04: 4, 0x0A: 1}  # bytes of the length
_STRING, _LEB = 0x08, {0x0D, 0x0F}
_ADDRESS, _PLUS = b"\x03", b"\x23"
_HEADER = 11  # bytes of a unit's header
_DEEPEST = 64  # types within types


@dataclass(slots=True)
class DebugSection:
    """The bytes of a section, and the symbols whose addresses are part of them."""

    data: bytearray = field(default_factory=bytearray)
    symbols: dict[int, str] = field(default_factory=dict)  # by place


class LocalVariable(NamedTuple):
    offset: int  # bytes, in the local memory of its function
    size: int
    name: str
    element: int  # bytes of an element, where it is an array; else ``size``


@dataclass(slots=True)
class _Entry:
    tag: int
    values: dict[int, int | bytes]  # by attribute
    places: dict[int, int]  # of the values
    counts: list[int] = field(default_factory=list)  # of an array, by dimension


def local_variables(sections: dict[str, DebugSection]) -> dict[str, list[LocalVariable]]:
    """The variables with a fixed place, by the symbol that nvcc gives to the local memory of their
    function. Inline assembly can write anything: nothing where this cannot be read."""
    try:
        info, abbreviations = sections[".debug_info"], sections[".debug_abbrev"]
        entries = _entries(info.data, _table(abbreviations.data))
        found: dict[str, list[LocalVariable]] = {}
        for entry in entries.values():
            place = entry.places.get(_LOCATION, -1)
            where, symbol = entry.values.get(_LOCATION), info.symbols.get(place + 1)
            if entry.tag not in _VARIABLES or not isinstance(where, bytes) or symbol is None:
                continue
            if where[:1] != _ADDRESS or where[9:10] != _PLUS:
                continue
            offset, end = _number(where, 10)
            size, element = _size(entries, entry)
            name = entry.values.get(_NAME)
            if end == len(where) and size and isinstance(name, bytes):
                variable = LocalVariable(offset, size, name.decode("latin-1"), element or size)
                found.setdefault(symbol, []).append(variable)
        return found
    except (IndexError, KeyError, ValueError):
        return {}


def _number(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """A number in LEB128, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _table(data: bytearray) -> dict[int, tuple[int, bool, list[tuple[int, int]]]]:
    """For each code the tag, whether there are children, and the attributes with their forms."""
    found, at = {}, 0
    while at < len(data):
        code, at = _number(data, at)
        if not code:
            break
        tag, at = _number(data, at)
        children = bool(data[at])
        at += 1
        attributes = []
        while True:
            attribute, at = _number(data, at)
            form, at = _number(data, at)
            if not attribute:
                break
            attributes.append((attribute, form))
        found[code] = tag, children, attributes
    return found


def _entries(
    data: bytearray, table: dict[int, tuple[int, bool, list[tuple[int, int]]]]
) -> dict[int, _Entry]:
    """The entries of the only unit, by their places."""
    found: dict[int, _Entry] = {}
    open_entries: list[_Entry] = []
    at = _HEADER
    while at < len(data):
        place = at
        code, at = _number(data, at)
        if not code:
            if open_entries:
                open_entries.pop()
            continue
        tag, children, attributes = table[code]
        entry = found[place] = _Entry(tag, {}, {})
        for attribute, form in attributes:
            value, entry.places[attribute], at = _value(data, form, at)
            entry.values[attribute] = value
        if tag == _SUBRANGE and open_entries:
            last = entry.values.get(_UPPER_BOUND, -1)
            count = entry.values.get(_COUNT, last + 1 if isinstance(last, int) else 0)
            open_entries[-1].counts.append(count if isinstance(count, int) else 0)
        if children:
            open_entries.append(entry)
    return found


def _value(data: bytearray, form: int, at: int) -> tuple[int | bytes, int, int]:
    """The value, where it begins, and the place behind it."""
    if form == _STRING:
        end = data.index(0, at)
        return bytes(data[at:end]), at, end + 1
    if form in _LEB:
        value, end = _number(data, at)
        return value, at, end
    if width := _BLOCKS.get(form):
        size = int.from_bytes(data[at : at + width], "little")
        at += width
        return bytes(data[at : at + size]), at, at + size
    width = _FIXED[form]
    return int.from_bytes(data[at : at + width], "little"), at, at + width


def _size(entries: dict[int, _Entry], entry: _Entry) -> tuple[int, int]:
    """The bytes of what has this type, and of its elements; 0 where that is not known."""
    count = 1
    for _ in range(_DEEPEST):
        reference = entry.values.get(_TYPE)
        if not isinstance(reference, int):
            break
        entry = entries[reference]
        if entry.tag in _POINTERS:
            return count * 8, 8
        size = entry.values.get(_BYTE_SIZE)
        if isinstance(size, int) and entry.tag != _ARRAY:
            return count * size, size
        if entry.tag == _ARRAY:
            for each in entry.counts:
                count *= each
        elif entry.tag not in _SAME_SIZE:
            break
    return 0, 0
