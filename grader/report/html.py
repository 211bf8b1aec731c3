"""Result → one self-contained page for the student. Pure: same result, same page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from grader import base
from grader.model import Advice, advice_title
from grader.report import charts, curve
from grader.report import formatting as text
from grader.report.bounds import scored_speed
from grader.report.drawing import Picture
from grader.report.groups import Highlighter, Line, group_sentence, group_sentences
from grader.report.kernels import kernel_rows
from grader.report.measurement import measurements
from grader.report.why import advice_sentence, answers
from grader.results import ProfileDocument, Result
from ptxsim.findings import LineCount, Severity, kernel_name, neighbours
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, counted, phrase, sentences

_MAX_BYTES = 400_000
_NAME = 200  # characters of names a student chose


class _Room(Record):
    """How much of each part the page shows; the result document holds everything."""

    findings: int  # groups of findings
    pictures: int
    message: int  # characters of one message; a longer one is a log, not a sentence
    log: int  # characters
    cases: int
    kernels: int


_AMPLE = _Room(findings=40, pictures=4, message=1500, log=20_000, cases=200, kernels=40)
_TIGHT = _Room(findings=10, pictures=2, message=300, log=4000, cases=40, kernels=10)


class Note(Record):
    """One mistake as the page shows it."""

    kind: Message
    severity: str
    severity_word: Message
    message: str
    place: str
    also: tuple[int, ...]  # other lines with the same mistake
    excerpt: tuple[Line, ...]
    picture: Picture | None


def render(
    result: Result,
    sources: Mapping[str, str],
    language: base.Language = base.ENGLISH,
    profile: ProfileDocument | None = None,
) -> str:
    """The page as a text of at most 400 KB.

    sources: file name → text, for excerpts and the listing; may be empty. profile: what
    ``grade profile`` found of the same source.
    """
    whole = _render(result, sources, _AMPLE, language, profile)
    if len(whole.encode()) <= _MAX_BYTES:
        return whole
    return _render(result, {}, _TIGHT, language, profile)  # an unusually large result


def _render(
    result: Result,
    sources: Mapping[str, str],
    room: _Room,
    language: base.Language,
    profile: ProfileDocument | None,
) -> str:
    findings = text.for_students(result.findings)
    highlighter, groups = Highlighter(sources), neighbours(findings)
    gpu, standing, why = result.environment.gpu, result.standing, result.explanation
    card = base.gpus.of(gpu) if gpu else None
    intensity = charts.intensity(result)
    cases = result.cases[: room.cases]

    def cut(value: str | Message) -> str:
        words = language(value) if isinstance(value, Message) else value
        return _cut(words, room.message)

    student = _cut(base.one_line(result.submission.student), _NAME)
    return text.page(
        "report.html.j2",
        language,
        result=result,
        title=f"{student} · {result.lab.id}",
        student=student,
        created=result.created[:16].replace("T", " ") + " UTC",
        verdict_word=text.VERDICT_WORDS[result.verdict],
        tone=_tone(result.verdict),
        summary=_summary(result, room, language),
        no_score=text.NO_SCORE_ON_CPU,
        score_block=text.score_block(result, language),
        standing=text.standing(standing, result.problem) if standing else NOTHING,
        ladder=charts.neighbours(standing, result.problem.baseline, language) if standing else None,
        curves=curve.pictures(result, language),
        next_points=curve.next_sentence(result),
        groups=group_sentences(result),
        throughput=charts.throughput(result.cases, result.problem, language),
        problem=result.problem,
        size_header=text.size_header(result.problem),
        size=base.size_text,
        timed=measurements(result),
        roofline=charts.roofline(intensity, card, _best(result), language) if intensity else None,
        traffic=_traffic(result.lines) if result.lines else (),
        cases=cases,
        hidden_cases=max(0, len(result.cases) - room.cases),
        case_tone=lambda case: _tone(case.verdict),
        error_ratio=text.error_ratio,
        told=text.told(cases),
        mismatch=text.mismatch,
        wrong=text.wrong,
        cut=cut,
        pictures=[
            Picture(
                caption=text.picture_caption(case, error),
                image=charts.tile_picture(case, error, language),
            )
            for case, error in text.telling_maps(cases)[: room.pictures]
        ]
        + [
            Picture(
                caption=text.STRIPS_DRAWN,
                image=charts.strips_picture(case, case.error.strips, language),
            )
            for case in cases
            if case.error and case.error.strips
        ],
        notes=[_note(group, highlighter, room, language) for group in groups[: room.findings]],
        hidden_findings=sum(map(len, groups[room.findings :])),
        listings=highlighter.listings(findings, result.lines),
        kernels=[
            (_cut(kernel_name(row.kernel.name), _NAME), row)
            for row in kernel_rows(result)[: room.kernels]
        ],
        tile=_tile(result, language),
        answers=answers(result, sources, profile),
        limits=_limits(result, language),
        unexplained=cut(why.missing or NOTHING) if why else "",
        fix_first=cut(text.fix_first(result)),
        advice=[_advised(each, highlighter, room, language) for each in why.advice] if why else [],
        accesses=[charts.bank_map(each, language) for each in why.accesses] if why else [],
        log=_cut(result.build.log.strip(), room.log) if result.build else "",
    )


def _cut(value: str, length: int) -> str:
    return value if len(value) <= length else value[: length - 1] + "…"


def _tone(verdict: base.Verdict | None) -> str:
    if verdict is None or verdict is base.Verdict.IE:
        return "neutral"
    return "good" if verdict is base.Verdict.AC else "bad"


def _summary(result: Result, room: _Room, language: base.Language) -> str:
    """The result in one sentence."""
    if result.error:
        return _cut(language(result.error), room.message)
    right = sum(case.verdict is base.Verdict.AC for case in result.cases)
    if result.verdict is base.Verdict.AC:
        all_right = counted(
            "The one size is right.", "All {count} sizes are right.", len(result.cases)
        )
        return language(all_right)
    some = phrase("{right} of {count} sizes are right.", right=right, count=len(result.cases))
    failed = next((case for case in result.cases if case.verdict is result.verdict), None)
    if failed is None:
        hidden = [each for each in result.groups if each.name == "hidden"]
        return language(sentences([some, *(group_sentence(each, result) for each in hidden)]))
    what = language(failed.message or text.VERDICT_WORDS[result.verdict])
    first = phrase(
        "First: {size}: {what}", size=base.size_text(failed.size), what=_cut(what, room.message)
    )
    return language(sentences([some, first]))


def _tile(result: Result, language: base.Language) -> Picture | None:
    found = next((case.tile for case in reversed(result.cases) if case.tile), None)
    return charts.thread_tile(found, language) if found else None


def _limits(result: Result, language: base.Language) -> Markup | None:
    why = result.explanation
    if why is None or not why.bounds:
        return None
    speed = scored_speed(result, why)
    return charts.limits(why.bounds[0], speed, result.problem.unit, language)


def _best(result: Result) -> float | None:
    """The scored TFLOPS at the largest timed size, if the problem counts operations."""
    if result.problem.counts != "operations":
        return None
    timed = [(case, case.timing) for case in result.cases if case.timing]
    largest = max(timed, key=lambda pair: pair[0].amount, default=None)
    return largest[1].scored_speed * result.problem.scale / 1e12 if largest else None


def _note(
    group: Sequence[base.Finding], highlighter: Highlighter, room: _Room, language: base.Language
) -> Note:
    first = group[0]
    lines = {finding.line for finding in group if finding.line}
    return Note(
        kind=base.kind_words(first.kind),
        severity=first.severity.value,
        severity_word=base.severity_words(first.severity),
        message=_cut(language(first.message), room.message),
        place=_cut(language(text.place(first)), _NAME),
        also=tuple(finding.line for finding in group[1:] if finding.line is not None),
        excerpt=highlighter.excerpt(first.file, lines),
        picture=charts.race(first.message, language),
    )


def _advised(
    advice: Advice, highlighter: Highlighter, room: _Room, language: base.Language
) -> Note:
    """A piece of advice, with the line it is about."""
    return Note(
        kind=advice_title(advice),
        severity=Severity.NOTE.value,
        severity_word=base.severity_words(Severity.NOTE),
        message=_cut(advice_sentence(advice, language), room.message),
        place=_cut(text.source_line(advice.file, advice.line), _NAME) if advice.file else "",
        also=(),
        excerpt=highlighter.excerpt(advice.file, {advice.line} if advice.line else set()),
        picture=charts.bank_map(advice.banks, language) if advice.banks else None,
    )


def _traffic(lines: Sequence[LineCount]) -> tuple[tuple[Message, str, Message], ...]:
    """(quantity, value, what it means), summed over the simulated run."""

    def total(field: str) -> int:
        return sum(getattr(line, field) for line in lines)

    requests, sectors = total("global_requests"), total("global_sectors")
    shared, issued = total("shared_requests"), total("instructions")
    values = {
        "sectors": f"{sectors / requests:.3g}" if requests else "–",
        "bytes": f"{100 * total('global_bytes') / (32 * sectors):.0f} %" if sectors else "–",
        "flops": f"{total('flops') / issued:.3g}" if issued else "–",
        "wavefronts": f"{total('shared_wavefronts') / shared:.3g}" if shared else "",
    }
    say = text.SENTENCES.say
    return tuple(
        (say(f"traffic.{name}"), value, say(f"traffic.{name}-why"))
        for name, value in values.items()
        if value
    )
