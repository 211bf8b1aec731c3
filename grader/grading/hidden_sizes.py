"""Hidden sizes through every stage, apart from the public ones.

They are recorded by a process of their own and run after all others, so nothing of them can pass
into what is said of a public size. What leaves this module is a ``SizeGroup``, which tells no size,
or a failure in words that tell none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from grader.backends.protocol import CaseOutcome, PlannedCase, Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import MachineError, OutOfTime, Rejected
from grader.grading import timed_sizes
from grader.grading.explaining import quietly
from grader.grading.planning import told_apart, used_libraries
from grader.grading.preparing import Bench, recorded
from grader.judging.rulings import hidden_on_gpu
from grader.judging.scoring import Yardsticks
from grader.judging.size_groups import gone_wrong, hidden_group, not_run, refused
from grader.labs.lab import HIDDEN, Case, Hidden, Lab
from grader.model import (
    Build,
    GpuInfo,
    Message,
    Plan,
    Record,
    Size,
    SizeGroup,
    Submission,
    Verdict,
    phrase,
)
from ptxsim.frontend.interface import Interface

FAILED = phrase("the grader failed at a hidden size; with the secret, grade --reveal says where")


def in_simulator(
    submission: Submission,
    built: Build,
    declared: Interface,
    bench: Bench,
    device: CpuDevice,
    public: Verdict,
) -> SizeGroup | None:
    """The ruling on the lab's hidden sizes; None if it has none. public: the others' verdict; what
    keeps them from being judged keeps these, too."""
    lab, hidden = bench.lab, bench.lab.hidden
    if hidden is None:
        return None
    cases = sorted(hidden.cpu, key=lambda case: lab.problem.amount(case.size))
    if not cases or public in (Verdict.FE, Verdict.CE, Verdict.RF):
        return not_run(hidden, len(cases))
    folder = str(submission.folder)
    timed = [each.size for each in hidden.performance] if bench.gpu_arch is None else []
    record = partial(recorded, built, declared, submission)
    try:
        with _closed():
            plans = record([*(case.size for case in cases), *timed], bench)
            used_libraries(built, declared, plans, bench)
            outcomes, planned = told_apart(cases, plans)
            if planned:
                outcomes += device.run(built, folder, planned, lab, quietly)
            group = hidden_group(cases, outcomes, lab)
            if group.verdict is not Verdict.AC:
                return group
            larger = plans[len(cases) :]
            beyond = timed_sizes.look_at(
                timed, larger, lab.architectures, lambda sizes, arch: record(sizes, bench, arch)
            )
            if beyond.verdict is Verdict.AC:
                beyond = timed_sizes.probe(larger, built, folder, device, quietly)
            if beyond.verdict is Verdict.AC:
                return group
            return gone_wrong(group, beyond.verdict, beyond.findings)
    except Rejected as refusal:
        return refused(hidden, len(cases), refusal)


class OnGpu(Record):
    """The hidden sizes of a grading on a GPU, ready to run there after the others."""

    cases: tuple[Case, ...]
    outcomes: tuple[CaseOutcome, ...]  # of those that were refused
    planned: tuple[PlannedCase, ...]
    ruled: SizeGroup | None = None  # nothing is left to run


def for_gpu(
    submission: Submission,
    built: Build,
    declared: Interface,
    bench: Bench,
    allowed: Callable[[Sequence[Plan]], object],
) -> OnGpu:
    """allowed: raises Rejected for plans that may not run at all."""
    lab, hidden = bench.lab, bench.lab.hidden
    assert hidden is not None
    every = (*hidden.correctness, *hidden.performance)
    cases = tuple(sorted(every, key=lambda case: lab.problem.amount(case.size)))
    try:
        with _closed():
            found = recorded(built, declared, submission, [case.size for case in cases], bench)
            used_libraries(built, declared, found, bench)
            outcomes, planned = told_apart(cases, found)
            allowed([case.plan for case in planned])
    except Rejected as refusal:
        ruled = refused(hidden, len(cases), refusal)
        return OnGpu(cases=cases, outcomes=(), planned=(), ruled=ruled)
    return OnGpu(cases=cases, outcomes=tuple(outcomes), planned=tuple(planned))


def ruling(
    secret: OnGpu | None,
    outcomes: Sequence[CaseOutcome],
    public: Sequence[CaseOutcome],
    lab: Lab,
    gpu: GpuInfo | None,
    by: Yardsticks | None,
) -> SizeGroup | None:
    """The ruling on the hidden sizes after the run: their outcomes, and the others'."""
    if lab.hidden is None:
        return None
    if secret is None:
        return not_run(lab.hidden, 0)
    if secret.ruled is not None:
        return secret.ruled
    if gpu is None or any(outcome.stopped in ("time", "crash") for outcome in public):
        return not_run(lab.hidden, len(secret.cases))  # the worker ended before them
    every = (*secret.outcomes, *outcomes)
    return hidden_on_gpu(secret.cases, every, public, lab, gpu=gpu, by=by)


def told_apart_again(
    outcomes: Iterable[CaseOutcome],
) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    """Those of public sizes, and those of hidden ones."""
    public: list[CaseOutcome] = []
    hidden: list[CaseOutcome] = []
    for outcome in outcomes:
        (hidden if outcome.id.startswith(HIDDEN) else public).append(outcome)
    return public, hidden


@contextmanager
def closed(progress: Progress, lab: Lab) -> Iterator[Progress]:
    """For a run of all sizes, the hidden ones last: progress that names no hidden size, and a
    failure without its words if hidden sizes may have chosen them."""
    hidden = lab.hidden
    secret = {} if hidden is None else {str(size): size for size in _sizes(hidden)}
    begun = False

    def told(stage: Message, detail: Message) -> None:
        nonlocal begun
        size_is_secret = str(detail) in secret
        begun = begun or size_is_secret
        progress(stage, phrase("a hidden size") if size_is_secret else detail)

    try:
        yield told
    except MachineError as failure:
        if begun or _names(str(failure), secret.values()):
            raise MachineError(FAILED) from None
        raise


@contextmanager
def _closed() -> Iterator[None]:
    """A failure at hidden sizes, ours included, in words that do not depend on them."""
    try:
        yield
    except (Rejected, OutOfTime):
        raise
    except Exception:
        raise MachineError(FAILED) from None


def _sizes(hidden: Hidden) -> list[Size]:
    return [case.size for case in (*hidden.correctness, *hidden.performance, *hidden.cpu)]


def _names(words: str, sizes: Iterable[Size]) -> bool:
    """Whether a number in ``words`` is an extent of one of ``sizes``."""
    extents = {str(extent) for size in sizes for extent in size.extents}
    return not extents.isdisjoint(re.findall(r"\d+", words))
