"""Explanation → answers to the lab's thinking questions for the student's own kernel. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grader.hardware import gpus
from grader.hardware.gpus import PEAK_UNIT
from grader.model import (
    Advice,
    Bound,
    Explanation,
    KernelCounts,
    ProblemInfo,
    ProfileDocument,
    Record,
    Result,
    Waiting,
    size_text,
)
from grader.model.names import kernel_name
from grader.problems.catalogue import names, problem_class
from grader.problems.questions import Evidence, Question
from grader.report.loop import loop_sentence

_SECTOR = 32  # bytes
_LINES = 4  # of branches that are listed
_PIPE = "the FP32 pipe"
_RESULTS = "results of arithmetic and integer pipes"


class Said(Record):
    """One question and its answer, in plain text."""

    question: str
    answer: str
    method: str  # where the figures come from


def answers(
    result: Result,
    sources: Mapping[str, str] | None = None,
    profile: ProfileDocument | None = None,
) -> tuple[Said, ...]:
    """() when there is no explanation, or there are no counts.

    sources, profile: of the same submission, as far as there are any.
    """
    why = result.explanation
    if why is None or not why.counts:
        return ()
    counts = max(why.counts, key=lambda each: each.flops)
    evidence = Evidence(
        result=result, why=why, counts=counts, profile=profile, sources=sources or {}
    )
    return tuple(_answers(evidence))


def _answers(evidence: Evidence) -> Iterator[Said]:
    problem = evidence.result.problem
    for question in _asked(problem):
        words = question.answer(evidence)
        if words:
            asked = question.text.format(output=problem.output)
            yield Said(question=asked, answer=words, method=question.method)


def _asked(problem: ProblemInfo) -> Iterator[Question]:
    """In the result's order. A result from before a problem had questions of its own gets them,
    too; a newer grader may have asked more than is known here."""
    own = problem_class(problem.name).own_questions if problem.name in names() else {}
    every = {**_QUESTIONS, **own}
    for name in dict.fromkeys((*problem.questions, *own)):
        if name in every:
            yield every[name]


def _operations(result: Result, why: Explanation, _counts: KernelCounts) -> str:
    executed = sum(each.flops for each in why.counts)
    ffma = sum(e.count for each in why.counts for e in each.mix if e.kind == "FFMA")
    issued = sum(each.instructions for each in why.counts)
    return (
        f"{result.problem.formula} = {why.operations:.4g} at {size_text(why.size)}. "
        f"The kernel executes {executed:.4g}, as "
        f"{ffma:.4g} FFMA of 32 lanes among {issued:.4g} warp instructions "
        f"({100 * ffma / max(issued, 1):.1f} %)."
    )


def measured_speed(result: Result) -> float | None:
    """The scored speed at the explained size; None if that size was not timed."""
    why = result.explanation
    for case in result.cases:
        timing = case.timing
        if why and timing and timing.runs and case.size == why.size:
            return timing.scored_speed
    return None


def _peak(result: Result, why: Explanation, _counts: KernelCounts) -> str:
    problem = result.problem
    info = result.environment.gpu
    card = gpus.of(info) if info else None
    speed = measured_speed(result)
    if card is None or speed is None:
        peaks = ", ".join(f"{each.gpu} {each.peak:.3g}" for each in why.bounds)
        formula = "SMs × FP32 lanes × 2 × clock" if problem.counts == "operations" else "DRAM"
        return (
            f"{formula}: {peaks} {problem.unit}. "
            f"{'Nothing was timed here' if speed is None else f'Measured: {speed:.4g}'}; the "
            f"counts of {_launches(why)} allow {_shares(why.bounds, problem.unit)}."
        )
    if problem.counts == "bytes":
        peak = card.dram_gb_s * 1e9 / problem.scale
        return (
            f"DRAM moves {peak:.4g} {problem.unit} on this {card.name}. Measured: {speed:.4g}, "
            f"{100 * speed / peak:.1f} %. The counts of {_launches(why)} allow "
            f"{_shares(why.bounds, problem.unit)}."
        )
    lanes = card.multiprocessor.fp32_lanes
    return (
        f"{card.multiprocessors} SMs × {lanes} lanes × 2 × {card.clock_mhz / 1000:.3g} GHz = "
        f"{card.fp32_tflops:.3g} {PEAK_UNIT} on this {card.name}. Measured: {speed:.4g}, "
        f"{100 * speed / card.fp32_tflops:.1f} %. The counts of {_launches(why)} allow "
        f"{_shares(why.bounds, problem.unit)}."
    )


def _launches(why: Explanation) -> str:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    return "its launch" if launches == 1 else f"its {launches} launches together"


def _shares(bounds: tuple[Bound, ...], unit: str) -> str:
    return ", ".join(
        _share(each, unit) + (f" on {each.gpu}" if len(bounds) > 1 else "") for each in bounds
    )


def _share(bound: Bound, unit: str) -> str:
    """Only what no waiting is part of is "at most"."""
    if bound.most is None:
        return f"about {_of_peak(bound.speed, bound, unit)}"
    words = f"at most {_of_peak(bound.most.speed, bound, unit)}"
    return words if bound.resource != "waiting" else f"{words}, about {bound.speed:.3g} expected"


def _of_peak(speed: float, bound: Bound, unit: str) -> str:
    return f"{speed:.3g} {unit} ({100 * speed / bound.peak:.0f} %)"


def speed_sentence(result: Result, why: Explanation, bound: Bound) -> str:
    """The bound with its resource, and the estimate where waiting makes it lower."""
    peak = f"{bound.peak:.3g} {result.problem.unit} at {size_text(why.size)}"
    counted = f"by the counts of {_launches(why)}"
    if bound.most is None:
        return f"about {bound.speed:.3g} of {peak}, {counted}; the limit is {limit(bound)}"
    words = f"at most {bound.most.speed:.3g} of {peak}, {counted}"
    if bound.resource != "waiting":
        return f"{words}; the limit is {bound.most.resource}"
    words += f" ({bound.most.resource}); about {bound.speed:.3g} is expected"
    return f"{words}: the limit is {limit(bound)}"


def _limits(result: Result, why: Explanation, _counts: KernelCounts) -> str:
    bounds, unit = why.bounds, result.problem.unit
    if not bounds:
        return ""
    first = bounds[0]
    hard = [each for each in first.limits if each.resource != "waiting"]
    several = ", ".join(f"{each.resource} {each.speed:.3g}" for each in hard[:4])
    others = [each for each in bounds[1:] if each.resource != first.resource]
    words = (
        f"On {first.gpu}: {_RESOURCES[first.resource]}. {unit} that each resource allows at most: "
        f"{several}."
    )
    if first.waiting is not None and first.resource == "waiting":
        words += f" With waiting, about {first.speed:.3g}. {_waiting(first.waiting)}"
    for each in others:
        words += f" On {each.gpu}: {_RESOURCES[each.resource]} (about {each.speed:.3g} {unit})."
    return words


_RESOURCES = {
    "issue": "issue slots: too many instructions besides the FFMA",
    "FP32": "the FP32 pipes themselves",
    "shared memory": "shared memory: wavefronts of its loads and stores",
    "L1": "the L1 cache: lines of 128 bytes that loads from global memory touch",
    "L2": "the L2 cache's bandwidth",
    "DRAM": "DRAM's bandwidth",
    "waiting": "waiting: at times no warp is ready",
    "latency": "latency: too few warps to hide it",
}


def limit(bound: Bound) -> str:
    """The limiting resource in a few words: "shared memory", "waiting for barriers"."""
    if bound.resource != "waiting" or bound.waiting is None:
        return bound.resource
    reasons = _reasons(bound.waiting)
    reasons.pop(_PIPE)  # a busy pipe is the goal, not a cause of waiting
    longest = max(reasons, key=lambda name: reasons[name])
    if longest == _RESULTS:
        return f"waiting for {_RESULTS}, which more independent work for each scheduler would hide"
    return f"waiting for {longest}"


def _waiting(waiting: Waiting) -> str:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting).items(), key=lambda pair: -pair[1])
    named = [f"{name} {100 * share:.0f} %" for name, share in several if share >= 0.005]
    return (
        f"In the issue model the schedulers issue in {100 * waiting.issued:.0f} % of the "
        f"cycles; the rest go by in waiting for {', '.join(named)}."
    )


def _reasons(waiting: Waiting) -> dict[str, float]:
    """Shares of the cycles in which no warp is ready."""
    return {
        _PIPE: waiting.fp32,
        "register banks": waiting.banks,
        "loads from shared memory": waiting.shared_loads,
        "loads from global memory": waiting.global_loads,
        "barriers": waiting.barriers,
        _RESULTS: waiting.stalls,
    }


def _loop(_result: Result, why: Explanation, counts: KernelCounts) -> str:
    loop = next((k.loop for k in why.kernels if k.name == counts.name), None)
    if loop is None:
        return ""
    return f"{kernel_name(counts.name)}: {loop_sentence(loop)} ({why.arch})."


def _traffic(_result: Result, why: Explanation, _counts: KernelCounts) -> str:
    return f"{_counted(why)}."


def _counted(why: Explanation) -> str:
    sectors = sum(each.global_loads.cost + each.global_copies.cost for each in why.counts)
    counted = f"Counted: {_SECTOR * sectors / 1e9:.4g} GB asked of the caches"
    return f"{counted}; every operand once is {why.bytes / 1e9:.3g} GB"


def _divergence(_result: Result, why: Explanation, _counts: KernelCounts) -> str:
    """By line, over all launches."""
    if any(each.splits is None for each in why.counts):
        return ""
    issued = sum(each.instructions for each in why.counts)
    lines: dict[tuple[str | None, int | None], list[float]] = {}
    for each in (split for counts in why.counts for split in counts.splits or ()):
        sums = lines.setdefault((each.file, each.line), [0.0, 0.0, 0.0])
        for place, value in enumerate((each.lost, each.splits, each.reached)):
            sums[place] += value
    lost = sum(sums[0] for sums in lines.values())
    if not lines:
        return "None: at every branch, all lanes of a warp go the same way."
    several = sorted(lines.items(), key=lambda item: -item[1][0])[:_LINES]
    words = "; ".join(
        f"{f'{file}:{line}' if line else 'a branch outside the submission'} splits a warp in "
        f"{100 * splits / reached:.0f} % of its executions and costs "
        f"{100 * slots / max(issued, 1):.2g} %"
        for (file, line), (slots, splits, reached) in several
    )
    more = f"; {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return (
        f"{100 * lost / max(issued, 1):.2g} % of the issue slots go to lanes that a branch "
        f"switched off. {words}{more}."
    )


_Answer = Callable[[Result, Explanation, KernelCounts], str]
_COUNTS = (
    "nvdisasm's machine code, each instruction times its executions in a few simulated blocks, "
    "scaled to the whole grid"
)


def _question(text: str, answer: _Answer, method: str) -> Question:
    def answered(evidence: Evidence) -> str:
        return answer(evidence.result, evidence.why, evidence.counts)

    return Question(text=text, method=method, answer=answered)


# By the names that problems use. Questions about one problem only are with the problem.
_QUESTIONS: Mapping[str, Question] = {
    "operations": _question(
        "How many floating-point operations?", _operations, f"the formula; {_COUNTS}"
    ),
    "peak": _question(
        "What is the peak, and how near is it?",
        _peak,
        "the driver's or the data sheet's figures; the scored time; bounds from counts over peaks "
        "of each resource",
    ),
    "limits": _question(
        "What limits this kernel?",
        _limits,
        "for each resource, its counts over its peak; waiting: an issue model runs the main loop",
    ),
    "loop": _question(
        "What is one iteration of its main loop?",
        _loop,
        "the machine code of the loop that does most of the work; grade sass --listing shows it",
    ),
    "traffic": _question(
        "How much does it read from global memory?", _traffic, f"sectors of 32 bytes: {_COUNTS}"
    ),
    "divergence": _question(
        "Which branches split warps?", _divergence, "lanes active after each branch, simulated"
    ),
}


def advice_sentence(advice: Advice) -> str:
    """The message, the gain that the model predicts, and the rung that shows the idea."""
    words = advice.message[:1].upper() + advice.message[1:] + "."
    if advice.gain is not None:
        words += f" In the model the kernel becomes {advice.gain:.3g} times as fast."
    if advice.rung is not None:
        words += f" Shown in reference/{advice.rung}."
    return words
