"""Names and numbers in words, for an event's sentence."""

from ptxsim.findings import details
from ptxsim.findings.finding import Access, Finding, Overlap
from ptxsim.plan import records
from ptxsim.text import NOTHING, Message, counted, enumerated, phrase, verbatim

_SPACES = {
    "global": phrase("global"),
    "shared": phrase("shared"),
    "local": phrase("local"),
    "parameter": phrase("parameter"),
    "constant": phrase("constant"),
}


class EventScene:
    """The names and numbers of one event, as its sentence needs them."""

    def __init__(self, seen: Finding, gpu: str) -> None:
        assert seen.access and seen.block and seen.thread
        assert seen.other_block and seen.other_thread
        self.seen = seen
        self.access = access = seen.access
        self.same_block = seen.block == seen.other_block
        self._places: dict[str, int | str | Message] = {
            "gpu": phrase("the {gpu}", gpu=gpu) if gpu else phrase("the GPU"),
            "here": line_of(seen.here, seen.place),
            "there": line_of(seen.there, seen.place),
            "this_thread": phrase("thread {thread}", thread=_short(seen.thread)),
            "that_thread": phrase("thread {thread}", thread=_short(seen.other_thread)),
            "who": _thread(seen.block, seen.thread),
            "that_one": _thread(seen.other_block, seen.other_thread),
            "that_block": phrase("block {block}", block=_short(seen.other_block)),
            "this_block": phrase("block {block}", block=_short(seen.block)),
            "in_block": phrase("(block {block})", block=_short(seen.block)),
            "does": phrase("writes") if access.write else phrase("reads"),
            "did": phrase("wrote") if seen.other_write else phrase("read"),
            "operation": phrase("write") if access.write else phrase("read"),
            "bytes": byte_count(access.size),
            "element": _element(access),
            "name": access.accessed.name,
            "address": access.address,
            "space": _SPACES.get(access.space, ""),
            "memory": _memory(access),
            "where": _outside(access),
            "room": byte_count(access.accessed.size),
            "argument": seen.pointer or 0,
            "gap": _gap(seen),
            "left": _left(seen),
            "size": access.size,
            "multiple": access.size // (access.accessed.element or 1),
            **_detail_places(seen.detail),
            **_overlap_places(seen.overlap),
        }

    def fill(self, sentence: Message) -> Message:
        """The sentence with what it asks for."""
        missing = [name for name in sentence.places if name not in sentence.args]
        return sentence.given(**{name: self._places[name] for name in missing})


def _detail_places(detail: details.Detail | None) -> dict[str, int | str | Message]:
    match detail:
        case details.Participants(named=named, present=present):
            first = present & ~named  # that executes it though it is not named
            return {
                "mask": named,
                "expected": named.bit_count(),
                "present": _lanes(present),
                "missing": _lanes(named & ~present),
                "lane": (first & -first).bit_length() - 1,
            }
        case (
            details.Turnout(arrived=one, expected=other)
            | details.Residency(fitting=one, launched=other)
            | details.FullStack(calls=one, bytes=other)
            | details.TableJump(index=one, labels=other)
            | details.Dimensions(found=one, wanted=other)
        ):
            return {"arrived": one, "expected": other}
        case details.StuckPhase():
            return {"why": _why(detail)}
        case details.TileStart(coordinate=coordinate, element=element):
            return {"coordinate": coordinate, "reach": byte_count(coordinate * element)}
        case details.TileCorner(coordinate=coordinate, axis=axis):
            return {"coordinate": coordinate, "expected": axis}
        case details.SurfacePlace(x=x, y=y, z=z):
            return {"x": x, "y": y, "z": z}
    return {}


def _overlap_places(meeting: Overlap | None) -> dict[str, int | str | Message]:
    if meeting is None:
        return {}
    return {
        "overwritten": meeting.overwritten,
        "written": meeting.written,
        "later": meeting.later,
        "first": meeting.first,
        "distance": byte_count(meeting.offset),
        "elements": meeting.offset // meeting.element,
        "width": meeting.element,
    }


def _why(phase: details.StuckPhase) -> Message:
    """Reasons why a phase of an mbarrier never completes."""
    why = []
    if phase.arrived != phase.expected:
        came = phrase("{arrived} of {expected} arrivals came")
        why.append(came.given(arrived=phase.arrived, expected=phase.expected))
    if phase.missing:
        too_few = phrase(
            "expect_tx announced {announced} and copies brought {brought}: it still expects "
            "{bytes} that no copy brings"
        )
        too_many = phrase(
            "expect_tx announced {announced} and copies brought {brought}: {bytes} more than it "
            "expects"
        )
        tally = (too_few if phase.missing > 0 else too_many).given(
            bytes=byte_count(abs(phase.missing)),
            announced=byte_count(phase.announced),
            brought=byte_count(phase.announced - phase.missing),
        )
        why.append(tally)
    return phrase(": {why}", why=enumerated(why)) if why else NOTHING


def _gap(seen: Finding) -> Message:
    if seen.gap is None:
        return NOTHING
    straight = phrase("; one is missing after {after}, before {before}")
    around = phrase("; one is missing after {after}, before the next iteration comes to {before}")
    after, before = (line_of(at, seen.place) for at in (seen.gap.after, seen.gap.before))
    return (around if seen.gap.again else straight).given(after=after, before=before)


def _left(seen: Finding) -> Message:
    if seen.leavers is None or seen.other_thread is None:
        return NOTHING
    return phrase(
        "; {count} of its block's threads had returned before the barrier at {barrier}, {thread} "
        "first, at {returned}: those that should write there must stay, and guard only loads and "
        "stores",
        count=seen.leavers.count,
        barrier=line_of(seen.leavers.barrier, seen.place),
        thread=phrase("thread {thread}", thread=_short(seen.other_thread)),
        returned=line_of(seen.leavers.returned, seen.place),
    )


def _outside(access: Access) -> Message:
    """The place of an access that leaves its array or allocation."""
    name, start, size = access.accessed.name, access.accessed.start, access.accessed.size
    before, past = start - access.address, access.address - start - size
    if before > 0:
        whole = phrase("{bytes} before the start of {whole}", bytes=byte_count(before))
        named = phrase("{bytes} before the start of {kind} {name}", bytes=byte_count(before))
    elif past > 0:
        whole = phrase("{bytes} past the end of {whole}", bytes=byte_count(past))
        named = phrase("{bytes} past the end of {kind} {name}", bytes=byte_count(past))
    elif past == 0:
        whole = phrase("just past the end of {whole}")
        named = phrase("just past the end of {kind} {name}")
    else:
        whole = phrase("across the end of {whole}")
        named = phrase("across the end of {kind} {name}")
    if access.space == "local" and not access.accessed.element:
        return whole.given(whole=phrase("the local arrays of {name}", name=name))
    if access.space in ("local", "shared"):
        kind = phrase("the {size}-byte array", size=size)
    elif access.space != "parameter":
        kind = phrase("the {size}-byte allocation", size=size)
    elif name:
        kind = phrase("the {size}-byte", size=size)
    else:
        return whole.given(whole=phrase("the {size}-byte parameters", size=size))
    return named.given(kind=kind, name=name)


def line_of(place: records.Place | None, shown: records.Place | None) -> Message:
    """ "line 12", with the file when it is not the one that the finding shows."""
    if place is None:
        return phrase("an unknown line")
    if shown is not None and place.file == shown.file:
        return phrase("line {line}", line=place.line)
    return verbatim(f"{place.file}:{place.line}")


def _thread(block: records.Dim3, thread: records.Dim3) -> Message:
    return phrase("block {block} thread {thread}", block=_short(block), thread=_short(thread))


def _short(dim: records.Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def byte_count(count: int) -> Message:
    return counted("{count} byte", "{count} bytes", count)


def _memory(access: Access) -> Message:
    name, space = access.accessed.name, access.space
    if not name or not space:
        return phrase("memory")
    return phrase("{space} memory ({name})", space=_SPACES.get(space, space), name=name)


def _lanes(mask: int) -> Message:
    """ "lanes 0-15 and 31" """
    runs: list[list[int]] = []
    for lane in (lane for lane in range(32) if mask >> lane & 1):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1] = [runs[-1][0], lane]
        else:
            runs.append([lane])
    if not runs:
        return phrase("lanes none")
    if mask.bit_count() == 1:
        return phrase("lane {lane}", lane=runs[0][0])
    named = enumerated(phrase("{run}", run="-".join(map(str, run))) for run in runs)
    return phrase("lanes {lanes}", lanes=named)


def _element(access: Access) -> Message:
    """ "As[12]"; bytes if the offset is not a multiple of an element's size, or that is not
    known."""
    name = access.accessed.name
    if not name:
        return phrase("address {address:#x}", address=access.address)
    what, offset = access.accessed, access.address - access.accessed.start
    if what.whole and 0 <= offset < what.size:
        return verbatim(name)
    if not what.element or offset % what.element:
        return phrase("byte {offset} of {name}", offset=offset, name=name)
    return verbatim(f"{name}[{offset // what.element}]")
