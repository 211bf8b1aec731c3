"""An event as its sentence needs it."""

from __future__ import annotations

from grader.model import Dim3
from ptxsim.findings.finding import Access, Finding
from ptxsim.records import Place


class EventScene:
    """The names and numbers of one event, as its sentence needs them."""

    def __init__(self, seen: Finding, gpu: str) -> None:
        assert seen.access and seen.block and seen.thread
        assert seen.other_block and seen.other_thread
        self.seen = seen
        self.gpu = f"the {gpu}" if gpu else "the GPU"
        self.access = seen.access
        self.same_block = seen.block == seen.other_block
        self.here, self.there = line_of(seen.here, seen.place), line_of(seen.there, seen.place)
        self.this_thread = f"thread {_short(seen.thread)}"
        self.that_thread = f"thread {_short(seen.other_thread)}"
        self.who = f"block {_short(seen.block)} {self.this_thread}"
        self.that_one = f"block {_short(seen.other_block)} {self.that_thread}"
        self.that_block = f"block {_short(seen.other_block)}"
        self.in_block = f"(block {_short(seen.block)})"
        self.does = "writes" if self.access.write else "reads"
        self.did = "wrote" if seen.other_write else "read"
        self.element = _element(self.access)
        name, space = self.access.accessed.name, self.access.space
        self.memory = f"{space} memory ({name})" if name and space else "memory"
        self.present, self.missing = _lanes(seen.lanes), _lanes(seen.mask & ~seen.lanes)
        lowest = seen.lanes & ~seen.mask  # the first lane that executes it though it is not named
        self.lane = (lowest & -lowest).bit_length() - 1


def line_of(place: Place | None, shown: Place | None) -> str:
    """ "line 12", with the file when it is not the one that the finding shows."""
    if place is None:
        return "an unknown line"
    same = shown is not None and place.file == shown.file
    return f"line {place.line}" if same else f"{place.file}:{place.line}"


def _short(dim: Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def byte_count(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _lanes(mask: int) -> str:
    """ "lanes 0-15 and 31" """
    runs: list[list[int]] = []
    for lane in (lane for lane in range(32) if mask >> lane & 1):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1] = [runs[-1][0], lane]
        else:
            runs.append([lane])
    texts = ["-".join(map(str, run)) for run in runs]
    *first, last = texts or ["none"]
    noun = "lane" if mask.bit_count() == 1 else "lanes"
    return f"{noun} {', '.join(first)} and {last}" if first else f"{noun} {last}"


def _element(access: Access) -> str:
    """ "As[12]": all data are floats; bytes if the offset is not a multiple of 4."""
    name = access.accessed.name
    if not name:
        return f"address {access.address:#x}"
    offset = access.address - access.accessed.start
    return f"byte {offset} of {name}" if offset % 4 else f"{name}[{offset // 4}]"
