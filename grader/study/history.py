"""A student's graded versions on one board, in order, beside the reference ladder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from grader.base import Dims, ProblemInfo, gpus, moment
from grader.results import LabRef, Ladder, Result, ResultEntry
from grader.study.versions import GradedVersion, Version, make_version
from ptxsim.plan import Record, Size
from ptxsim.text import Message, phrase


class RungSpeed(Record):
    """A rung of the reference ladder at the size of the history."""

    name: str
    value: float


class History(Record):
    student: str
    lab: LabRef
    problem: ProblemInfo
    device: str  # "cpu" or "gpu"
    gpu: str | None  # that timed; in the simulator the one that estimates are for
    size: Dims | None  # that most versions have a speed at; null: none has one
    versions: tuple[Version, ...]  # by time
    rungs: tuple[RungSpeed, ...]  # of the ladder, as timed at that size; () in the simulator
    baseline: float | None  # the baseline's speed at that size
    others: tuple[Message, ...]  # further boards of this student, in words

    @property
    def estimated(self) -> bool:
        """Whether the speeds are estimates."""
        return self.device == "cpu"


def board_of(result: Result | ResultEntry) -> tuple[str, str, str | None]:
    """Speeds compare within one: lab, device, model of GPU."""
    gpu = result.environment.gpu
    return result.lab.id, result.environment.device, gpu.name if gpu else None


def make_history(
    found: Sequence[GradedVersion], ladders: Sequence[Ladder], gpu: str | None = None
) -> History:
    """Build the history of the board that the newest result is on."""
    ordered = sorted(found, key=lambda each: _last_seen(each.result))
    newest = _representative(ordered)
    board = board_of(newest)
    # A result that ended before any GPU, such as a compile error, belongs to every GPU's board.
    same = {board, (*board[:2], None)}
    mine = [each for each in ordered if board_of(each.result) in same]
    others = dict.fromkeys(own for each in ordered if (own := board_of(each.result)) not in same)
    card = board[2] if board[1] == "gpu" else _card(mine, gpu)
    versions: list[Version] = []
    for before, each in zip([None, *mine], mine, strict=False):
        versions.append(make_version(each, before, versions, card))
    # Of sizes that as many versions have a speed at, the newest one's.
    sizes = [Size(dims=each.speed.size) for each in reversed(versions) if each.speed]
    size = Counter(sizes).most_common(1)[0][0].dims if sizes else None
    alike = (each for each in ladders if each.problem.like(newest.problem))
    ladder = next((each for each in alike if each.timed_on(card)), None)
    return History(
        student=newest.submission.student,
        lab=newest.lab,
        problem=newest.problem,
        device=board[1],
        gpu=card,
        size=size,
        versions=tuple(versions),
        rungs=tuple(_rungs(ladder, size)) if ladder and size else (),
        baseline=_baseline(mine, size),
        others=tuple(board_words(each) for each in others),
    )


def _last_seen(result: Result) -> datetime:
    """When its source was last handed in, or graded if nothing says when."""
    return moment((result.submission.submitted or (result.created,))[-1])


def _representative(ordered: Sequence[GradedVersion]) -> Result:
    """The newest result; if it ended before any GPU, the newest that names the GPU."""
    newest = ordered[-1].result
    lab, device, _ = board_of(newest)
    alike = [
        e.result for e in ordered if device == "gpu" and board_of(e.result)[:2] == (lab, device)
    ]
    return next((each for each in reversed(alike) if each.environment.gpu), newest)


def board_words(board: tuple[str, str, str | None]) -> Message:
    lab, device, gpu = board
    if gpu is not None:
        return phrase("{lab} on {gpu}", lab=lab, gpu=gpu)
    some = phrase("{lab} in the simulator") if device == "cpu" else phrase("{lab} on a GPU")
    return some.given(lab=lab)


def _card(mine: Sequence[GradedVersion], wanted: str | None) -> str | None:
    """The GPU that estimates are shown for: the one asked for, else the newest version's first."""
    whys = [each.result.explanation for each in reversed(mine) if each.result.explanation]
    names = dict.fromkeys(bound.gpu for why in whys for bound in why.bounds)
    return next((name for name in names if (wanted or "").lower() in name.lower()), None)


# --- beside the ladder ------------------------------------------------------------------------


def _baseline(mine: Sequence[GradedVersion], size: Dims | None) -> float | None:
    """Return the baseline's speed, as measured with the newest version."""
    for each in reversed(mine):
        for case in each.result.cases:
            if case.timing and case.size == size:
                return case.timing.baseline_speed
    return None


def _rungs(ladder: Ladder, size: Dims) -> Iterable[RungSpeed]:
    for step in ladder.steps:
        if timed := step.at(size):
            yield RungSpeed(name=step.rung.name, value=timed.rate)


def peak_of(history: History) -> float | None:
    """Return the GPU's peak in the problem's unit, by data sheet; null where it is not known."""
    card = gpus.find(history.gpu) if history.gpu else None
    if card is None:
        return None
    if history.problem.counts == "bytes":
        return card.dram_gb_s * 1e9 / history.problem.scale
    return card.fp32_tflops * 1e12 / history.problem.scale
