"""Machine code → terminal: the main loop of each kernel, its mix, and its source lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.model import KernelSass, SassLoop
from grader.model.names import kernel_name
from grader.performance.sass import Function, main_loop_code
from grader.report import text
from grader.report.loop import loop_sentence

_LEGEND = (
    "stall: cycles before the warp's next instruction (control code); w: result guarded by this "
    "scoreboard; ?: waits for these scoreboards"
)


def render(
    kernels: Sequence[KernelSass], sources: Mapping[str, str], listings: Sequence[Function]
) -> RenderableType:
    """Summaries of ``kernels``; the loops of ``listings`` instruction by instruction.

    sources: file name → text, for the lines behind the machine code; may be empty.
    """
    by_name = {function.name: function for function in listings}
    parts: list[RenderableType] = []
    for kernel in kernels:
        parts += [*_kernel(kernel, sources), ""]
        if kernel.name in by_name:
            parts += [*_listing(by_name[kernel.name], sources), ""]
    return Group(*parts)


def _kernel(kernel: KernelSass, sources: Mapping[str, str]) -> Iterator[RenderableType]:
    yield Text.assemble(
        (text.clean(kernel_name(kernel.name)), "bold"),
        (f"  {kernel.arch}, {kernel.instructions} instructions", "dim"),
    )
    for warning in _warnings(kernel):
        yield Text(f"  {warning}", style="bold yellow")
    if kernel.loop is None:
        yield Text("  no loop with FFMA in it")
        return
    yield Text("  main loop: " + loop_sentence(kernel.loop))
    yield Padding(_mix(kernel.loop), (0, 0, 0, 2), expand=False)
    yield Padding(_lines(kernel.loop, sources), (0, 0, 0, 2), expand=False)


def _warnings(kernel: KernelSass) -> Iterator[str]:
    if kernel.local_loads or kernel.local_stores:
        yield (
            f"local memory: {kernel.local_loads} loads (LDL), {kernel.local_stores} stores (STL): "
            "registers that were spilled, or an array indexed by a variable"
        )
    if kernel.tensor:
        yield f"tensor cores: {', '.join(kernel.tensor)}"


def _mix(loop: SassLoop) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("opcode", no_wrap=True)
    done, what = (loop.tensor, "product") if loop.tensor else (loop.ffma, "FFMA")
    for name in ("count", "share", f"for each {what}"):
        table.add_column(name, justify="right")
    for entry in loop.mix:
        table.add_row(
            entry.kind,
            str(entry.count),
            f"{100 * entry.count / loop.instructions:.1f} %",
            f"{entry.count / max(done, 1):.3g}",
        )
    return table


def _lines(loop: SassLoop, sources: Mapping[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("line", "instructions", "products" if loop.tensor else "FFMA"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("source")
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


def _listing(function: Function, sources: Mapping[str, str]) -> Iterator[RenderableType]:
    yield Text(_LEGEND, style="dim")
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
