"""Writes to elements of memory that somebody watches: who wrote what, computed from what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ptxsim.findings.remarks import clean, source_line
from ptxsim.frontend.records import SIZES
from ptxsim.plan.records import Dim3, Place
from ptxsim.record import Record
from ptxsim.text import enumerated, verbatim

MOST_WRITES = 1000  # that are kept
_ELEMENT = re.compile(r"([^\[\]]+)\[([0-9]{1,15})\](?::([iuf](?:16|32|64)|[iu]8|bf16))?")
_INTEGERS = {1: "u8", 2: "i16", 4: "i32", 8: "i64"}  # unless more is known
_FORMS = "give NAME[5] or NAME[5]:f64, with one index, from the start of the memory"


class WatchedElement(Record):
    """An element of an array, as ``--watch`` names it."""

    name: str  # of the array
    index: int
    type: str = ""  # "i32"; "": as the instructions say that write

    @property
    def width(self) -> int:
        """Bytes; 0: not known."""
        return width_of(self.type) if self.type else 0

    @staticmethod
    def named(text: str) -> WatchedElement:
        """Raises ValueError."""
        found = _ELEMENT.fullmatch(text)
        if found is None:
            raise ValueError(f"--watch {text}: {_FORMS}")
        return WatchedElement(name=found[1], index=int(found[2]), type=found[3] or "")

    def missing(self, names: Sequence[str]) -> str:
        """That no memory has this name, but others."""
        there = ", ".join(dict.fromkeys(names)) or "none"
        return f"--watch {self.name}[{self.index}]: no memory has this name; there are {there}"

    def beyond(self, size: int) -> str:
        """That the memory has too few bytes, where that is so."""
        width = self.width or 4  # of most types
        there = f"{self.name} has {size} bytes, {size // width} elements of {width}"
        past = (self.index + 1) * width > size
        return f"--watch {self.name}[{self.index}]: {there}" if past else ""


class SourceValue(Record):
    """A value that another was computed from."""

    value: int | float
    type: str  # "i32", "f32"
    name: str = ""  # of the element that it was loaded from; "": of none


class ElementWrite(Record):
    """A write to an element that was watched. Values are bits and types may be missing until
    ``typed`` has seen all writes."""

    element: str  # "c[5]"
    type: str  # "i32", "f32"
    width: int  # bytes
    old: int | float | None  # None: nobody had written it
    new: int | float
    by: str  # "add<<<4,256>>>", or a call of host code, "cudaMemcpy"
    place: Place | None  # the line
    launch: int | None = None  # its number among all, from 1; None: host code wrote
    block: Dim3 | None = None
    thread: Dim3 | None = None
    opcode: str = ""  # PTX: what computed the value; "": nothing, or it is not known
    operands: tuple[SourceValue, ...] = ()


def typed(writes: Sequence[ElementWrite]) -> tuple[ElementWrite, ...]:
    """The writes with values of their types. A copy by host code, which says nothing of elements,
    is there once for each width; kept is that of the other writes."""
    known: dict[str, str] = {}
    for each in (*(each for each in writes if each.type), *(w for w in writes if w.launch)):
        known.setdefault(each.element, each.type or _INTEGERS[each.width])
    types = [known.setdefault(each.element, "i32") for each in writes]
    pairs = zip(writes, types, strict=True)
    return tuple(_typed(w, t) for w, t in pairs if w.launch or w.width == width_of(t))


def _typed(write: ElementWrite, type_: str) -> ElementWrite:
    if width_of(type_) != write.width:
        type_ = _INTEGERS[write.width]
    old = None if write.old is None else _value(write.old, type_)
    new = _value(write.new, type_)
    operands = tuple(_typed_operand(each, write, type_) for each in write.operands)
    return msgspec.structs.replace(write, type=type_, old=old, new=new, operands=operands)


def _typed_operand(operand: SourceValue, write: ElementWrite, type_: str) -> SourceValue:
    """PTX often does not say whether an integer has a sign, or what a load brings."""
    own = operand.type or type_
    vague = write.opcode.startswith("ld") or {own[0], type_[0]} <= {"i", "u"}
    kind = type_ if vague and width_of(own) == write.width else own
    return msgspec.structs.replace(operand, type=kind, value=_value(operand.value, kind))


def width_of(type_: str) -> int:
    return int(type_.lstrip("iubf")) // 8


def type_of(opcode: str, *, result: bool) -> str:
    """The type of a PTX instruction's result, or of its operands; "": bits."""
    types = [each for each in opcode.split(".") if each in SIZES]
    found = types[0 if result else -1] if types else ""
    return found.replace("s", "i") if re.fullmatch(r"[suf]\d+|bf16", found) else ""


def _value(bits: int | float, type_: str) -> int | float:
    import numpy as np  # a command's help is shown without it

    raw = int(bits).to_bytes(8, "little")
    if type_ == "bf16":
        raw, type_ = b"\0\0" + raw, "f32"
    found: int | float = np.frombuffer(raw[: width_of(type_)], _numpy(type_))[0].item()
    return found


def _numpy(type_: str) -> str:
    return f"<{type_[0]}{width_of(type_)}"


def in_lines(
    writes: Sequence[ElementWrite], left_out: int, source: Callable[[str], str | None]
) -> Iterator[str]:
    """A line for each write, and one more where its source is known. source: the text of a file."""
    for each in writes:
        old = "unwritten" if each.old is None else _text(each.old, each.type)
        head = f"{each.element} = {_text(each.new, each.type)} (was {old})  {each.by}"
        if each.launch is not None:
            head += f" #{each.launch} block {_short(each.block)} thread {_short(each.thread)}"
        line = ""
        if at := each.place:
            head += f" {source_line(at.file, at.line)}"
            line = "".join((source(at.file) or "").splitlines()[at.line - 1 : at.line]).strip()
        parts = [_text(o.value, o.type) + (f" ({o.name})" if o.name else "") for o in each.operands]
        made = (
            f"from {enumerated(map(verbatim, parts))}"
            if parts
            else each.opcode and f"by {each.opcode}"
        )
        yield clean(head)
        if line or made:
            yield clean(f"    {line}      {made}".rstrip())
    if left_out:
        yield f"… and {left_out} more"


def listed(writes: Sequence[ElementWrite], left_out: int) -> dict[str, Any]:
    """The writes in a document, if there are any; null for what is no number."""
    if not writes:
        return {}
    rows = msgspec.json.decode(msgspec.json.encode(writes))
    return {"writes": rows, "writes_left_out": left_out}


def _short(dim: Dim3 | None) -> str:
    return f"({','.join(map(str, dim or ()))})"


def _text(value: int | float, type_: str) -> str:
    import numpy as np

    return str(np.dtype(_numpy(type_)).type(value)) if type_[0] == "f" else str(value)
