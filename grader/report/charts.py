"""Pictures as inline SVG. Colours come from the page's style sheet, so both themes fit.

Widths are in user units; every picture scales to its column.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from grader import base
from grader.base import gpus
from grader.model import AccessMap, BankMap, Bound
from grader.report import drawing
from grader.report.bounds import access_sentence, resource_name
from grader.report.drawing import WIDTH, Bar, Picture, line, rect, svg, text
from grader.report.formatting import strip_caption
from grader.results import CaseResult, Result, Standing, ThreadTile
from ptxsim.text import Message, phrase

_ROW = 52
_LABEL = 120  # units left of the bars
_VALUE = 60  # units right of them
_TOP = 22  # units above a map


# --- speed against the baseline ------------------------------------------------------------------


def throughput(
    cases: Sequence[CaseResult], problem: base.ProblemInfo, language: base.Language
) -> Markup | None:
    """One pair of bars per timed size, with the scored speeds. Ticks mark the runs."""
    timed = [(case, case.timing) for case in cases if case.timing]
    if not timed:
        return None
    top = max(max(run.speed, run.baseline_speed) for _, timing in timed for run in timing.runs)
    scale = (WIDTH - _LABEL - _VALUE) / top if top > 0 else 0
    parts, described = [], []
    for i, (case, timing) in enumerate(timed):
        y = i * _ROW + 8
        parts.append(text(_LABEL - 10, y + 24, _size(case), "", "end"))
        own = [run.speed for run in timing.runs]
        theirs = [run.baseline_speed for run in timing.runs]
        for above, values, shown, kind in (
            (y, own, timing.scored_speed, "own"),
            (y + 19, theirs, timing.baseline_speed, "base"),
        ):
            parts.append(rect(_LABEL, above, shown * scale, 16, kind))
            ends = [_LABEL + value * scale for value in values]
            parts += [line(end, above + 3, end, above + 13, "run") for end in ends]
            parts.append(text(max(ends) + 6, above + 13, f"{shown:.4g}", "small"))
        speeds = f"{timing.scored_speed:.4g}, {timing.baseline_speed:.4g}"
        described.append(f"{_size(case)}: {speeds}")
    title = phrase("{unit} of the submission and of {baseline} for each size", unit=problem.unit)
    title = title.given(baseline=problem.baseline)
    return svg(len(timed) * _ROW, parts, language(title), "; ".join(described))


def _size(case: CaseResult) -> str:
    extents = list(case.size.values())
    if len(extents) == 3 and len(set(extents)) == 1:
        return f"{extents[0]}³"
    return base.size_text(case.size)


# --- limits -----------------------------------------------------------------------------------


def limits(bound: Bound, speed: float | None, unit: str, language: base.Language) -> Markup:
    """Draw the speed that each resource alone allows, and the kernel's: measured or expected."""
    own = phrase("this submission") if speed else phrase("expected")
    speed = speed or bound.speed
    rows = [Bar(language(own), speed, f"{speed:.4g} {unit}", "own")]
    for each in bound.limits:
        if each.resource != "waiting":
            words = f"{each.speed:.4g}" if each.speed < 1000 else f"{each.speed:,.0f}"
            name = language(resource_name(each.resource))
            rows.append(Bar(name, min(each.speed, 2 * bound.peak), words))
    title = phrase("{unit} that each resource allows on {gpu}", unit=unit, gpu=bound.gpu)
    return drawing.bars(rows, language(title))


# --- roofline ---------------------------------------------------------------------------------


_GLOBAL = ("global_loads", "global_stores", "global_copies", "bulk_loads", "bulk_stores")


def intensity(result: Result) -> float | None:
    """Floating-point operations per byte of the 32-byte sectors that the kernels request: at the
    explained size, or, if that has no counts, at the simulated ones."""
    lines, counts = result.lines, result.explanation.counts if result.explanation else ()
    done = sum(each.flops for each in counts or lines)
    sectors = sum(line.global_sectors for line in lines)
    if counts:
        sectors = sum(getattr(each, field).cost for each in counts for field in _GLOBAL)
    return done / (32 * sectors) if sectors and done else None


def roofline(
    flops_per_byte: float, own: base.gpus.Gpu | None, speed: float | None, language: base.Language
) -> Markup:
    """Ceilings over arithmetic intensity, both logarithmic, with the kernel marked.

    own: the device that ran the kernel; if it is known, only its ceiling is drawn.
    speed: the speed measured there, None in the simulator.
    """
    ceilings = (
        [own] if own else [each for each in base.gpus.known() if each.name in base.gpus.SHOWN]
    )
    left, right, top, bottom = 60.0, WIDTH - 20.0, 14.0, 226.0
    x_low, x_high = -5.0, 9.0  # log2 of FLOP per byte
    y_low, y_high = -2.0, 7.0  # log2 of the peak's unit

    def x(value: float) -> float:
        share = (math.log2(value) - x_low) / (x_high - x_low)
        return left + min(1.0, max(0.0, share)) * (right - left)

    def y(value: float) -> float:
        share = (math.log2(value) - y_low) / (y_high - y_low)
        return bottom - min(1.0, max(0.0, share)) * (bottom - top)

    parts: list[Markup] = []
    described: list[str] = []
    for value in (2.0**exponent for exponent in range(-4, 10, 2)):
        parts.append(line(x(value), top, x(value), bottom, "grid"))
        parts.append(text(x(value), bottom + 16, f"{value:g}", "small", "middle"))
    for value in (2.0**exponent for exponent in range(-2, 8, 2)):
        parts += drawing.level(left, right, y(value), f"{value:g}")
    for ceiling in ceilings:
        terabytes, peak = ceiling.dram_gb_s / 1000, ceiling.fp32_tflops
        ridge = peak / terabytes
        start = max(2.0**x_low, 2.0**y_low / terabytes)
        ends = (x(start), y(start * terabytes)), (x(ridge), y(peak)), (right, y(peak))
        parts.append(drawing.polyline(ends, "roof"))
        label = f"{ceiling.name}: {peak:.3g} {gpus.PEAK_UNIT}"
        below = ceiling is ceilings[-1] and len(ceilings) > 1  # the last two lie close together
        parts.append(text(right - 4, y(peak) + (15 if below else -5), label, "small", "end"))
        described.append(label)
    at = x(flops_per_byte)
    parts.append(line(at, top, at, bottom, "here"))
    kernel = phrase("this kernel: {intensity:.3g} {unit}", intensity=flops_per_byte, unit="FLOP/B")
    label = language(kernel)
    side, anchor = (-1, "end") if at > (left + right) / 2 else (1, "start")  # where there is room
    parts.append(text(at + 6 * side, bottom - 8, label, "strong", anchor))
    described.append(label)
    if speed:
        parts.append(drawing.dot(at, y(speed), radius=5))
        label = f"{speed:.3g} {gpus.PEAK_UNIT}"
        parts.append(text(at + 9 * side, y(speed) + 4, label, "strong", anchor))
        described.append(label)
    caption = language(phrase("FLOP per byte of global traffic asked for (before caches)"))
    parts.append(text((left + right) / 2, bottom + 34, caption, "small", "middle"))
    parts.append(text(6, top - 3, gpus.PEAK_UNIT, "small"))
    title = phrase("Roofline: attainable {unit} over arithmetic intensity", unit=gpus.PEAK_UNIT)
    return svg(bottom + 42, parts, language(title), "\n".join(described))


# --- the reference ladder ---------------------------------------------------------------------


def neighbours(standing: Standing, baseline: str, language: base.Language) -> Markup:
    """The submission, the rung below it and the timed rungs ahead, as shares of the baseline."""
    rungs = [*([standing.below] if standing.below else []), *standing.ahead]
    rows = [
        Bar(each.name.replace("_", " "), ratio, f"{100 * ratio:.1f} %")
        for each in rungs
        if (ratio := each.ratio) is not None
    ]
    own, words = language(phrase("this submission")), f"{100 * standing.ratio:.1f} %"
    rows.append(Bar(own, standing.ratio, words, "own"))
    rows.sort(key=lambda bar: bar.value)
    title = phrase("Share of {baseline}'s speed of the submission and of the rungs beside it")
    return drawing.bars(rows, language(title.given(baseline=baseline)))


# --- which part of an output is wrong ------------------------------------------------------------


def tile_picture(case: CaseResult, error: base.ErrorStats, language: base.Language) -> Markup:
    """The map of a matrix, or of a vector line by line: empty is right, half-filled partly wrong,
    filled all wrong."""
    matrix = len(error.shape) == 2
    across, down = (error.shape[1] - 1, error.shape[0] - 1) if matrix else (0, error.shape[0] - 1)
    rows, columns = len(error.tile_map), max(map(len, error.tile_map))
    cell, left = 10, 44
    width, height = columns * cell, rows * cell
    parts = [rect(left, _TOP, width, height, "right"), *_cells(error.tile_map, left, _TOP, cell)]
    parts.append(rect(left, _TOP, width, height, "frame"))
    parts.append(text(left, _TOP - 7, language(phrase("column 0")) if matrix else "", "small"))
    if columns > 14 and matrix:
        parts.append(text(left + width, _TOP - 7, f"{across}", "small", "end"))
    first = language(phrase("row 0")) if matrix else "0"
    parts.append(text(left - 5, _TOP + 9, first, "small", "end"))
    if rows > 3:
        parts.append(text(left - 5, _TOP + height, f"{down}", "small", "end"))
    drawn = max(left + width + 2, 120)
    signs = "".join(error.tile_map)
    title = phrase("Where {operand} of {size} is wrong", operand=error.operand)
    title = title.given(size=base.size_text(case.size))
    described = phrase("all wrong: {wrong}; partly wrong: {partly}; right: {right}").given(
        wrong=signs.count("#"), partly=signs.count("+"), right=signs.count(".")
    )
    picture = svg(_TOP + height + 2, parts, language(title), language(described), width=drawn)
    return _unscaled(picture, drawn)


_STRIP_CELLS = str.maketrans("-2xo", "#+++")


def strips_picture(
    case: CaseResult, strips: Sequence[base.Strip], language: base.Language
) -> Markup:
    """Draw what wrong elements hold of what they should, in their order: filled is missing,
    half-filled is there in another way."""
    cell, parts, top, widest = 6, [], 0, 0
    for strip in strips:
        top += _TOP
        caption = strip_caption(case, strip)
        lines = strip.signs.splitlines()
        width, height = cell * len(lines[0]), cell * len(lines)
        widest = max(widest, width)
        parts.append(text(0, top - 6, language(caption), "small"))
        for row, signs in enumerate(lines):
            spans = re.finditer(r"\S+", signs)
            spots = ((each.start() * cell, len(each[0]) * cell) for each in spans)
            parts += (rect(x, top + row * cell, long, cell, "right") for x, long in spots)
        parts += _cells([each.translate(_STRIP_CELLS) for each in lines], 0, top, cell)
        parts.append(rect(0, top, width, height, "frame"))
        top += height
    title = phrase("What wrong elements of {size} hold", size=base.size_text(case.size))
    drawn = max(widest + 2, 420)
    return _unscaled(svg(top + 2, parts, language(title), "", width=drawn), drawn)


def _unscaled(picture: Markup, width: float) -> Markup:
    """All maps of a page have one scale: small ones do not grow to the width of the column."""
    return Markup('<div class="map" style="width:{:g}px">{}</div>').format(width, picture)


def _cells(tile_map: Sequence[str], left: int, top: int, cell: int) -> Iterator[Markup]:
    """Adjacent equal signs share one rectangle, so a map of 2048 signs stays small."""
    for row, signs in enumerate(tile_map):
        column = left
        for sign, run in groupby(signs):
            width, y = cell * len(list(run)), top + row * cell
            if sign == "#":
                yield rect(column, y, width, cell, "wrong")
            elif sign == "+":
                yield rect(column, y + cell / 2, width, cell / 2, "partly")
            column += width


# --- accesses of threads -------------------------------------------------------------------------

_RACE = ("that_thread", "did", "there", "this_thread", "does", "here", "element")
_LIVES = (85.0, 255.0)  # where the two threads' lines lie
_LONG = 22  # characters that fit beside the other thread
_BANKS = 32


def race(said: Message, language: base.Language) -> Picture | None:
    """Two threads, time running down, and the barrier that is missing between their accesses.

    None if a barrier of the block is not what ``said``, a finding's sentence, asks for.
    """
    if "__syncthreads()" not in said.text or any(name not in said.args for name in _RACE):
        return None
    given = {name: said.args[name] for name in _RACE}
    words = {
        name: language(each) if isinstance(each, Message) else str(each)
        for name, each in given.items()
    }
    missing = language(phrase("missing: __syncthreads()"))
    accesses = (("that_thread", "did", "there", 34.0), ("this_thread", "does", "here", 112.0))
    parts, described = [], []
    for x, (thread, act, place, y) in zip(_LIVES, accesses, strict=True):
        does = f"{words[act]} {words['element']}"
        parts += [
            text(x, 16, words[thread], "small", "middle"),
            line(x, 24, x, 164, "grid"),
            rect(x - 80, y, 160, 40, "access"),
            text(x, y + 17, _short(does), "strong", "middle"),
            text(x, y + 33, _short(words[place]), "small", "middle"),
        ]
        described.append(f"{words[thread]}: {does}, {words[place]}")
    parts += [line(4, 98, 336, 98, "missing"), text(336, 91, missing, "strong", "end")]
    described.insert(1, missing)
    title = language(phrase("Two threads access {element}", element=words["element"]))
    return Picture(
        caption=phrase("Time runs down. Without a barrier, the second access may come first."),
        image=_unscaled(svg(170, parts, title, "\n".join(described), width=340), 340),
    )


def _short(words: str) -> str:
    return words if len(words) <= _LONG else f"{words[: _LONG - 1]}…"


def bank_map(banks: BankMap, language: base.Language) -> Picture:
    """Lanes down, banks or sectors across. A wide access goes in turns of some lanes each."""
    cell, left = 7, 50
    unit = "sector" if isinstance(banks, AccessMap) and banks.in_global else "bank"
    turn = _BANKS // banks.width  # lanes
    found: dict[tuple[int, int], set[int]] = {}
    known = [(lane, word) for lane, word in enumerate(banks.lanes) if word is not None]
    for lane, word in known:
        found.setdefault((lane // turn, word % _BANKS), set()).add(word)
    edge = _BANKS * cell
    parts = [rect(left, _TOP, edge, edge, "frame")]
    for lane, word in known:
        bank = word % _BANKS
        kind = "wrong" if len(found[lane // turn, bank]) > 1 else "own"
        parts.append(rect(left + bank * cell, _TOP + lane * cell, banks.width * cell, cell, kind))
    parts += [
        text(left, _TOP - 7, f"{unit} 0", "small"),
        text(left + edge, _TOP - 7, f"{_BANKS - 1}", "small", "end"),
        text(left - 5, _TOP + 9, "lane 0", "small", "end"),
        text(left - 5, _TOP + edge, f"{len(banks.lanes) - 1}", "small", "end"),
    ]
    width = left + edge + 2
    described = phrase("at most {most} words in one bank", most=max(map(len, found.values())))
    title = phrase("The bank that each lane accesses")
    caption = phrase("Red: different words in one bank, which come one after the other.")
    if isinstance(banks, AccessMap):
        title = described = caption = access_sentence(banks)
    picture = svg(_TOP + edge + 2, parts, language(title), language(described), width=width)
    return Picture(caption=caption, image=_unscaled(picture, width))


_TILE_EDGE, _KEY = 256.0, 78  # of the longer side; from key to key


def thread_tile(tile: ThreadTile, language: base.Language) -> Picture:
    """The elements of the first threads of a block, in the block's part of the output."""
    cell = _TILE_EDGE / max(tile.rows, tile.columns)
    width, height = tile.columns * cell, tile.rows * cell
    parts, keys = [rect(1, 1, width, height, "frame")], []
    for thread, elements in enumerate(tile.threads):
        # Neighbours in a row share a rectangle.
        runs = groupby(
            enumerate(elements), lambda pair: (pair[1] - pair[0], pair[1] // tile.columns)
        )
        for _, run in runs:
            found = [element for _, element in run]
            row, column = divmod(found[0], tile.columns)
            place = (1 + column * cell, 1 + row * cell, len(found) * cell, cell)
            parts.append(rect(*place, f"tile series{thread}"))
        x = 1 + _KEY * thread
        keys += [
            rect(x, height + 12, 10, 10, f"tile series{thread}"),
            text(x + 14, height + 21, language(phrase("thread {thread}", thread=thread)), "small"),
        ]
    title = language(phrase("Elements of {operand} by thread", operand=tile.operand))
    caption = phrase(
        "What the first threads of a block compute of its {rows} × {columns} elements of "
        "{operand}, rows down.",
        **{name: getattr(tile, name) for name in ("rows", "columns", "operand")},
    )
    drawn = max(width + 2, float(_KEY * len(tile.threads)))
    picture = svg(height + 28, [*parts, *keys], title, language(caption), width=drawn)
    return Picture(caption=caption, image=_unscaled(picture, drawn))


# --- a student's history ----------------------------------------------------------------------


def sparkline(values: Sequence[float], top: float, language: base.Language) -> Markup:
    """Scores in chronological order; "" when there is nothing to compare."""
    if len(values) < 2 or top <= 0:
        return Markup("")
    step = 88 / (len(values) - 1)
    points = [(4 + i * step, 20 - 16 * min(1.0, v / top)) for i, v in enumerate(values)]
    path = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
    title = phrase("scores: {scores}", scores=", ".join(f"{value:.4g}" for value in values))
    return Markup(
        '<svg class="spark" role="img"><title>{}</title><polyline points="{}"/></svg>'
    ).format(language(title), path)
