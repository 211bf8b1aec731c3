"""Machine code → terminal: the main loop of each kernel, its mix, and its source lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.language import ENGLISH, Language
from grader.model import KernelSass, Message, SassLoop, phrase, verbatim
from grader.model.names import kernel_name
from grader.performance.sass import Function, main_loop_code
from grader.report import text
from grader.report.loop import loop_sentence

_LEGEND = phrase(
    "stall: cycles before the warp's next instruction (control code); w: result guarded by this "
    "scoreboard; ?: waits for these scoreboards"
)


def render(
    kernels: Sequence[KernelSass],
    sources: Mapping[str, str],
    listings: Sequence[Function],
    language: Language = ENGLISH,
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
    kernel: KernelSass, sources: Mapping[str, str], language: Language
) -> Iterator[RenderableType]:
    count = phrase(
        "{arch}, {instructions} instructions", arch=kernel.arch, instructions=kernel.instructions
    )
    yield Text.assemble(
        (text.clean(kernel_name(kernel.name)), "bold"), (f"  {language(count)}", "dim")
    )
    for warning in _warnings(kernel):
        yield Text(f"  {language(warning)}", style="bold yellow")
    if kernel.loop is None:
        yield Text("  " + language(phrase("no loop with FFMA in it")))
        return
    loop = phrase("main loop: {loop}", loop=loop_sentence(kernel.loop))
    yield Text(f"  {language(loop)}")
    yield Padding(_mix(kernel.loop, language), (0, 0, 0, 2), expand=False)
    yield Padding(_lines(kernel.loop, sources, language), (0, 0, 0, 2), expand=False)


def _warnings(kernel: KernelSass) -> Iterator[Message]:
    if kernel.local_loads or kernel.local_stores:
        yield phrase(
            "local memory: {loads} loads (LDL), {stores} stores (STL): registers that were "
            "spilled, or an array indexed by a variable",
            loads=kernel.local_loads,
            stores=kernel.local_stores,
        )
    if kernel.tensor:
        yield phrase("tensor cores: {opcodes}", opcodes=", ".join(kernel.tensor))


def _mix(loop: SassLoop, language: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(language(phrase("opcode")), no_wrap=True)
    done = loop.tensor or loop.ffma
    each = phrase("for each tensor-core product") if loop.tensor else phrase("for each FFMA")
    for name in (phrase("count"), phrase("share"), each):
        table.add_column(language(name), justify="right")
    for entry in loop.mix:
        table.add_row(
            entry.kind,
            str(entry.count),
            f"{100 * entry.count / loop.instructions:.1f} %",
            f"{entry.count / max(done, 1):.3g}",
        )
    return table


def _lines(loop: SassLoop, sources: Mapping[str, str], language: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    products = phrase("products") if loop.tensor else verbatim("FFMA")
    for name in (phrase("line"), phrase("instructions"), products):
        table.add_column(language(name), justify="right", no_wrap=True)
    table.add_column(language(phrase("source")))
    several = len({line.file for line in loop.lines}) > 1
    for line in loop.lines:
        table.add_row(
            f"{text.clean(line.file)}:{line.line}" if several else str(line.line),
            str(line.instructions),
            str(done) if (done := line.tensor if loop.tensor else line.ffma) else "",
            Text(source_line(sources, line.file, line.line), no_wrap=True, overflow="ellipsis"),
        )
    return table


def source_line(sources: Mapping[str, str], file: str | None, line: int | None) -> str:
    """The text of a source line, "" when it is not available."""
    rows = sources.get(file or "", "").splitlines()
    return text.clean(rows[line - 1].strip()) if line and line <= len(rows) else ""


def _listing(
    function: Function, sources: Mapping[str, str], language: Language
) -> Iterator[RenderableType]:
    yield Text(language(_LEGEND), style="dim")
    for (file, line), items in groupby(main_loop_code(function), lambda i: (i.file, i.line)):
        if line is not None:
            yield Text(
                f"{text.clean(file or '')}:{line}  {source_line(sources, file, line)}", "cyan"
            )
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
