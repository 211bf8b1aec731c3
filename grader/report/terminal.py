"""Result → terminal: verdict, cases, mistakes with their places, kernels, score."""

from collections.abc import Iterator, Mapping
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader import base
from grader.build import coloured
from grader.model import AccessMap, Advice
from grader.report import formatting as text
from grader.report.bounds import access_sentence, speed_in_brief, speed_sentence
from grader.report.curve import next_sentence
from grader.report.groups import group_sentences
from grader.report.kernels import KernelRow, kernel_rows
from grader.report.measurement import measurements, sentence
from grader.report.tables import table
from grader.report.why import HINTS, advice_in_brief, advice_sentence, advice_shown, hint
from grader.results import CaseResult, Result
from ptxsim.findings import Severity, excerpt, kernel_name, neighbours
from ptxsim.text import phrase, verbatim

_say = text.SENTENCES.say
Detail = Literal["verdict", "brief", "all", "accesses", "1", "2", "3"]  # numbers: hints
_MISMATCHES = 3  # sizes whose first wrong element is shown; the document has the others
_MESSAGES = 6  # about sizes
_PICTURES = 1  # maps shown, of the largest output; more add nothing
_FINDINGS = 10  # shown in full; the document holds all
_LOG_LINES = 80
_STYLES = {base.Verdict.AC: "bold green", base.Verdict.IE: "bold yellow"}
_SEVERITIES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}


def render(
    result: Result,
    sources: Mapping[str, str],
    language: base.Language = base.ENGLISH,
    detail: Detail = "all",
) -> RenderableType:
    """Show one result: its verdict; or in brief what is well, in detail what is not, and the next
    step; or all.

    sources: file name → text, for excerpts; may be empty.
    """
    parts: list[RenderableType] = [_headline(result, language)]
    if detail == "verdict":
        return parts[0]
    whole = detail == "all"
    log = result.build.log.strip() if result.build else ""
    shown = tuple(line for line in log.split("\n") if line)
    if result.error and not str(result.error).startswith(shown):
        parts.append(_indented(Text(text.clean(language(result.error)))))
    if log:
        parts.append(_indented(_log(log, language)))
    cases = result.cases
    if not whole:
        cases = tuple(case for case in cases if case.verdict is not base.Verdict.AC)
        if passed := [case for case in result.cases if case.verdict is base.Verdict.AC]:
            parts.append(Text(language(text.passing(passed))))
    if any(map(text.wrong, cases)) or (whole and cases):
        parts += ["", _cases(result.problem, cases, language)]
    parts += _messages(cases, language)
    parts += _wrong_values(cases, language, _MISMATCHES if whole else 1)
    findings = result.findings if whole else text.for_students(result.findings)
    parts += _findings(findings, sources, language, _FINDINGS if whole else _FINDINGS // 3)
    if whole and result.build and result.build.kernels:
        parts += ["", _kernels(kernel_rows(result), language)]
    parts += _why(result, language) if whole else _next_step(result, language, detail)
    if groups := group_sentences(result):
        parts += ["", *(Text(language(each)) for each in groups)]
    if result.score or result.by_model:
        parts += ["", Text(text.score_block(result, language))]
        gpu = result.environment.gpu
        parts += [
            _indented(Text(language(sentence(m, result.problem, gpu)), style="dim"))
            for m in (measurements(result) if whole else ())
        ]
        if ahead := next_sentence(result):
            parts.append(Text(language(ahead)))
        if result.standing:
            standing = text.standing(result.standing, result.problem)
            words = phrase("On the reference ladder, {standing}", standing=standing)
            parts.append(Text(language(words)))
    elif result.environment.device == "cpu" and result.cases:
        parts += ["", Text(language(text.NO_SCORE_ON_CPU), style="dim")]
    return Group(*parts)


def verdict_text(verdict: base.Verdict, language: base.Language = base.ENGLISH) -> Text:
    """``AC accepted`` in its colour."""
    words = f"{verdict.value} {language(text.VERDICT_WORDS[verdict])}"
    return Text(words, style=_STYLES.get(verdict, "bold red"))


def _headline(result: Result, language: base.Language) -> Text:
    on_cpu = result.environment.device == "cpu"
    device = phrase("simulator on the CPU") if on_cpu else verbatim("GPU")
    where = _say("terminal.where", lab=result.lab.id, where=device)
    where = where.given(sandbox=result.environment.sandbox)
    return Text.assemble(
        (base.one_line(result.submission.student), "bold"),
        ": ",
        verdict_text(result.verdict, language),
        (f"  {language(where)}", "dim"),
    )


def _log(log: str, language: base.Language) -> Text:
    lines = text.clean(log).split("\n")
    if len(lines) > _LOG_LINES:
        hidden = _say("terminal.lines", count=len(lines) - _LOG_LINES)
        lines = [*lines[:_LOG_LINES], language(hidden)]
    return Text.from_ansi(coloured("\n".join(lines)))


# --- cases ------------------------------------------------------------------------------------


def _cases(
    problem: base.ProblemInfo, cases: tuple[CaseResult, ...], language: base.Language
) -> Table:
    wrong = (phrase("wrong"),) if any(map(text.wrong, cases)) else ()
    header = (phrase("verdict"), *wrong, phrase("error / tolerance"), phrase("seconds"))
    rows: list[tuple[str | Text, ...]] = []
    for case in cases:
        verdict = case.verdict
        style = _STYLES.get(verdict, "bold red") if verdict else "dim"
        rows.append(
            (
                base.size_text(case.size),
                Text(verdict.value if verdict else language(phrase("not run")), style=style),
                *([language(text.wrong(case))] if wrong else []),
                language(text.error_ratio(case)),
                f"{case.seconds:.2f}" if case.seconds is not None else "",
            )
        )
    names = (text.size_header(problem), *map(language, header))
    return table(names, rows, words=(0, 1))


def _messages(cases: tuple[CaseResult, ...], language: base.Language) -> Iterator[RenderableType]:
    """Below the table, where a long one has the whole width."""
    messages = text.told(cases)
    if messages:
        yield ""
    for each in messages[:_MESSAGES]:
        words = phrase("{sizes}: {what}", sizes=each.sizes, what=each.message)
        yield Text(text.clean(language(words)))
    if len(messages) > _MESSAGES:
        yield Text(language(_say("terminal.messages", count=len(messages) - _MESSAGES)))


def _wrong_values(
    cases: tuple[CaseResult, ...], language: base.Language, most: int
) -> Iterator[RenderableType]:
    """First mismatches, and maps of the cases whose pattern of wrong tiles is informative."""
    wrong = [case for case in cases if case.error and case.error.wrong]
    if wrong:
        yield ""
    for case in wrong[:most]:
        words = phrase("{size}: {what}", size=base.size_text(case.size), what=text.mismatch(case))
        yield Text(language(words))
    if len(wrong) > most:
        yield Text(language(_say("terminal.wrong-sizes", count=len(wrong) - most)))
    for case, error in text.telling_maps(wrong)[:_PICTURES]:
        caption = text.picture_caption(case, error)
        legend = phrase("{picture}: . right, + partly wrong, # wrong", picture=caption)
        picture = Text("\n".join(error.tile_map))
        for sign, colour in (("#", "red"), (r"\+", "yellow"), (r"\.", "green")):
            picture.highlight_regex(f"{sign}+", colour)
        yield ""
        yield Text(language(legend))
        yield _indented(picture)
    for case in wrong:
        yield from _strips(case, language)


def _strips(case: CaseResult, language: base.Language) -> Iterator[RenderableType]:
    """Draw what a few wrong elements hold of what they should, one below the other."""
    strips = case.error.strips if case.error else ()
    if strips:
        yield ""
        yield Text(language(text.STRIPS))
    for strip in strips:
        picture = Text(strip.signs)
        for sign, colour in (("-", "red"), ("[2xo+]", "yellow"), (r"\.", "green")):
            picture.highlight_regex(f"{sign}+", colour)
        yield _indented(Text(language(text.strip_caption(case, strip))))
        yield _indented(picture)


# --- findings ---------------------------------------------------------------------------------


def _findings(
    findings: tuple[base.Finding, ...],
    sources: Mapping[str, str],
    language: base.Language,
    most: int,
) -> Iterator[RenderableType]:
    groups = neighbours(findings)
    for group in groups[:most]:
        first = group[0]
        yield ""
        kind, severity = base.kind_words(first.kind), base.severity_words(first.severity)
        head = language(_say("terminal.finding", severity=severity, kind=kind))
        words = text.clean(language(first.message))
        yield Text.assemble((head, _SEVERITIES[first.severity]), words)
        if where := text.places(group):
            yield _indented(Text(text.clean(language(where)), style="dim"))
        if lines := _excerpt(group, sources):
            yield _indented(lines)
    if hidden := sum(map(len, groups[most:])):
        yield Text("\n" + language(_say("terminal.findings", count=hidden)))


def _excerpt(group: list[base.Finding], sources: Mapping[str, str]) -> Text:
    """The marked lines that the group names, with a few lines around them."""
    shown = Text(no_wrap=True, overflow="ellipsis")
    for line in excerpt(sources.get(group[0].file or ""), group):
        shown.append("\n" if shown else "")
        shown.append(line.margin, "bold red" if line.marked else "dim")
        shown.append(line.text, "bold" if line.marked else "")
    return shown


# --- why this speed ---------------------------------------------------------------------------


def _why(result: Result, language: base.Language) -> Iterator[RenderableType]:
    """The bound, the resource that limits it, and what to try; the page has the rest."""
    why = result.explanation
    if why is None:
        if first := text.fix_first(result):
            yield Text("\n" + text.clean(language(first)))
        return
    if why.missing is not None:
        unknown = phrase("Why this speed: unknown: {reason}", reason=why.missing)
        yield Text("\n" + text.clean(language(unknown)), style="dim")
    for bound in why.bounds:
        yield Text.assemble(
            "\n" if bound is why.bounds[0] else "",
            (language(phrase("{gpu}: ", gpu=bound.gpu)), "bold"),
            language(speed_sentence(result, why, bound)),
        )
    for each in why.advice:
        yield ""
        yield from _advised(each, advice_sentence(each, language, command=False), language)


def _next_step(result: Result, language: base.Language, detail: Detail) -> Iterator[RenderableType]:
    """The limit of the kernel on the first GPU, the course's own, and the first idea."""
    why = result.explanation
    if detail in HINTS:
        said = hint(result, detail)
        yield from _advised(said, advice_sentence(said, language, command=False), language)
    if why is None or detail in HINTS:
        return
    for bound in why.bounds[:1]:
        yield Text(language(speed_in_brief(result, bound)))
    for each in why.advice[:1]:
        yield from _advised(each, advice_in_brief(each, language), language)
    if why.advice:
        yield _indented(Text(language(phrase("all advice: -v")), style="dim"))
    for drawn in why.accesses if detail == "accesses" else ():
        yield from _lanes(drawn, language)


def _lanes(drawn: AccessMap, language: base.Language) -> Iterator[RenderableType]:
    """Where the lanes of a warp go, sixteen in a line."""
    yield Text("\n" + text.clean(language(access_sentence(drawn))))
    words = _say("access.sector-of" if drawn.in_global else "access.bank-of")
    for first in (0, 16):
        head = language(words.given(first=first, last=first + 15))
        row = drawn.lanes[first : first + 16]
        to = ("  –" if lane is None else f"{lane % 32:3}" for lane in row)
        yield _indented(Text(head + "".join(to)))


def _advised(advice: Advice, words: str, language: base.Language) -> Iterator[RenderableType]:
    """One idea; its command has a line of its own, where no terminal breaks it."""
    if advice.file:
        what = phrase("{place}: {what}", what=words)
        words = language(what.given(place=text.source_line(advice.file, advice.line)))
    yield Text.assemble((language(phrase("next: ")), "bold cyan"), text.clean(words))
    if shown := advice_shown(advice):
        yield _indented(Text(language(shown)))


# --- kernels ----------------------------------------------------------------------------------


def _kernels(rows: tuple[KernelRow, ...], language: base.Language) -> Table:
    figures = (phrase("block"), phrase("registers"), phrase("shared bytes"), phrase("spilled"))
    header = (phrase("kernel"), *figures, phrase("warps on an SM (limit)"))
    cells = (
        (
            Text(text.clean(kernel_name(row.kernel.name))),
            *(row.block, str(row.kernel.registers), str(row.shared_bytes)),
            Text(str(spilled := row.kernel.spill_bytes), style="bold yellow" if spilled else ""),
            language(row.resident),
        )
        for row in rows
    )
    return table(map(language, header), cells, words=(0, 5))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2), expand=False)
