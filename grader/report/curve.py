"""The score's curve: a picture with the submission on it, and what the next points cost."""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from markupsafe import Markup

from grader.base import Language, size_text
from grader.report.drawing import WIDTH, Picture, dot, level, line, polyline, svg, text
from grader.report.formatting import SENTENCES
from grader.results import CaseResult, Piece, Result, Score, SizeCurve, mean_points, most, points_at
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, clauses, phrase

_say = SENTENCES.say
_NEXT = 5.0  # points
_PICTURES = 4  # curves that are drawn; only milliseconds have more than one
_STEPS = 24  # straight parts of a bent piece
_HALVINGS = 60
_A_BIT = 1 + 1e-9  # further, so that rounding leaves no band's end ahead
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, WIDTH - 24.0, 16.0, 216.0


class Next(Record):
    """The speed that the next points need."""

    points: float  # how many more
    total: float  # with them
    faster: float  # all timed sizes, this many times as fast
    case: CaseResult  # the largest of them
    speed: float  # it would have
    more: float  # than it has


def next_points(result: Result) -> Next | None:
    """The next five points, or those that are left; None where none are left, or nothing scored.

    All timed sizes that are not hidden get faster by the same factor.
    """
    score = result.score
    if score is None or not score.curves or result.by_model:
        return None
    have, top = _earned(score, 1.0), _total(score, lambda curve: most(curve.pieces))
    wanted = min(have + _NEXT, top)
    if wanted - have < 0.005:
        return None
    faster = 2.0
    while _earned(score, faster) < wanted - 1e-9:
        faster *= 2
    slow, fast = 1.0, faster
    for _ in range(_HALVINGS):
        middle = (slow + fast) / 2
        slow, fast = (slow, middle) if _earned(score, middle) >= wanted - 1e-9 else (middle, fast)
    timed = {case.id: case for case in result.cases}
    case = max((timed[curve.case] for curve in score.curves), key=lambda each: each.amount)
    assert case.timing is not None
    speed = case.timing.scored_speed
    return Next(
        points=wanted - have,
        total=wanted,
        faster=fast,
        case=case,
        speed=speed * fast,
        more=speed * (fast - 1),
    )


def next_sentence(result: Result) -> Message:
    """``The next 5 points, to 85.00: 42.5 TFLOPS at 8192×8192×8192, 2.5 more than now.``; NOTHING
    where nothing is scored."""
    score = result.score
    if score is None or not score.curves:
        return NOTHING
    if result.by_model:
        return _next_band(result, score)
    ahead = next_points(result)
    if ahead is None:
        return _say("next.none", most=score.max)
    cost = _say("next.cost", speed=ahead.speed, unit=result.problem.unit, more=ahead.more)
    cost = cost.given(size=size_text(ahead.case.size))
    if len(score.curves) > 1:
        cost = _say("next.others", cost=cost, share=100 * (ahead.faster - 1))
    words = _say("next.public" if result.groups else "next.all", cost=cost)
    return words.given(points=ahead.points, total=ahead.total)


def _next_band(result: Result, score: Score) -> Message:
    """Say where the model's next points begin, and whether its first advice would bring any."""
    ends = sorted(
        piece.end / curve.position
        for curve in score.curves
        for piece in curve.pieces
        if piece.end > curve.position > 0
    )
    faster = next((each for each in ends if _earned(score, each * _A_BIT) > score.total), None)
    found = max((each.expected for each in score.curves if each.expected), key=lambda e: e.high)
    if faster is None:
        return _say("next.none", most=score.max)
    words = _say("next.model", points=_earned(score, faster * _A_BIT), speed=found.high * faster)
    words = words.given(unit=result.problem.unit, size=size_text(found.size), faster=faster)
    first = next(iter(result.explanation.advice if result.explanation else ()), None)
    total = _earned(score, first.gain) if first and first.gain else 0.0
    return _say("next.advice", next=words, total=total) if total > score.total else words


def _earned(score: Score, faster: float) -> float:
    """The points, if all sizes were so many times as fast."""
    return _total(score, lambda curve: points_at(curve.pieces, _moved(curve, faster)))


def _total(score: Score, points: Callable[[SizeCurve], float]) -> float:
    """The points of all sizes together, each with those that ``points`` gives its curve."""
    found = mean_points({curve.case: points(curve) for curve in score.curves}, score.shares)
    assert found is not None
    return found


def _moved(curve: SizeCurve, faster: float) -> float:
    return curve.position / faster if curve.measure == "ms" else curve.position * faster


# --- the picture ------------------------------------------------------------------------------


def pictures(result: Result, language: Language) -> tuple[Picture, ...]:
    """Sizes that share a curve share a picture."""
    score = result.score
    if score is None or not score.curves:
        return ()
    groups: dict[tuple[Piece, ...], list[SizeCurve]] = {}
    for curve in score.curves:
        groups.setdefault(curve.pieces, []).append(curve)
    ahead = next_points(result)
    sizes = {case.id: size_text(case.size) for case in result.cases}
    sizes |= {
        curve.case: size_text(each.size) for curve in score.curves if (each := curve.expected)
    }
    return tuple(
        Picture(
            caption=_measured_in(result, group[0]), image=_picture(group, sizes, ahead, language)
        )
        for group in list(groups.values())[:_PICTURES]
    )


def _measured_in(result: Result, curve: SizeCurve) -> Message:
    if curve.measure == "ms":
        case = next(case for case in result.cases if case.id == curve.case)
        return phrase("points over milliseconds at {size}", size=size_text(case.size))
    if curve.rung is not None:
        return phrase("points over the speed as a share of rung {rung}", rung=curve.rung)
    if curve.measure == "roofline":
        return phrase("points over the speed as a share of the roofline")
    if curve.measure == "model":
        return phrase("points over the most that the model expects, as a share of the roofline")
    return phrase(
        "points over the speed as a share of {baseline}", baseline=result.problem.baseline
    )


def _picture(
    curves: Sequence[SizeCurve], sizes: Mapping[str, str], ahead: Next | None, language: Language
) -> Markup:
    pieces = curves[0].pieces
    first, last = pieces[0].start, pieces[-1].end
    spots = [first, last, *(curve.position for curve in curves)]
    if first < last:
        lo, hi = min(spots), max(spots)
    else:  # milliseconds fall from left to right
        lo, hi = max(spots), min(spots)
    top = max(most(pieces), 1e-9)

    def x(position: float) -> float:
        return _LEFT + (position - lo) / (hi - lo) * (_RIGHT - _LEFT)

    def y(points: float) -> float:
        return _BOTTOM - points / top * (_BOTTOM - _TOP)

    parts: list[Markup] = []
    for at, points in [(first, pieces[0].low), *((p.end, p.high) for p in pieces)]:
        parts.append(line(x(at), _TOP, x(at), _BOTTOM, "grid"))
        parts += level(_LEFT, _RIGHT, y(points), f"{points:g}")
        parts.append(text(x(at), _BOTTOM + 16, f"{at:.4g}", "small", "middle"))
    for piece in pieces:
        middle = (x(piece.start) + x(piece.end)) / 2
        parts.append(text(middle, _BOTTOM - 6, piece.name, "small", "middle"))
    path = ((x(at), y(points_at(pieces, at))) for at in _along(pieces, lo, hi))
    parts.append(polyline(path, "roof"))
    for curve in curves:
        across, down = x(curve.position), y(curve.points)
        beside, anchor = (9, "start") if across < _RIGHT - 60 else (-9, "end")
        parts.append(dot(across, down, radius=5))
        parts.append(text(across + beside, down + 14, f"{curve.points:.2f}", "strong", anchor))
        to = _moved(curve, ahead.faster) if ahead else inf
        if min(lo, hi) <= to <= max(lo, hi):
            parts.append(dot(x(to), y(points_at(pieces, to)), "aim", 5))
    described = clauses(
        phrase("{size}: {points:.2f} points", size=sizes[curve.case], points=curve.points)
        for curve in curves
    )
    return svg(_BOTTOM + 24, parts, language(phrase("The curve of points")), language(described))


def _along(pieces: Sequence[Piece], lo: float, hi: float) -> list[float]:
    """Positions from the left to the right edge."""
    found = [lo, pieces[0].start]
    for piece in pieces:
        steps = 1 if piece.shape == "linear" else _STEPS
        width = piece.end - piece.start
        found += [piece.start + width * i / steps for i in range(1, steps + 1)]
    return [*found, hi]
