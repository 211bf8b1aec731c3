"""A student's stored results in the order they were graded, and what changed from one to the next.

Everything comes from the result documents and the sources kept beside them, so the history of a
kernel is whole even after its file has changed.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grader.errors import StoreError
from grader.hardware import gpus
from grader.ladder.document import Ladder
from grader.model import (
    Advice,
    Bound,
    Dims,
    LabRef,
    Message,
    ProblemInfo,
    Record,
    Result,
    Size,
    Verdict,
    phrase,
    size_text,
)
from grader.model.names import kernel_name
from grader.results import store
from grader.results.sources import kept_sources
from grader.study.main_kernel import Kernel, main_kernel

_LINES = 20_000  # of both versions; a diff of more takes too long


class Speed(Record):
    """Measured, or the bound on a GPU where nothing was timed."""

    size: Dims
    value: float  # in the problem's unit
    ratio: float | None  # to the baseline; null: a bound


class Diff(Record):
    """Between the sources of two versions."""

    added: int  # lines
    removed: int
    files: tuple[str, ...]  # that changed
    exact: bool  # false: too long for a diff; lines were counted regardless of their order


class Followed(Record):
    """A piece of advice for the version before, which does not apply any more."""

    idea: str
    expected: float | None  # how many times faster the model said


class Version(Record):
    """One graded version."""

    number: int  # from 1
    sha256: str
    created: str
    verdict: Verdict
    points: float | None
    speed: Speed | None  # null: not timed, no explanation, or not accepted
    kernel: Kernel | None
    kernels: tuple[str, ...]  # all of the build
    diff: Diff | None  # null: the first, or the sources of one were not kept
    changed: tuple[Message, ...]  # "registers 40 → 96"
    advice: tuple[Advice, ...]  # given for this version
    followed: tuple[Followed, ...]  # of the accepted version before
    became: float | None  # how many times as fast as that one; null where they do not compare


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


class Graded(Record):
    """A stored result and its sources."""

    result: Result
    sources: Mapping[str, str] | None  # null: not kept


def read_versions(out: Path, student: str) -> tuple[list[Graded], list[Message]]:
    """All results of a student, and one line for each file that is not a result."""
    found: list[Graded] = []
    complaints: list[Message] = []
    for path in sorted(out.glob(f"*/{_glob(store.folder_name(student))}/*.json")):
        try:
            result = store.load(path)
        except StoreError as error:
            complaints.append(error.message)
            continue
        if result.submission.student == student:
            sources = kept_sources(path, result.submission.files)
            found.append(Graded(result=result, sources=sources))
    return found, complaints


def _glob(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def board_of(result: Result) -> tuple[str, str, str | None]:
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
        versions.append(_version(each, before, versions, card))
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


# --- one version ------------------------------------------------------------------------------


def _version(
    each: Graded, before: Graded | None, earlier: Sequence[Version], card: str | None
) -> Version:
    result = each.result
    kernels = tuple(kernel_name(k.name) for k in result.build.kernels) if result.build else ()
    last = earlier[-1] if earlier else None
    given = _accepted(earlier)
    kernel, speed = main_kernel(result), _speed(result, card)
    return Version(
        number=len(earlier) + 1,
        sha256=result.submission.sha256,
        created=result.created,
        verdict=result.verdict,
        points=result.score.total if result.score else None,
        speed=speed,
        kernel=kernel,
        kernels=kernels,
        diff=_diff(before.sources, each.sources)
        if before and before.sources is not None and each.sources is not None
        else None,
        changed=tuple(_changes(_last_kernel(earlier), kernel, last, kernels)),
        advice=result.explanation.advice if result.explanation else (),
        followed=_followed(result, given),
        became=_became(speed, given),
    )


def _speed(result: Result, card: str | None) -> Speed | None:
    if result.verdict is not Verdict.AC:
        return None
    timed = [(case, case.timing) for case in result.cases if case.timing and case.timing.runs]
    if timed:
        case, timing = max(timed, key=lambda pair: pair[0].amount)
        return Speed(size=case.size, value=timing.scored_speed, ratio=timing.scored_ratio)
    bound = bound_on(result, card)
    return Speed(size=bound.size, value=bound.ceiling, ratio=None) if bound else None


def bound_on(result: Result, card: str | None) -> Bound | None:
    bounds = result.explanation.bounds if result.explanation else ()
    return next((bound for bound in bounds if bound.gpu == card), None)


def _last_kernel(earlier: Sequence[Version]) -> Kernel | None:
    """Of the newest version before that compiled."""
    return next((each.kernel for each in reversed(earlier) if each.kernel), None)


def _changes(
    was: Kernel | None, now: Kernel | None, last: Version | None, kernels: Sequence[str]
) -> Iterable[Message]:
    if was is None or now is None or last is None:
        return
    if last.kernels:
        names = [f"−{name}" for name in last.kernels if name not in kernels]
        names += [f"+{name}" for name in kernels if name not in last.kernels]
        if names:
            yield phrase("kernels {names}", names=", ".join(names))
    for what, before, after in (
        (phrase("tile {before} → {after}"), was.tile or "?", now.tile or "?"),
        (phrase("block {before} → {after}"), was.block or "?", now.block or "?"),
        (phrase("registers {before} → {after}"), was.registers, now.registers),
        (phrase("shared bytes {before} → {after}"), was.shared_bytes, now.shared_bytes),
        (phrase("spilled bytes {before} → {after}"), was.spill_bytes, now.spill_bytes),
    ):
        if before != after:
            yield what.given(before=before, after=after)


def _diff(before: Mapping[str, str], after: Mapping[str, str]) -> Diff:
    added = removed = 0
    exact = True
    files = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    for name in files:
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        if len(old) + len(new) > _LINES:
            exact = False
            added += sum((Counter(new) - Counter(old)).values())
            removed += sum((Counter(old) - Counter(new)).values())
            continue
        for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
            if kind != "equal":
                removed += j - i
                added += m - k
    return Diff(added=added, removed=removed, files=tuple(files), exact=exact)


def _accepted(earlier: Sequence[Version]) -> Version | None:
    return next((each for each in reversed(earlier) if each.verdict is Verdict.AC), None)


def _followed(result: Result, given: Version | None) -> tuple[Followed, ...]:
    """What the advice for ``given`` said and this accepted version does not need any more."""
    why = result.explanation
    if given is None or why is None or why.missing or result.verdict is not Verdict.AC:
        return ()
    left = {advice.idea for advice in why.advice}
    return tuple(
        Followed(idea=advice.idea, expected=advice.gain)
        for advice in given.advice
        if advice.idea not in left
    )


def _became(speed: Speed | None, given: Version | None) -> float | None:
    before = given.speed if given else None
    return speed.value / before.value if speed and before and speed.size == before.size else None


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
