"""Kernels as the assembler and the launches describe them, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from grader import base
from grader.base import occupancy
from grader.explain import SassFunction, main_loop_code
from grader.problems import limit_words
from grader.report import formatting as text
from grader.report.bounds import SENTENCES
from ptxsim.findings.names import kernel_name
from ptxsim.message import NOTHING, Message, clauses, phrase, verbatim
from ptxsim.records import Record

_say = SENTENCES.say


class KernelRow(Record):
    """One kernel in one shape of launch."""

    kernel: base.KernelInfo
    launch: base.KernelLaunch | None  # null: not launched at the largest size, or not known
    shared_bytes: int  # static and dynamic, per block
    occupancy: base.Occupancy | None  # null: unknown, or not even one block fits

    @property
    def block(self) -> str:
        """``16×16``, or "" when it is not known."""
        if self.launch is None:
            return ""
        x, y, z = self.launch.block
        sides = (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)
        return "×".join(map(str, sides))

    @property
    def resident(self) -> Message:
        """Warps, and what limits them: ``32 of 64 (registers)``; empty when it is not known."""
        held = self.occupancy
        if held is None:
            return NOTHING
        return phrase(
            "{part} of {whole} ({limit})",
            part=held.warps,
            whole=held.of_warps,
            limit=limit_words(held),
        )


def kernel_rows(result: base.Result) -> tuple[KernelRow, ...]:
    """Every kernel of the build, once for each shape it was launched in."""
    if result.build is None:
        return ()
    digits = (
        (result.build.arch or "").removeprefix("sm_").rstrip("af")
    )  # sm_90a holds what sm_90 does
    sm = base.MULTIPROCESSORS.get(int(digits)) if digits.isdecimal() else None
    rows = []
    for kernel in result.build.kernels:
        launches = [launch for launch in result.launches if launch.kernel == kernel.name]
        for launch in launches or (None,):
            shared, held = kernel.shared_bytes + (launch.shared_bytes if launch else 0), None
            if sm and launch:
                held = occupancy(
                    sm, block=launch.block, registers=kernel.registers, shared_bytes=shared
                )
            rows.append(
                KernelRow(kernel=kernel, launch=launch, shared_bytes=shared, occupancy=held)
            )
    return tuple(rows)


# --- loop --------------------------------------------------------------------------------------


def loop_sentence(loop: base.SassLoop) -> Message:
    """Describe one iteration in a sentence."""
    done, what = (loop.tensor, "HMMA") if loop.tensor else (loop.ffma, "FFMA")
    if any(entry.kind == "HGMMA" for entry in loop.mix):
        what = "HGMMA"
    per, share = loop.instructions / max(done, 1), 100 * done / loop.instructions
    mix = _say("loop.mix", instructions=loop.instructions, done=done, what=what, share=share)
    parts = [mix.given(per=per, sums=loop.accumulators, steps=loop.unroll)]
    if loop.bank_conflicts:
        parts.append(_say("loop.banks", cycles=loop.bank_conflicts))
    if loop.stall_cycles is not None:
        parts.append(_say("loop.alone", cycles=loop.stall_cycles))
    return clauses(parts)


# --- machine -----------------------------------------------------------------------------------


def render(
    kernels: Sequence[base.KernelSass],
    sources: Mapping[str, str],
    listings: Sequence[SassFunction],
    language: base.Language = base.ENGLISH,
) -> RenderableType:
    """Summaries of ``kernels``; the loops of ``listings`` instruction by instruction.

    sources: file name → text, for the lines behind the machine code; may be empty.
    """
    by_name = {function.name: function for function in listings}
    parts: list[RenderableType] = []
    for kernel in kernels:
        parts += [*_kernel(kernel, sources, language), ""]
        if kernel.name in by_name:
            parts += [*_listing(by_name[kernel.name], sources, language), ""]
    return Group(*parts)


def _kernel(
    kernel: base.KernelSass, sources: Mapping[str, str], language: base.Language
) -> Iterator[RenderableType]:
    count = language(_say("kernel.count", arch=kernel.arch, instructions=kernel.instructions))
    yield Text.assemble((text.clean(kernel_name(kernel.name)), "bold"), (f"  {count}", "dim"))
    warnings = []
    if kernel.local_loads or kernel.local_stores:
        warnings.append(_say("kernel.local", loads=kernel.local_loads, stores=kernel.local_stores))
    if kernel.tensor:
        warnings.append(_say("kernel.tensor", opcodes=", ".join(kernel.tensor)))
    for warning in warnings:
        yield Text(f"  {language(warning)}", style="bold yellow")
    if kernel.loop is None:
        yield Text(f"  {language(_say('kernel.no-loop'))}")
        return
    yield Text(f"  {language(_say('kernel.loop', loop=loop_sentence(kernel.loop)))}")
    yield Padding(_mix(kernel.loop, language), (0, 0, 0, 2), expand=False)
    yield Padding(_lines(kernel.loop, sources, language), (0, 0, 0, 2), expand=False)


def _mix(loop: base.SassLoop, language: base.Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(language(phrase("opcode")), no_wrap=True)
    each = phrase("for each tensor-core product") if loop.tensor else phrase("for each FFMA")
    for name in (phrase("count"), phrase("share"), each):
        table.add_column(language(name), justify="right")
    for entry in loop.mix:
        share = f"{100 * entry.count / loop.instructions:.1f} %"
        for_each = f"{entry.count / max(loop.tensor or loop.ffma, 1):.3g}"
        table.add_row(
            language(SENTENCES.words("instruction", entry.kind)),
            str(entry.count),
            share,
            for_each,
        )
    return table


def _lines(loop: base.SassLoop, sources: Mapping[str, str], language: base.Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    products = phrase("products") if loop.tensor else verbatim("FFMA")
    for name in (phrase("line"), phrase("instructions"), products):
        table.add_column(language(name), justify="right", no_wrap=True)
    table.add_column(language(phrase("source")))
    several = len({line.file for line in loop.lines}) > 1
    for line in loop.lines:
        done = line.tensor if loop.tensor else line.ffma
        source = source_line(sources, line.file, line.line)
        table.add_row(
            f"{text.clean(line.file)}:{line.line}" if several else str(line.line),
            str(line.instructions),
            str(done) if done else "",
            Text(source, no_wrap=True, overflow="ellipsis"),
        )
    return table


def source_line(sources: Mapping[str, str], file: str | None, line: int | None) -> str:
    """The text of a source line, "" when it is not available."""
    rows = sources.get(file or "", "").splitlines()
    return text.clean(rows[line - 1].strip()) if line and line <= len(rows) else ""


def _listing(
    function: SassFunction, sources: Mapping[str, str], language: base.Language
) -> Iterator[RenderableType]:
    yield Text(language(_say("kernel.legend")), style="dim")
    for (file, line), items in groupby(main_loop_code(function), lambda i: (i.file, i.line)):
        if line is not None:
            source = source_line(sources, file, line)
            yield Text(f"{text.clean(file or '')}:{line}  {source}", "cyan")
        for item in items:
            stall = waits = ""
            if item.control is not None:
                stall = str(item.control.stall)
                if item.control.write_barrier is not None:
                    stall += f" w{item.control.write_barrier}"
                waits = "".join(map(str, item.control.waits))
            what = f"{item.guard or '':>5} {item.opcode} {', '.join(item.operands)}"
            yield Text(
                f"  {item.address:05x} {stall:>5} {'?' + waits if waits else '':<5} {what}",
                no_wrap=True,
                overflow="ellipsis",
            )


# --- long table --------------------------------------------------------------------------------

_NARROWEST = 8  # characters of a column that gives way
_TITLE, _HEADER = Style(italic=True), Style(bold=True)


class LongTable:
    """Columns where nothing stands are left out.

    columns: header, and whether numbers stand in it. Where there is too little room, the column
    ``spare`` is left out, ``prose`` goes below the rows, and then those of give_way end in "…",
    the first one first.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[tuple[str, bool]],
        give_way: Sequence[int],
        prose: int | None = None,
        spare: int | None = None,
    ) -> None:
        self._title = title
        self._columns = columns
        self._give_way = give_way
        self._prose = prose
        self._spare = spare
        self._rows: list[tuple[Sequence[str], Style | None]] = []

    def add(self, cells: Sequence[str], style: str = "") -> None:
        """A row; no cell holds a line break."""
        self._rows.append((cells, Style.parse(style) if style else None))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        header = [name for name, _ in self._columns]
        columns = list(zip(*(cells for cells, _ in self._rows), strict=True))
        widths = [
            max(map(_width, (name, *cells))) if any(cells) else 0
            for name, cells in zip(header, columns, strict=False)
        ] or list(map(_width, header))
        over = sum(widths) + 2 * sum(map(bool, widths)) - options.max_width
        for at in (self._spare, self._prose):
            if at is not None and over > 0 and widths[at]:
                over -= widths[at] + 2
                widths[at] = 0
        below = self._prose if self._prose is not None and not widths[self._prose] else None
        for at in self._give_way:
            less = min(max(0, over), max(0, widths[at] - _NARROWEST))
            widths[at] -= less
            over -= less
        if self._title:
            yield Segment(f"{self._title}\n", _TITLE)
        yield Segment("\n")
        yield self._line(header, widths, _HEADER)
        yield Segment(f" {'─' * (sum(widths) + 2 * (sum(map(bool, widths)) - 1))} \n")
        for cells, style in self._rows:
            yield self._line(cells, widths, style)
            if below is not None and cells[below]:
                for line in Text(cells[below]).wrap(console, options.max_width - 4):
                    yield Segment(f"    {line.plain.rstrip()}\n", style)

    def _line(self, cells: Sequence[str], widths: Sequence[int], style: Style | None) -> Segment:
        filled = []
        for cell, width, (_, number) in zip(cells, widths, self._columns, strict=True):
            if _width(cell) > width:
                short = Text(cell)
                short.truncate(width, overflow="ellipsis")
                cell = short.plain
            space = " " * (width - _width(cell))
            if width:
                filled.append(space + cell if number else cell + space)
        return Segment(f" {'  '.join(filled)}".rstrip() + "\n", style)


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)
