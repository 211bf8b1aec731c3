"""Kernels as the assembler and the launches describe them, in the same words everywhere."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader import base
from grader.build import SassFunction
from grader.model import KernelSass, SassLoop, main_loop_code, summarise
from grader.report import formatting as text
from grader.report.formatting import SENTENCES
from grader.report.questions import limit_words
from grader.report.tables import table
from grader.results import LaunchKind, Result
from ptxsim.findings import kernel_name
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, clauses, phrase, verbatim

_say = SENTENCES.say


class KernelRow(Record):
    """One kernel in one shape of launch."""

    kernel: base.KernelInfo
    launch: LaunchKind | None  # null: not launched at the largest size, or not known
    shared_bytes: int  # static and dynamic, per block
    occupancy: base.gpus.Occupancy | None  # null: unknown, or not even one block fits

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


def kernel_rows(result: Result) -> tuple[KernelRow, ...]:
    """Every kernel of the build, once for each shape it was launched in."""
    if result.build is None:
        return ()
    sm = base.gpus.multiprocessor_of(result.build.arch)
    rows = []
    for kernel in result.build.kernels:
        launches = [launch for launch in result.launches if launch.kernel == kernel.name]
        for launch in launches or (None,):
            shared = kernel.shared_bytes + (launch.shared_bytes if launch else 0)
            held = base.gpus.occupancy(sm, kernel, launch) if sm and launch else None
            rows.append(
                KernelRow(kernel=kernel, launch=launch, shared_bytes=shared, occupancy=held)
            )
    return tuple(rows)


# --- loop --------------------------------------------------------------------------------------


def loop_sentence(loop: SassLoop, counts: str) -> Message:
    """Describe one iteration in a sentence. counts: what the problem counts."""
    done, what = (loop.tensor, "HMMA") if loop.tensor else (loop.ffma, "FFMA")
    if any(entry.kind == "HGMMA" for entry in loop.mix):
        what = "HGMMA"
    per, share = loop.instructions / max(done, 1), 100 * done / loop.instructions
    figures = {"instructions": loop.instructions, "done": done, "share": share}
    parts = [_say("loop.part", **figures, what=what)]
    if counts == "operations":
        figures |= {"per": per, "sums": loop.accumulators, "steps": loop.unroll}
        parts = [_say("loop.mix", **figures, what=what)]
    if loop.bank_conflicts:
        parts.append(_say("loop.banks", cycles=loop.bank_conflicts))
    if loop.stall_cycles is not None:
        parts.append(_say("loop.alone", cycles=loop.stall_cycles))
    return clauses(parts)


# --- machine -----------------------------------------------------------------------------------


def summaries(functions: Iterable[SassFunction]) -> tuple[KernelSass, ...]:
    return tuple(map(summarise, functions))


def render(
    kernels: Sequence[KernelSass],
    sources: Mapping[str, str],
    listings: Sequence[SassFunction],
    counts: str,
    language: base.Language = base.ENGLISH,
) -> RenderableType:
    """Summaries of ``kernels``; the loops of ``listings`` instruction by instruction.

    counts: what the problem counts, as ``Unit.of``. sources: file name → text, for the lines behind
    the machine code; may be empty.
    """
    by_name = {function.name: function for function in listings}
    parts: list[RenderableType] = []
    for kernel in kernels:
        parts += [*_kernel(kernel, sources, counts, language), ""]
        if kernel.name in by_name:
            parts += [*_listing(by_name[kernel.name], sources, language), ""]
    return Group(*parts)


def _kernel(
    kernel: KernelSass, sources: Mapping[str, str], counts: str, language: base.Language
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
    yield Text(f"  {language(_say('kernel.loop', loop=loop_sentence(kernel.loop, counts)))}")
    yield Padding(_mix(kernel.loop, counts, language), (0, 0, 0, 2), expand=False)
    yield Padding(_lines(kernel.loop, sources, language), (0, 0, 0, 2), expand=False)


def _mix(loop: SassLoop, counts: str, language: base.Language) -> Table:
    each = phrase("for each tensor-core product") if loop.tensor else phrase("for each FFMA")
    columns = 4 if counts == "operations" else 3  # elsewhere FFMA are not the unit of the work
    header = (phrase("opcode"), phrase("count"), phrase("share"), each)[:columns]
    rows = (
        (
            language(SENTENCES.words("instruction", entry.kind)),
            str(entry.count),
            f"{100 * entry.count / loop.instructions:.1f} %",
            f"{entry.count / max(loop.tensor or loop.ffma, 1):.3g}",
        )[:columns]
        for entry in loop.mix
    )
    return table(map(language, header), rows, words=(0,))


def _lines(loop: SassLoop, sources: Mapping[str, str], language: base.Language) -> Table:
    products = phrase("products") if loop.tensor else verbatim("FFMA")
    header = (phrase("line"), phrase("instructions"), products, phrase("source"))
    several = len({line.file for line in loop.lines}) > 1
    rows = []
    for line in loop.lines:
        done = line.tensor if loop.tensor else line.ffma
        place = f"{text.clean(line.file)}:{line.line}" if several else str(line.line)
        source = source_line(sources, line.file, line.line)
        shown = Text(source, no_wrap=True, overflow="ellipsis")
        rows.append((place, str(line.instructions), str(done) if done else "", shown))
    return table(map(language, header), rows, words=(3,))


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
