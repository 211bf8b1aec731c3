"""Sentences and strips of what wrong elements hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.base import Strip, element_words
from grader.problems.contents import ElementContents, Held, Suspect
from grader.problems.operands import Operand
from ptxsim.plan import Launch, Plan
from ptxsim.text import NOTHING, Message, clauses, enumerated, phrase, verbatim

Flags = NDArray[np.bool_]
Signature = tuple[object, ...]  # of two elements in which the same is wrong

_SIGNS = 64  # of a strip
_ROWS = 16  # of a map
_RUNS = 3  # of indices that are named one by one
_SENTENCES, _PARTS = 2, 3  # about elements that differ; of each
_LEAST_PART = 4  # threads; a smaller number divides too much
_WARP = 32


def describe_contents(
    found: Sequence[ElementContents], plan: Plan
) -> tuple[Message, tuple[Strip, ...]]:
    """Say and draw what is wrong in these elements; nothing where there are none."""
    return (_in_words(found, plan), _strips(found)) if found else (NOTHING, ())


def reader_words(suspect: Suspect, *, read: bool) -> Message:
    """Say of an input that is not where it should be that this line reads it, or that none does."""
    name = element_words(suspect.operand.named(suspect.index))
    words = phrase("{input} should be in {element}, and no thread reads it")
    if read:
        words = phrase("{input} is read here; it should be in {element}, and does not arrive")
        if suspect.foreign:
            words = phrase("{input} is read here; it arrives in {element}, and should not")
    return words.given(input=name, element=_name(suspect.of))


def _in_words(found: Sequence[ElementContents], plan: Plan) -> Message:
    """Say what is wrong in these elements: once, where it is the same in all of them."""
    said: dict[Signature, list[tuple[Message, Message]]] = {}
    for each in found:
        signature, words = _sentence(each, plan)
        said.setdefault(signature, []).append((_name(each), words))
    texts = []
    for alike in list(said.values())[:_SENTENCES]:
        (_, words), *others = alike
        if others:
            names = enumerated(name for name, _ in others)
            words = phrase("{what}; the same in {others}", what=words, others=names)
        texts.append(words)
    return clauses(texts)


def _strips(found: Sequence[ElementContents]) -> tuple[Strip, ...]:
    """Draw what each element has of what it should have, in that order."""
    drawn: list[Strip] = []
    for each in found:
        element = each.target.named(each.index)
        if each.want_pairs:
            names = "·".join(held.operand.name for held in each.held)
            drawn += _strip(element, names, _product_signs(each))
        for held in () if each.want_pairs else each.held:
            drawn += _map(element, held) or _strip(element, held.operand.name, _signs(held))
    return tuple(drawn)


# --- one element ---------------------------------------------------------------------------------


def _name(each: ElementContents) -> Message:
    return element_words(each.target.named(each.index))


def _sentence(each: ElementContents, plan: Plan) -> tuple[Signature, Message]:
    parts = [*_products(each, plan)] if each.want_pairs else []
    if not each.want_pairs or each.got_pairs.keys() - each.want_pairs.keys():
        parts += [part for held in each.held for part in _of_operand(each, held, plan)]
    if each.constant:
        words = phrase("{element} holds {value:g} that comes from no input", element=_name(each))
        parts.append((("constant", each.constant), words.given(value=each.constant)))
    shown = (words for _, words in parts[:_PARTS])
    return tuple(signature for signature, _ in parts), clauses(shown)


def _products(each: ElementContents, plan: Plan) -> Iterator[tuple[Signature, Message]]:
    """Say which terms of a product are missing or there several times, or what meets what."""
    want, got = each.want_pairs, each.got_pairs
    times = np.array([got.get(pair, 0.0) for pair in want])
    first, second = each.held
    own = {"element": _name(each)}
    if not got.keys() - want.keys():
        held = np.flatnonzero(times == 1)
        if (lost := times == 0).any():
            words = phrase("{element} lacks the products p = {lost} of p = 0 … {last}", **own)
            if held.size and held.size + lost.sum() == len(want):
                words = phrase(
                    "{element} holds the products p = {held} and lacks p = {lost}", **own
                )
            words = words.given(lost=ranges(np.flatnonzero(lost)), held=ranges(held))
            words = words.given(last=len(want) - 1)
            yield ("lost", lost.tobytes()), _with_parts(words, lost, plan)
        for many in sorted({*times.tolist()} - {0.0, 1.0})[:_SENTENCES]:
            which = times == many
            words = _scaled(many, 1.0, **own)
            some = phrase("the products p = {which}", which=ranges(np.flatnonzero(which)))
            yield (
                ("many", many, which.tobytes()),
                _with_parts(words.given(which=some), which, plan),
            )
    elif all(((h.got == 0) | (h.got == h.want)).all() for h in each.held):
        place = {pair[1]: p for p, pair in enumerate(want)}
        rank = {pair[0]: p for p, pair in enumerate(want)}
        meets = np.array([(rank[a], place[b]) for a, b in got]).T
        turned, moved = {*(meets[0] ^ meets[1]).tolist()}, {*(meets[1] - meets[0]).tolist()}
        where = phrase("p + {step}", step=min(moved))
        if len(turned) == 1:
            where = phrase("p xor {step}", step=min(turned))
        elif len(moved) > 1:
            pairs = [f"{p} – {q}" for p, q in meets.T.tolist() if p != q]
            where = phrase("another place (p: {pairs})", pairs=", ".join(pairs[: 2 * _RUNS]))
        words = phrase("in {element}, {first} at p meets {second} at {where}", where=where)
        words = words.given(first=first.operand.name, second=second.operand.name, **own)
        yield ("meets", meets.tobytes()), words


def _scaled(got: float, want: float, element: Message) -> Message:
    """The sentence on what is there with a wrong factor, which lacks a name for that."""
    share = got / want
    if share == 2:
        return phrase("{element} counts {which} twice", element=element)
    if share == round(share) > 2:
        return phrase("{element} counts {which} {many} times", many=round(share), element=element)
    if share == -1:
        return phrase("{element} holds {which} with the opposite sign", element=element)
    words = phrase("{element} multiplies {which} by {got:.6g} instead of {want:.6g}")
    return words.given(element=element, got=got, want=want)


def _of_operand(
    each: ElementContents, held: Held, plan: Plan
) -> Iterator[tuple[Signature, Message]]:
    operand, want, got = held.operand, held.want.reshape(-1), held.got.reshape(-1)
    missing, foreign = (want != 0) & (got == 0), (want == 0) & (got != 0)
    own = {"element": _name(each)}
    ordinals = missing[want != 0]
    if foreign.any() and foreign.sum() == missing.sum():
        words = phrase("{element} holds {foreign} in the place of {missing}", **own)
        words = words.given(foreign=named(operand, foreign), missing=named(operand, missing))
        there, right = (
            np.array(np.unravel_index(np.flatnonzero(flags), operand.shape))
            for flags in (foreign, missing)
        )
        apart = (there - right).tobytes()
        if len(there) > 1 and (there == right[::-1]).all():
            words = phrase("{what}: row and column are exchanged", what=words)
            apart = b"exchanged"
        yield (operand.name, "instead", apart, ordinals.tobytes()), words
    else:
        if missing.any():
            left = want.astype(bool) & (want == got)
            words = phrase("{element} lacks {missing}", **own)
            if left.any():
                words = phrase("{element} holds {held} and lacks {missing}", **own)
            words = words.given(missing=named(operand, missing), held=named(operand, left))
            signature: Signature = (operand.name, "missing", ordinals.tobytes())
            if _ends_at_itself(each, held) and missing.sum() == missing[each.index]:
                words = phrase("{what}: exclusive where inclusive is asked", what=words)
                signature = ("exclusive",)
            yield signature, _with_parts(words, ordinals, plan)
        if foreign.any():
            words = phrase("{element} holds {foreign}, which does not belong there", **own)
            yield (
                (operand.name, "foreign", int(foreign.sum())),
                words.given(foreign=named(operand, foreign)),
            )
    both = (want != 0) & (got != 0) & (want != got)
    shares = got[both] / want[both]
    for share in sorted({*shares.tolist()})[:_SENTENCES]:
        which = both.copy()
        which[both] = shares == share
        first = int(which.argmax())
        words = _scaled(float(got[first]), float(want[first]), **own)
        words = words.given(which=named(operand, which))
        chosen = which[want != 0]
        yield (operand.name, "share", share, chosen.tobytes()), _with_parts(words, chosen, plan)


def _ends_at_itself(each: ElementContents, held: Held) -> bool:
    """Whether an element of a vector should hold what lies before it, and itself."""
    sums = np.arange(held.want.size) <= each.index[0]
    alike = each.target.shape == held.operand.shape and held.want.ndim == 1
    return alike and bool((held.want == sums).all())


# --- names of many -------------------------------------------------------------------------------


def named(operand: Operand, which: Flags) -> Message:
    """Elements of an operand: "A[row 3, columns 16 … 31]", "in[0, 2, … 62]"."""
    words = _named(operand, which)
    return phrase("{elements} as given", elements=words) if operand.written else words


def _named(operand: Operand, which: Flags) -> Message:
    indices = np.unravel_index(np.flatnonzero(which), operand.shape)
    if len(indices[0]) == 1 or operand.count == 1:
        return element_words(operand.named(tuple(int(each[0]) for each in indices)))
    sets = [np.array(sorted({*each.tolist()})) for each in indices]
    if np.prod([len(each) for each in sets]) != len(indices[0]):
        first = element_words(operand.named(tuple(int(each[0]) for each in indices)))
        words = phrase("{first} and {count} more of {name}", first=first)
        return words.given(count=len(indices[0]) - 1, name=operand.name)
    if len(sets) != 2:
        return verbatim(f"{operand.name}[{']['.join(map(ranges, sets))}]")
    rows, columns = sets
    words = phrase("{name}[rows {rows}, columns {columns}]")
    if len(rows) == 1 and len(columns) == operand.shape[1]:
        words = phrase("row {rows} of {name}")
    elif len(columns) == 1 and len(rows) == operand.shape[0]:
        words = phrase("column {columns} of {name}")
    elif len(rows) == 1:
        words = phrase("{name}[row {rows}, columns {columns}]")
    elif len(columns) == 1:
        words = phrase("{name}[rows {rows}, column {columns}]")
    return words.given(name=operand.name, rows=ranges(rows), columns=ranges(columns))


def ranges(numbers: NDArray[Any]) -> str:
    """Rising numbers: "0 … 15, 32 … 63", "0, 2, … 62"; of many runs the first ones and the last."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    texts = [f"{run[0]}" if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs if len(run)]
    if len(texts) <= _RUNS:
        return ", ".join(texts)
    even = (
        len({*map(len, runs[:-1])}) == 1 and len({*np.diff([run[0] for run in runs]).tolist()}) == 1
    )
    return f"{', '.join(texts[: 2 if even else _RUNS])}, … {texts[-1]}"


def _with_parts(words: Message, which: Flags, plan: Plan) -> Message:
    """Add what of the launch these are whole parts of."""
    cuts = np.flatnonzero(np.diff(which.astype(int), prepend=0, append=0))
    launch = next((each for each in plan.operations if isinstance(each, Launch)), None)
    if launch is None:
        return words
    x, y, z = launch.block
    inner = [cut for cut in cuts.tolist() if 0 < cut < which.size]
    parts = {
        _WARP: phrase("the threads of a warp"),
        x: phrase("a block's extent along x"),
        y: phrase("a block's extent along y"),
        x * y * z: phrase("the threads of a block"),
    }
    for size, part in sorted(parts.items(), reverse=True, key=lambda pair: pair[0]):
        if not inner or size < _LEAST_PART or any(cut % size for cut in inner):
            continue
        if len(inner) > 1:
            words = phrase("{what} (in parts of {size}: {part})", what=words)
            return words.given(size=size, part=part)
        if size != _WARP and which.size - inner[0] <= size:
            words = phrase("{what} (beyond whole parts of {size}: {part})", what=words)
            return words.given(size=size, part=part)
    return words


# --- strips --------------------------------------------------------------------------------------


def _product_signs(each: ElementContents) -> str:
    want, got = each.want_pairs, each.got_pairs
    strange = got.keys() - want.keys()
    elsewhere = [{pair[side] for pair in strange} for side in (0, 1)]

    def sign(pair: tuple[int, int]) -> str:
        if pair not in got:
            return "x" if any(p in them for p, them in zip(pair, elsewhere, strict=True)) else "-"
        return "." if got[pair] == want[pair] else "2"

    return "".join(map(sign, want))


def _signs(held: Held) -> str:
    want, got = held.want[held.want != 0], held.got[held.want != 0]
    foreign = ((held.want == 0) & (held.got != 0)).sum()
    missing = "x" if foreign and foreign == (got == 0).sum() else "-"
    signs = np.where(got == want, ".", np.where(got == 0, missing, "2"))
    return "".join(signs.tolist())


def _strip(element: str, operand: str, signs: str) -> list[Strip]:
    """One sign for several inputs if they are many; "+" where they differ."""
    if len(signs) < 2 or {*signs} == {"."}:
        return []
    edge = 1 << (-(-len(signs) // _SIGNS) - 1).bit_length()
    parts = (signs[at : at + edge] for at in range(0, len(signs), edge))
    shortened = "".join(part[0] if len({*part}) == 1 else "+" for part in parts)
    return [Strip(element=element, operand=operand, signs=shortened, edge=edge)]


def _map(element: str, held: Held) -> list[Strip]:
    """The part of a matrix, or of a plane of a box, that an element has or should have."""
    want, got = held.want, held.got
    involved = np.argwhere((want != 0) | (got != 0))
    if (want == got).all():
        return []
    corner, beyond = involved.min(axis=0), involved.max(axis=0) + 1
    extents = [each for each in (beyond - corner).tolist() if each > 1]
    if len(extents) != 2 or extents[0] > _ROWS or extents[1] > _SIGNS:
        return []
    part = tuple(map(slice, corner.tolist(), beyond.tolist()))
    want, got = want[part].reshape(extents), got[part].reshape(extents)
    known = [(want == 0) & (got == 0), want == 0, got == 0, want == got]
    lines = np.select(known, [" ", "o", "-", "."], "2").tolist()
    corner_name = held.operand.named(tuple(corner.tolist()))
    signs = "\n".join(map("".join, lines))
    name = held.operand.name
    return [Strip(element=element, operand=name, signs=signs, edge=1, corner=corner_name)]
