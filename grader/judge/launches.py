"""Rules about launches, libraries' kernels and times."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from grader.base import BuildInfo, Dims, Finding, GpuInfo, Kind, Rejected, Verdict, gpus
from grader.labs import Rules
from grader.problems import Problem
from grader.record import refusal_sentence
from grader.run import CaseOutcome, Clocked, PlannedCase
from ptxsim import Declarations
from ptxsim.findings import Severity, identifiers, kernel_name
from ptxsim.plan import Launch, Plan, RefusedCall, Size
from ptxsim.text import Message, listed, phrase, verbatim

_NAMES = 5  # kernels that the message names


def too_many_kernels(plan: Plan, rules: Rules) -> Rejected | None:
    """RF for a call that launches several kernels where the lab asks for one."""
    kernels = [each.kernel for each in plan.operations if isinstance(each, Launch)]
    if rules.kernels == "any" or len(kernels) <= 1:
        return None
    times = Counter(kernel_name(kernel) for kernel in kernels)
    names = [
        phrase("{name} {times} times", name=name, times=n) if n > 1 else verbatim(name)
        for name, n in times.items()
    ]
    names[_NAMES:] = [verbatim("…")] if len(names) > _NAMES else []
    words = phrase(
        "one call launches {count} kernels ({names}); this lab asks for one kernel per call "
        "(rules.kernels)",
        count=len(kernels),
        names=listed(names),
    )
    return Rejected(Verdict.RF, words)


# --- what CUDA refuses ------------------------------------------------------------------------


def with_refused_calls(
    outcomes: Iterable[CaseOutcome], planned: Iterable[PlannedCase], architectures: Sequence[str]
) -> list[CaseOutcome]:
    """The outcomes with a warning for each call that CUDA refuses at their size."""
    warned = {each.id: refused_calls(each.plan, architectures) for each in planned}
    return [
        msgspec.structs.replace(each, findings=(*each.findings, *warned.get(each.id, ())))
        for each in outcomes
    ]


def refused_calls(plan: Plan, architectures: Sequence[str]) -> tuple[Finding, ...]:
    return tuple(
        Finding.at(call.place, Kind.REFUSED_CALL, Severity.WARNING, _refused(call, architectures))
        for call in plan.refused
    )


def _refused(call: RefusedCall, architectures: Sequence[str]) -> Message:
    what = refusal_sentence(call.refused)
    if not call.bytes:
        return phrase(
            "{what}; it does nothing, and the call goes on: skip a launch that has nothing to do",
            what=what,
        )
    names = listed(
        phrase("{gpu} has {memory:.4g} GiB", gpu=str(gpu.device), memory=gpu.memory_bytes / 2**30)
        for gpu in dict.fromkeys(map(gpus.standing_for, architectures))
    )
    return phrase(
        "{what}: {gpus}; check what cudaMalloc returns, and ask for less", what=what, gpus=names
    )


def library_kernels(
    plans: Iterable[Plan], declared: Declarations, problem: Problem
) -> tuple[Finding, ...]:
    """A note for each kernel of a library that ``plans`` launch."""
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    launched = {each.kernel for each in operations if isinstance(each, Launch)}
    found = []
    for kernel in sorted(launched):
        origins = declared.origins.get(kernel, ())
        if (evidence := problem.from_a_library(identifiers(kernel), origins)) is not None:
            words = phrase("{kernel} is a library's kernel: {evidence}", evidence=evidence)
            words = words.given(kernel=kernel_name(kernel))
            found.append(Finding(kind=Kind.LIBRARY, severity=Severity.NOTE, message=words))
    return tuple(found)


def refusal(notes: tuple[Finding, ...], rules: Rules, build: BuildInfo) -> Rejected | None:
    """Return RF if the lab's rules forbid what ``notes`` report, else None."""
    if not notes or rules.libraries == "allow":
        return None
    words = phrase("{found}; this lab asks for a kernel of your own", found=notes[0].message)
    return Rejected(Verdict.RF, words, notes, build)


# --- times -------------------------------------------------------------------------------------

UNSEEN_MS, UNSEEN_SHARE = 2.0, 0.1  # of a repetition: the two clocks may differ by their sum
_TIMES_AS_LONG = 10
_ON_TOP_MS = 100.0
_TILE = 256  # a kernel works on whole tiles, however thin an operand is


def held_to_the_clock(
    outcomes: Sequence[CaseOutcome], problem: Problem, gpu: GpuInfo | None
) -> tuple[CaseOutcome, ...]:
    """The outcomes with the findings of all three rules; impossible times are no timing."""
    if gpu is None:
        return tuple(outcomes)
    return _held_to_pace([_without_impossible(each, problem, gpu) for each in outcomes], problem)


def _without_impossible(outcome: CaseOutcome, problem: Problem, gpu: GpuInfo) -> CaseOutcome:
    """Drop a timing that is faster than the GPU can be, or than the host's clock says."""
    messages = []
    least = problem.at(Size(dims=outcome.size)).least_ms(gpu)
    if too_fast := [own.gpu_ms for own, _ in outcome.clocks if not (own.gpu_ms >= least)]:
        words = phrase(
            "a repetition took {took:.4g} ms; nothing of this size takes less than "
            "{least:.4g} ms on this GPU"
        )
        messages.append(words.given(took=too_fast[0], least=least))
    if (unseen := unseen_ms(outcome.clocks)) > 0:
        words = phrase(
            "by the host's clock a repetition took {unseen:.4g} ms more than the GPU's events "
            "say; {baseline}'s repetitions beside it did not"
        )
        messages.append(words.given(unseen=unseen, baseline=problem.baseline))
    if not messages:
        return outcome
    found = (Finding.at(None, Kind.IMPOSSIBLE_TIME, Severity.ERROR, each) for each in messages)
    return msgspec.structs.replace(outcome, timing=None, findings=(*outcome.findings, *found))


def unseen_ms(pairs: Sequence[tuple[Clocked, Clocked]]) -> float:
    """How much longer the submission takes by the host's clock than by its events; 0 if they agree.

    pairs: submission and baseline, one after the other. The host waits a little longer for any
    launch, so the baseline says how much that is. Medians, because the host may be busy.
    """
    if not pairs:
        return 0.0
    mine, theirs = (
        [each.host_ms - each.gpu_ms for each in side] for side in zip(*pairs, strict=True)
    )
    extra = statistics.median(mine) - statistics.median(theirs)
    took = statistics.median(own.gpu_ms for own, _ in pairs)
    return 0.0 if extra <= UNSEEN_MS + UNSEEN_SHARE * took else extra


def _held_to_pace(outcomes: Sequence[CaseOutcome], problem: Problem) -> tuple[CaseOutcome, ...]:
    """Limit untimed launches by the pace of the timed ones: milliseconds per operation or byte, in
    the slowest run or mode. Without a timed case there is no pace, and only the lab's limit
    applies."""
    paces = {}
    for each in outcomes:
        if each.timing:
            speed = min(*(run.speed for run in each.timing.runs), each.timing.scored_speed)
            seconds = each.amount / (speed * problem.unit.scale)
            paces[Size(dims=each.size)] = 1e3 * seconds / _whole(each.size, problem)
    if not paces:
        return tuple(outcomes)
    slowest = max(paces.values())
    return tuple(
        _held(each, problem, paces.get(Size(dims=each.size), slowest)) for each in outcomes
    )


def _whole(size: Dims, problem: Problem) -> int:
    """Count the work at this size in the problem's unit, rounded up to whole tiles."""
    whole = {
        name: -(-extent // _TILE) * _TILE if isinstance(extent, int) else extent
        for name, extent in size.items()
    }
    return problem.amount(Size(dims=whole))


def _held(outcome: CaseOutcome, problem: Problem, pace: float) -> CaseOutcome:
    most = _ON_TOP_MS + _TIMES_AS_LONG * pace * _whole(outcome.size, problem)
    if outcome.untimed_ms is None or outcome.untimed_ms <= most:
        return outcome
    message = phrase(
        "a launch that was verified but not timed took {took:.4g} ms; at the pace of the timed "
        "launches it may take {most:.4g} ms. Do the same work in every call",
        took=outcome.untimed_ms,
        most=most,
    )
    finding = Finding(kind=Kind.UNTIMED_WORK, severity=Severity.ERROR, message=message)
    return msgspec.structs.replace(outcome, findings=(*outcome.findings, finding))
