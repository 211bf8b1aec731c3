"""A student's graded versions on one board, in order, beside the reference ladder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from grader.hardware import gpus
from grader.ladder.document import Ladder
from grader.model import (
    Dims,
    LabRef,
    Message,
    ProblemInfo,
    Record,
    Result,
    Size,
    phrase,
    size_text,
)
from grader.results.entries import Entry
from grader.study.versions import Graded, Version, make_version


class Rung(Record):
    """A rung of the reference ladder at the size of the history."""

    name: str
    value: float


class History(Record):
    student: str
    lab: LabRef
    problem: ProblemInfo
    device: str  # "cpu" or "gpu"
    gpu: str | None  # that timed; in the simulator the one that bounds are for
    size: Dims | None  # that most versions have a speed at; null: none has one
    versions: tuple[Version, ...]  # by time
    rungs: tuple[Rung, ...]  # of the ladder, as fast as they are at that size; () if unknown
    baseline: float | None  # the baseline's speed at that size
    others: tuple[Message, ...]  # further boards of this student, in words

    @property
    def bounds(self) -> bool:
        """Whether the speeds are bounds."""
        return self.device == "cpu"


def board_of(result: Result | Entry) -> tuple[str, str, str | None]:
    """Speeds compare within one: lab, device, model of GPU."""
    gpu = result.environment.gpu
    return result.lab.id, result.environment.device, gpu.name if gpu else None


def make_history(
    found: Sequence[Graded], ladders: Sequence[Ladder], gpu: str | None = None
) -> History:
    """Of the board that the newest result is on. found: not empty. gpu: in the simulator, the GPU
    that bounds are for, by a part of its name."""
    ordered = sorted(found, key=lambda each: each.result.created)
    newest = _representative(ordered)
    board = board_of(newest)
    mine = [each for each in ordered if _belongs(each.result, board)]
    others = {board_of(each.result): None for each in ordered}
    others = {
        each: None for each in others if each[:2] != board[:2] or each[2] not in (None, board[2])
    }
    card = board[2] if board[1] == "gpu" else _card(mine, ladders, gpu)
    versions: list[Version] = []
    for i, each in enumerate(mine):
        before = mine[i - 1] if i else None
        versions.append(make_version(each, before, versions, card))
    size = _common(versions)
    ladder = _ladder(ladders, newest.problem, card, board[1])
    return History(
        student=newest.submission.student,
        lab=newest.lab,
        problem=newest.problem,
        device=board[1],
        gpu=card,
        size=size,
        versions=tuple(versions),
        rungs=tuple(_rungs(ladder, size, card)) if ladder and size else (),
        baseline=_baseline(mine, size),
        others=tuple(board_words(each) for each in others),
    )


def _representative(ordered: Sequence[Graded]) -> Result:
    """The newest result; if it ended before any GPU, the newest that names the GPU."""
    newest = ordered[-1].result
    lab, device, gpu = board_of(newest)
    if device == "gpu" and gpu is None:
        for each in reversed(ordered):
            own = board_of(each.result)
            if own[:2] == (lab, device) and own[2] is not None:
                return each.result
    return newest


def _belongs(result: Result, board: tuple[str, str, str | None]) -> bool:
    """A result that ended before any GPU, such as a compile error, belongs to every GPU's board."""
    own = board_of(result)
    return own == board or (own[:2] == board[:2] and own[2] is None)


def board_words(board: tuple[str, str, str | None]) -> Message:
    lab, device, gpu = board
    if gpu is not None:
        return phrase("{lab} on {gpu}", lab=lab, gpu=gpu)
    some = phrase("{lab} in the simulator") if device == "cpu" else phrase("{lab} on a GPU")
    return some.given(lab=lab)


def _card(mine: Sequence[Graded], ladders: Sequence[Ladder], wanted: str | None) -> str | None:
    """The GPU whose bounds are shown: the one asked for, else one that the ladder's rungs have
    bounds for, else the first."""
    names = {
        bound.gpu: None
        for each in reversed(mine)
        for bound in (each.result.explanation.bounds if each.result.explanation else ())
    }
    if wanted is not None:
        return next((name for name in names if wanted.lower() in name.lower()), None)
    known = {name for ladder in ladders for name in ladder.untimed}
    return next((name for name in names if name in known), next(iter(names), None))


# --- beside the ladder ------------------------------------------------------------------------


def _common(versions: Sequence[Version]) -> Dims | None:
    """The size that most versions have a speed at; of equals the newest."""
    sizes = [Size(dims=each.speed.size) for each in reversed(versions) if each.speed]
    return Counter(sizes).most_common(1)[0][0].dims if sizes else None


def _baseline(mine: Sequence[Graded], size: Dims | None) -> float | None:
    """As it was measured with the newest version."""
    for each in reversed(mine):
        for case in each.result.cases:
            if case.timing and case.timing.runs and case.size == size:
                return max(run.baseline_speed for run in case.timing.runs)
    return None


def _ladder(
    ladders: Sequence[Ladder], problem: ProblemInfo, card: str | None, device: str
) -> Ladder | None:
    """The first that was measured on this GPU, or has bounds for it."""
    for ladder in ladders:
        if not ladder.problem.like(problem):
            continue
        if device == "gpu" and ladder.gpu and ladder.gpu.name == card:
            return ladder
        if device == "cpu" and card in ladder.untimed:
            return ladder
    return None


def _rungs(ladder: Ladder, size: Dims, card: str | None) -> Iterable[Rung]:
    for step in ladder.steps:
        timed = step.at(size)
        ceiling = step.ceiling(card) if card else None
        if timed and ladder.gpu and ladder.gpu.name == card:
            yield Rung(name=step.rung.name, value=timed.rate)
        elif ceiling and ceiling.size == size:
            yield Rung(name=step.rung.name, value=ceiling.speed)


def peak_of(history: History) -> float | None:
    """Of the GPU, in the problem's unit, by data sheet; null where it is not known."""
    card = gpus.find(history.gpu) if history.gpu else None
    if card is None:
        return None
    if history.problem.counts == "bytes":
        return card.dram_gb_s * 1e9 / history.problem.scale
    return card.fp32_tflops * 1e12 / history.problem.scale


def size_words(history: History) -> str:
    return size_text(history.size) if history.size else ""
