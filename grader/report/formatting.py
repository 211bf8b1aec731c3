"""Words and short texts that all renderers share."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from grader import base
from grader.base import Sentences
from grader.results import ByModel, CaseResult, Modes, Result, Standing, StandingRung
from ptxsim.findings import Severity
from ptxsim.findings import clean as clean
from ptxsim.findings import place as place
from ptxsim.findings import places as places
from ptxsim.findings import source_line as source_line
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, clauses, listed, phrase, verbatim

SENTENCES = Sentences.of(Path(__file__).with_name("sentences.toml"))
_say = SENTENCES.say
VERDICT_WORDS = {
    base.Verdict.AC: phrase("accepted"),
    base.Verdict.WA: phrase("wrong answer"),
    base.Verdict.CE: phrase("compile error"),
    base.Verdict.RE: phrase("runtime error"),
    base.Verdict.TLE: phrase("time limit exceeded"),
    base.Verdict.FE: phrase("not the interface the lab asks for"),
    base.Verdict.RF: phrase("forbidden by the lab's rules"),
    base.Verdict.IE: phrase("the grader failed; this says nothing about the submission"),
}
NO_SCORE_ON_CPU = phrase(
    "No performance score: the simulator on the CPU checks correctness; only a GPU can be timed."
)
_NAMED = 3  # sizes with the same message that are listed
_WRONG_ELEMENTS = {
    base.wrong_elements(1, 1).text: phrase("elements are wrong"),
    base.wrong_elements(1, 2).text: phrase("elements are wrong"),
    "{count} of them still NaN": phrase("some of them still NaN"),
}


class Told(Record):
    """A message and the sizes that it is about."""

    sizes: Message
    message: Message
    first: CaseResult


def told(cases: Sequence[CaseResult]) -> tuple[Told, ...]:
    """Every message once, in the order of the sizes; of those that differ in numbers the first."""
    groups: dict[Message, list[CaseResult]] = {}
    for case in cases:
        if case.message:
            groups.setdefault(_without_numbers(case.message), []).append(case)
    found = []
    for first, *others in groups.values():
        words, sizes = first.message, _some_sizes([first, *others])
        shared = _without_amounts(words)
        if others and all(_without_amounts(each.message) == shared for each in others):
            words = shared
        elif others:
            alike = _some_sizes(others)
            sizes = _say("sizes.alike", size=base.size_text(first.size), others=alike)
        found.append(Told(sizes=sizes, message=words, first=first))
    return tuple(found)


def _some_sizes(cases: Sequence[CaseResult]) -> Message:
    names = listed(verbatim(base.size_text(case.size)) for case in cases[:_NAMED])
    more = len(cases) - _NAMED
    return _say("sizes.more", count=more, names=names, all=len(cases)) if more > 0 else names


def passing(cases: Sequence[CaseResult]) -> Message:
    """``1×1×1, 2×3×5, 33×257×9 and 7 more sizes: right, error / tolerance at most 0.30``."""
    sizes = _some_sizes(cases)
    errors = [case for case in cases if case.error and case.error.max is not None]
    if not errors:
        return _say("sizes.right", sizes=sizes)
    worst = max((error_ratio(case) for case in errors), key=lambda ratio: float(str(ratio)))
    return _say("sizes.right-at-most", sizes=sizes, worst=worst)


def _without_amounts(message: Message) -> Message:
    if message.text in _WRONG_ELEMENTS:
        return _WRONG_ELEMENTS[message.text]
    args = {
        name: _without_amounts(each) if isinstance(each, Message) else each
        for name, each in message.args.items()
    }
    return msgspec.structs.replace(message, args=args)


def _without_numbers(message: Message) -> Message:
    plain = _without_amounts(message)
    args = {
        name: _without_numbers(each) if isinstance(each, Message) else each
        for name, each in plain.args.items()
        if not isinstance(each, int | float)
    }
    return msgspec.structs.replace(plain, args=args)


def wrong(case: CaseResult) -> Message:
    """``9 of 24``: elements of the output; empty when none is wrong."""
    if case.error is None or not case.error.wrong:
        return NOTHING
    return phrase("{part} of {whole}", part=case.error.wrong, whole=math.prod(case.error.shape))


def error_ratio(case: CaseResult) -> Message:
    """The largest error in units of the tolerance; of an exact problem, the error itself."""
    if case.error is None:
        return NOTHING
    if case.error.max is None:
        return phrase("NaN or ∞")
    ratio = case.error.max / case.error.tolerance if case.error.tolerance else case.error.max
    return verbatim(f"{ratio:.2f}" if ratio < 1000 else f"{ratio:.0e}")


def size_name(size: base.Dims) -> str:
    """``8192`` for a cube, else ``129×65×33``."""
    extents = set(size.values())
    return f"{extents.pop()}" if len(extents) == 1 else base.size_text(size)


def size_header(problem: base.ProblemInfo) -> str:
    """``M×N×K``."""
    return "×".join(name.upper() for name in problem.dims)


def telling_maps(cases: Sequence[CaseResult]) -> list[tuple[CaseResult, base.ErrorStats]]:
    """Cases whose pattern of wrong tiles is informative, the largest outputs first."""
    found = [(each, each.error) for each in cases if each.error]
    found = [pair for pair in found if "." in "".join(pair[1].tile_map)]
    return sorted(found, key=lambda pair: -math.prod(pair[1].shape))


def picture_caption(case: CaseResult, error: base.ErrorStats) -> Message:
    """Explain a map of wrong elements: ``C of 64×64×32, each sign is 2×2 elements``."""
    edge = error.tile_edge
    each = "element" if edge <= 1 else "tile" if len(error.shape) == 2 else "row"
    size, elements = base.size_text(case.size), _say(f"map.{each}", edge=edge)
    return _say("map.caption", operand=error.operand, size=size, elements=elements)


STRIPS = phrase(
    "What wrong elements hold: . as it should be, - missing, 2 several times or with another "
    "factor, x something else in its place, + several of these, o there though it should not be"
)


STRIPS_DRAWN = phrase(
    "What wrong elements hold: filled is missing; half-filled is there several times, with another "
    "factor, in the place of something else, or though it should not be"
)


def strip_caption(case: CaseResult, strip: base.Strip) -> Message:
    """``C[row 3, column 5] of 64×64×32, terms of A·B, 2 in a sign``."""
    words = phrase("{element} of {size}, of {operand}")
    if strip.edge > 1:
        words = phrase("{element} of {size}, of {operand}, {edge} in a sign", edge=strip.edge)
    if strip.corner:
        corner = base.element_words(strip.corner)
        words = phrase("{element} of {size}, of {operand} from {corner} on", corner=corner)
    element = base.element_words(strip.element)
    return words.given(element=element, size=base.size_text(case.size), operand=strip.operand)


def mismatch(case: CaseResult) -> Message:
    """``first wrong element: C[row 3, column 0] is nan, should be 1.5``, or nothing."""
    first = case.error.first_mismatch if case.error else None
    if first is None:
        return NOTHING
    element = base.element_words(first.element)
    kind = "mismatch.whole" if isinstance(first.want, int) else "mismatch.first"
    return _say(kind, element=element, got=first.got_text, want=first.want)


def for_students(findings: Sequence[base.Finding]) -> tuple[base.Finding, ...]:
    """Leave out what only instructors need: it is in the document."""
    return tuple(each for each in findings if each.kind is not base.Kind.SECOND_BUILD)


def fix_first(result: Result) -> Message:
    """Why there is no advice on speed, and what to fix first; empty when there may be advice."""
    if result.explanation is not None or result.verdict in (base.Verdict.AC, base.Verdict.IE):
        return NOTHING
    if result.score and result.score.policy == "cases":  # a program's speed is nobody's business
        return NOTHING
    failed = next((case for case in result.cases if case.verdict is result.verdict), None)
    first = []
    if failed:
        size = base.size_text(failed.size)
        first.append(_say("fix.size", size=size, what=failed.message))
    # On a GPU the values may be right although the simulator found why they need not be.
    errors = [each for each in result.findings if each.severity is Severity.ERROR and each.line]
    places = [f"{each.file}:{each.line}" for each in errors]
    if errors and not any(place in str(said) for place in places for said in first):
        first.append(_say("fix.place", kind=base.kind_words(errors[0].kind), place=places[0]))
    return _say("fix.first", what=clauses(first)) if first else NOTHING


def standing(standing: Standing, problem: base.ProblemInfo) -> Message:
    """``Between rung 9 (unrolled) and rung 10 (strided 2x2) at 8192×8192×8192: …``."""
    size, percent = base.size_text(standing.size), 100 * standing.ratio
    own = _say("standing.own", percent=percent, baseline=problem.baseline, size=size)
    if not standing.ahead:
        assert standing.below
        return _say("standing.fastest", own=own, rung=_rung(standing.below))
    ahead = _rung(standing.ahead[-1])
    if standing.below is None:
        return _say("standing.slowest", own=own, rung=ahead)
    return _say("standing.between", own=own, below=_rung(standing.below), ahead=ahead)


def _rung(rung: StandingRung) -> Message:
    words = _say("standing.rung")
    if rung.ratio is not None:
        words = _say("standing.timed-rung", percent=100 * rung.ratio)
    return words.given(number=rung.number, name=rung.name.partition("_")[2].replace("_", " "))


def score_block(result: Result, language: base.Language = base.ENGLISH) -> str:
    """The score in the published judge's format, or "" when there is none."""
    if result.by_model:
        return "\n".join(map(language, _by_model(result, result.by_model)))
    if result.score is None:
        return ""
    if result.score.policy == "cases":
        return language(_say("score.cases", total=result.score.total, most=result.score.max))
    weights = {share.case: share.weight for share in result.score.shares}
    weighted = len(set(weights.values())) > 1
    name = "score.weighted" if weighted else "score.unweighted"
    lines = [_say(name, total=result.score.total, most=result.score.max), _say("score.judgement")]
    figures = {"unit": result.problem.unit, "baseline": result.problem.baseline.lower()}
    timed = [(case, case.timing) for case in result.cases if case.timing is not None]
    for case, timing in timed:
        size = base.size_text(case.size)
        if len(timed) > 1 and weighted:
            lines.append(_say("score.size-weight", size=size, weight=weights[case.id]))
        elif len(timed) > 1:
            lines.append(_say("score.size", size=size))
        for i, run in enumerate(timing.runs, 1):
            words = _say("score.run", **figures, own=run.speed, theirs=run.baseline_speed)
            lines.append(words.given(ordinal=_ordinal(i)))
        own = max(run.speed for run in timing.runs)
        lines.append(_say("score.max", **figures, own=own, theirs=timing.baseline_speed))
        if share := result.score.of_roofline.get(case.id):
            words = _say("score.roofline", percent=100 * share, unit=result.problem.unit)
            lines.append(words.given(roof=timing.scored_speed / share))
        if timing.modes:
            lines.append(_say("score.modes", modes=two_speeds(timing.modes, result.problem.unit)))
    return "\n".join(map(language, lines))


def _by_model(result: Result, model: ByModel) -> Iterator[Message]:
    """The points that the model gives, and the speeds that it expects."""
    if model.ungraded:
        yield phrase("not gradable for speed: {why}", why=model.ungraded)
    if result.score is None:
        return
    total, most = result.score.total, result.score.max
    yield _say("score.model", total=total, most=most, gpu=model.gpu)
    for curve in result.score.curves:
        if (found := curve.expected) is not None:
            words = _say("score.expected", size=base.size_text(found.size), low=found.low)
            words = words.given(high=found.high, unit=result.problem.unit)
            yield words.given(percent=100 * curve.position)


def two_speeds(modes: Modes, unit: str) -> Message:
    """The effect on the score when the repetitions of a size have two speeds."""
    words = _say("two-speeds.slower", fast=modes.fast.speed, share=100 * modes.fast.share)
    return words.given(unit=unit, slow=modes.slow.speed)


_ORDINALS = {1: phrase("{number}st"), 2: phrase("{number}nd"), 3: phrase("{number}rd")}


def _ordinal(number: int) -> Message:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return _ORDINALS.get(last, phrase("{number}th")).given(number=number)


def page(template: str, language: base.Language = base.ENGLISH, /, **context: object) -> str:
    """Render a template as self-contained HTML, without control characters and direction overrides.

    ``context`` may hold messages, which templates print, or pass on as ``message|said``. A text of
    a document that the catalogues know as a whole is printed as ``text|translated``.
    """
    from grader.report.environments import environment  # jinja2 takes a tenth of a second to load

    template_of = environment(language).get_template(template)
    return clean(template_of.render(language=language.tag, **context))
