"""Result → terminal: verdict, cases, mistakes with their places, kernels, score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.compile.diagnostics import coloured
from grader.errors import one_line
from grader.model import CaseResult, Finding, Result, Severity, Verdict, size_text
from grader.model.names import kernel_name
from grader.report import text
from grader.report.curve import next_sentence
from grader.report.groups import CONTEXT, neighbours
from grader.report.kernels import KernelRow, kernel_rows
from grader.report.measurement import measurements, sentence
from grader.report.size_groups import group_sentences
from grader.report.why import advice_sentence, speed_sentence

_MISMATCHES = 3  # sizes whose first wrong element is shown; the document has the others
_MESSAGES = 6  # about sizes
_PICTURES = 1  # maps shown, of the largest output; more add nothing
_FINDINGS = 10  # shown in full; the document holds all
_LOG_LINES = 80
_STYLES = {Verdict.AC: "bold green", Verdict.IE: "bold yellow"}
_SEVERITIES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}


def render(result: Result, sources: Mapping[str, str]) -> RenderableType:
    """Everything a student needs to see of one result.

    sources: file name → text, for excerpts; may be empty.
    """
    parts: list[RenderableType] = [_headline(result)]
    log = result.build.log.strip() if result.build else ""
    if result.error and not any(line and result.error.startswith(line) for line in log.split("\n")):
        parts.append(_indented(Text(text.clean(result.error))))
    if log:
        parts.append(_indented(_log(log)))
    if result.cases:
        parts += ["", _cases(result)]
        parts += _messages(result.cases)
    parts += _wrong_values(result.cases)
    parts += _findings(result.findings, sources)
    if result.build and result.build.kernels:
        parts += ["", _kernels(kernel_rows(result))]
    parts += _why(result)
    sentences = group_sentences(result)
    if sentences:
        parts += ["", *map(Text, sentences)]
    if result.score:
        parts += ["", Text(text.score_block(result))]
        gpu = result.environment.gpu
        parts += [
            _indented(Text(sentence(m, result.problem, gpu), style="dim"))
            for m in measurements(result)
        ]
        if ahead := next_sentence(result):
            parts.append(Text(ahead))
        if result.standing:
            parts.append(
                Text(f"On the reference ladder, {text.standing(result.standing, result.problem)}")
            )
    elif result.environment.device == "cpu" and result.cases:
        parts += ["", Text(text.NO_SCORE_ON_CPU, style="dim")]
    return Group(*parts)


def verdict_text(verdict: Verdict) -> Text:
    """``AC accepted`` in its colour."""
    return Text(
        f"{verdict.value} {text.VERDICT_WORDS[verdict]}", style=_STYLES.get(verdict, "bold red")
    )


def _headline(result: Result) -> Text:
    where = "simulator on the CPU" if result.environment.device == "cpu" else "GPU"
    return Text.assemble(
        (one_line(result.submission.student), "bold"),
        ": ",
        verdict_text(result.verdict),
        (f"  ({result.lab.id}, {where}, sandbox: {result.environment.sandbox})", "dim"),
    )


def _log(log: str) -> Text:
    lines = text.clean(log).split("\n")
    if len(lines) > _LOG_LINES:
        hidden = len(lines) - _LOG_LINES
        lines = [*lines[:_LOG_LINES], f"… {hidden} more lines in the result document"]
    return Text.from_ansi(coloured("\n".join(lines)))


# --- cases ------------------------------------------------------------------------------------


def _cases(result: Result) -> Table:
    cases = result.cases
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(text.size_header(result.problem), no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    wrong = any(map(text.wrong, cases))
    if wrong:
        table.add_column("wrong", justify="right")
    table.add_column("error / tolerance", justify="right")
    table.add_column("seconds", justify="right", no_wrap=True)
    for case in cases:
        verdict = case.verdict
        style = _STYLES.get(verdict, "bold red") if verdict else "dim"
        table.add_row(
            size_text(case.size),
            Text(verdict.value if verdict else "not run", style=style),
            *([text.wrong(case)] if wrong else []),
            text.error_ratio(case),
            f"{case.seconds:.2f}" if case.seconds is not None else "",
        )
    return table


def _messages(cases: tuple[CaseResult, ...]) -> Iterator[RenderableType]:
    """Below the table, where a long one has the whole width."""
    messages = text.told(cases)
    if messages:
        yield ""
    for each in messages[:_MESSAGES]:
        yield Text(f"{each.sizes}: {text.clean(each.message)}")
    if len(messages) > _MESSAGES:
        yield Text(f"… and {len(messages) - _MESSAGES} more messages in the result document")


def _wrong_values(cases: tuple[CaseResult, ...]) -> Iterator[RenderableType]:
    """First mismatches, and maps of the cases whose pattern of wrong tiles is informative."""
    wrong = [case for case in cases if case.error and case.error.wrong]
    if wrong:
        yield ""
    for case in wrong[:_MISMATCHES]:
        yield Text(f"{size_text(case.size)}: {text.mismatch(case)}")
    if len(wrong) > _MISMATCHES:
        yield Text(f"… and {len(wrong) - _MISMATCHES} more sizes with wrong elements")
    telling = [case for case in wrong if case.error and "." in "".join(case.error.tile_map)]
    for case in sorted(
        telling, key=lambda case: -math.prod(case.error.shape if case.error else ())
    )[:_PICTURES]:
        yield ""
        yield _picture(case)


def _picture(case: CaseResult) -> Group:
    assert case.error is not None
    legend = f"{text.picture_caption(case)}: "
    picture = Text("\n".join(case.error.tile_map))
    picture.highlight_regex(r"#+", "red")
    picture.highlight_regex(r"\++", "yellow")
    picture.highlight_regex(r"\.+", "green")
    return Group(Text(legend + ". right, + partly wrong, # wrong"), _indented(picture))


# --- findings ---------------------------------------------------------------------------------


def _findings(
    findings: tuple[Finding, ...], sources: Mapping[str, str]
) -> Iterator[RenderableType]:
    groups = neighbours(findings)
    for group in groups[:_FINDINGS]:
        first = group[0]
        yield ""
        yield Text.assemble(
            (f"{first.severity.value}: {first.kind.value}: ", _SEVERITIES[first.severity]),
            text.clean(first.message),
        )
        where = text.place(first)
        if len(group) > 1:
            where += f"; the same at {'lines' if len(group) > 2 else 'line'} " + ", ".join(
                str(finding.line) for finding in group[1:]
            )
        if where:
            yield _indented(Text(text.clean(where), style="dim"))
        excerpt = _excerpt(group, sources)
        if excerpt:
            yield _indented(excerpt)
    hidden = sum(map(len, groups[_FINDINGS:]))
    if hidden:
        yield Text(f"\n… and {hidden} more findings in the result document")


def _excerpt(group: list[Finding], sources: Mapping[str, str]) -> Text | None:
    """The marked lines that the group names, with a few lines around them."""
    source = sources.get(group[0].file or "")
    marked = [finding.line for finding in group if finding.line is not None]
    if source is None or not marked:
        return None
    lines = source.splitlines()
    if max(marked) > len(lines):
        return None
    first = max(1, min(marked) - CONTEXT)
    last = min(len(lines), max(marked) + CONTEXT)
    width = len(str(last))
    excerpt = Text(no_wrap=True, overflow="ellipsis")
    for number in range(first, last + 1):
        here = number in marked
        margin = f"{'>' if here else ' '} {number:>{width}} │ "
        excerpt.append(margin, "bold red" if here else "dim")
        excerpt.append(text.clean(lines[number - 1].expandtabs(4)), "bold" if here else "")
        excerpt.append("\n" if number < last else "")
    return excerpt


# --- why this speed ---------------------------------------------------------------------------


def _why(result: Result) -> Iterator[RenderableType]:
    """The bound, the resource that limits it, and what to try; the page has the rest."""
    why = result.explanation
    if why is None:
        first = text.fix_first(result)
        if first:
            yield Text("\n" + text.clean(first))
        return
    if why.missing is not None:
        yield Text(f"\nWhy this speed: unknown: {text.clean(why.missing)}", style="dim")
    for bound in why.bounds:
        yield Text.assemble(
            "\n" if bound is why.bounds[0] else "",
            (f"{bound.gpu}: ", "bold"),
            speed_sentence(result, why, bound),
        )
    for each in why.advice:
        place = f"{text.clean(text.source_line(each.file, each.line))}: " if each.file else ""
        yield Text.assemble(("\nnext: ", "bold cyan"), place, text.clean(advice_sentence(each)))


# --- kernels ----------------------------------------------------------------------------------


def _kernels(rows: tuple[KernelRow, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("kernel", overflow="fold")
    for name in ("block", "registers", "shared bytes", "spilled"):
        table.add_column(name, justify="right")
    table.add_column("warps on an SM (limit)")
    for row in rows:
        spilled = row.kernel.spill_bytes
        table.add_row(
            Text(text.clean(kernel_name(row.kernel.name))),
            row.block,
            str(row.kernel.registers),
            str(row.shared_bytes),
            Text(str(spilled), style="bold yellow" if spilled else ""),
            row.resident,
        )
    return table


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2), expand=False)
