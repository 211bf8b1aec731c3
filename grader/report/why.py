"""Explanation → answers to the lab's thinking questions for the student's own kernel. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grader.hardware import gpus
from grader.hardware.gpus import PEAK_UNIT
from grader.language import ENGLISH, Language
from grader.model import (
    NOTHING,
    Advice,
    Bound,
    Explanation,
    KernelCounts,
    Message,
    ProblemInfo,
    ProfileDocument,
    Record,
    Result,
    Waiting,
    clauses,
    counted,
    listed,
    phrase,
    sentences,
    size_text,
    verbatim,
)
from grader.model.names import kernel_name
from grader.problems.catalogue import names, problem_class
from grader.problems.questions import COUNTED, Evidence, Question
from grader.report.loop import loop_sentence

_SECTOR = 32  # bytes
_LINES = 4  # of branches that are listed
_PIPE = phrase("the arithmetic pipe")
_RESULTS = phrase("results of arithmetic and integer pipes")


class Said(Record):
    """One question and its answer."""

    question: Message
    answer: Message
    method: Message  # where the figures come from


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


def titles(problem: ProblemInfo) -> tuple[tuple[str, Message], ...]:
    """Name and words of every question that a report on this problem answers."""
    return tuple(
        (name, question.text.given(output=problem.output)) for name, question in _asked(problem)
    )


def _answers(evidence: Evidence) -> Iterator[Said]:
    problem = evidence.result.problem
    for _name, question in _asked(problem):
        words = question.answer(evidence)
        if words:
            asked = question.text.given(output=problem.output)
            yield Said(question=asked, answer=words, method=question.method)


def _asked(problem: ProblemInfo) -> Iterator[tuple[str, Question]]:
    """In the result's order. A result from before a problem had questions of its own gets them,
    too; a newer grader may have asked more than is known here."""
    own = problem_class(problem.name).own_questions if problem.name in names() else {}
    every = {**_QUESTIONS, **own}
    for name in dict.fromkeys((*problem.questions, *own)):
        if name in every:
            yield name, every[name]


def _operations(result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    executed = sum(each.flops for each in why.counts)
    tensor = [part for each in why.counts for part in each.tensor]
    if tensor:
        on_tensor_cores = sum(each.flops for each in tensor)
        return phrase(
            "{formula} = {operations:.4g} at {size}. The kernel executes {executed:.4g}, "
            "{share:.1f} % of them on tensor cores, by {count:.4g} {opcodes} of warps.",
            formula=result.problem.formula,
            operations=float(why.operations),
            size=size_text(why.size),
            executed=float(executed),
            share=100 * on_tensor_cores / max(executed, 1),
            count=float(sum(each.count for each in tensor)),
            opcodes=", ".join(
                sorted({"HGMMA" if each.by_warpgroup else "HMMA" for each in tensor})
            ),
        )
    ffma = sum(e.count for each in why.counts for e in each.mix if e.kind == "FFMA")
    issued = sum(each.instructions for each in why.counts)
    return phrase(
        "{formula} = {operations:.4g} at {size}. The kernel executes {executed:.4g}, as {ffma:.4g} "
        "FFMA of 32 lanes among {issued:.4g} warp instructions ({share:.1f} %).",
        formula=result.problem.formula,
        operations=float(why.operations),
        size=size_text(why.size),
        executed=float(executed),
        ffma=float(ffma),
        issued=float(issued),
        share=100 * ffma / max(issued, 1),
    )


def measured_speed(result: Result) -> float | None:
    """The scored speed at the explained size; None if that size was not timed."""
    why = result.explanation
    for case in result.cases:
        timing = case.timing
        if why and timing and timing.runs and case.size == why.size:
            return timing.scored_speed
    return None


def _peak(result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    problem = result.problem
    info = result.environment.gpu
    card = gpus.of(info) if info else None
    speed = measured_speed(result)
    allowed = phrase(
        "the counts of {launches} allow {shares}",
        launches=_launches(why),
        shares=_shares(why.bounds, problem.unit),
    )
    if card is None or speed is None:
        peaks = ", ".join(f"{each.gpu} {each.peak:.4g}" for each in why.bounds)
        formula = verbatim("DRAM")
        if problem.counts == "operations":
            formula = (
                phrase("SMs × FP32 lanes × 2 × clock")
                if problem.arithmetic == "f32"
                else phrase("SMs × products of the tensor cores in a cycle × 2 × clock")
            )
        measured = (
            phrase("Nothing was timed here")
            if speed is None
            else phrase("Measured: {speed:.4g}", speed=speed)
        )
        return phrase(
            "{formula}: {peaks} {unit}. {measured}; {allowed}.",
            formula=formula,
            peaks=peaks,
            unit=problem.unit,
            measured=measured,
            allowed=allowed,
        )
    if problem.counts == "bytes":
        peak = card.dram_gb_s * 1e9 / problem.scale
        return phrase(
            "DRAM moves {peak:.4g} {unit} on this {gpu}. Measured: {speed:.4g}, {share:.1f} %. "
            "The counts of {launches} allow {shares}.",
            peak=peak,
            unit=problem.unit,
            gpu=card.name,
            speed=speed,
            share=100 * speed / peak,
            launches=_launches(why),
            shares=_shares(why.bounds, problem.unit),
        )
    kind, _, sums = problem.arithmetic.partition(".")
    products = card.tensor_rate(kind, sums) if sums else 0
    peak = card.peak_tflops(problem.arithmetic)
    if products:
        return phrase(
            "{sms} SMs × {products:.0f} products of the tensor cores in a cycle × 2 × {clock:.3g} "
            "GHz = {peak:.4g} {unit} on this {gpu}. Measured: {speed:.4g}, {share:.1f} %. The "
            "counts of {launches} allow {shares}.",
            sms=card.multiprocessors,
            products=products,
            clock=card.clock_mhz / 1000,
            peak=peak,
            unit=PEAK_UNIT,
            gpu=card.name,
            speed=speed,
            share=100 * speed / peak,
            launches=_launches(why),
            shares=_shares(why.bounds, problem.unit),
        )
    return phrase(
        "{sms} SMs × {lanes} lanes × 2 × {clock:.3g} GHz = {peak:.3g} {unit} on this {gpu}. "
        "Measured: {speed:.4g}, {share:.1f} %. The counts of {launches} allow {shares}.",
        sms=card.multiprocessors,
        lanes=card.multiprocessor.fp32_lanes,
        clock=card.clock_mhz / 1000,
        peak=peak,
        unit=PEAK_UNIT,
        gpu=card.name,
        speed=speed,
        share=100 * speed / peak,
        launches=_launches(why),
        shares=_shares(why.bounds, problem.unit),
    )


def _launches(why: Explanation) -> Message:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    return counted("its launch", "its {count} launches together", launches)


def _shares(bounds: tuple[Bound, ...], unit: str) -> Message:
    if len(bounds) == 1:
        return _share(bounds[0], unit)
    return listed(
        phrase("{share} on {gpu}", share=_share(each, unit), gpu=each.gpu) for each in bounds
    )


def _share(bound: Bound, unit: str) -> Message:
    """Only what no waiting is part of is "at most"."""
    if bound.most is None:
        return phrase("about {speed}", speed=_of_peak(bound.speed, bound, unit))
    words = phrase("at most {speed}", speed=_of_peak(bound.most.speed, bound, unit))
    if bound.resource != "waiting":
        return words
    return phrase("{most}, about {speed:.3g} expected", most=words, speed=bound.speed)


def _of_peak(speed: float, bound: Bound, unit: str) -> str:
    return f"{speed:.4g} {unit} ({100 * speed / bound.peak:.0f} %)"


def speed_sentence(result: Result, why: Explanation, bound: Bound) -> Message:
    """The bound with its resource, and the estimate where waiting makes it lower."""
    peak = phrase(
        "{peak:.4g} {unit} at {size}",
        peak=bound.peak,
        unit=result.problem.unit,
        size=size_text(why.size),
    )
    launches = _launches(why)
    if bound.most is None:
        return phrase(
            "about {speed:.4g} of {peak}, by the counts of {launches}; the limit is {limit}",
            speed=bound.speed,
            peak=peak,
            launches=launches,
            limit=limit(bound),
        )
    words = phrase(
        "at most {speed:.4g} of {peak}, by the counts of {launches}",
        speed=bound.most.speed,
        peak=peak,
        launches=launches,
    )
    resource = resource_name(bound.most.resource)
    if bound.resource != "waiting":
        return phrase("{bound}; the limit is {limit}", bound=words, limit=resource)
    return phrase(
        "{bound} ({resource}); about {speed:.3g} is expected: the limit is {limit}",
        bound=words,
        resource=resource,
        speed=bound.speed,
        limit=limit(bound),
    )


def _limits(result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    bounds, unit = why.bounds, result.problem.unit
    if not bounds:
        return NOTHING
    first = bounds[0]
    hard = [each for each in first.limits if each.resource != "waiting"]
    several = listed(
        phrase("{resource} {speed:.3g}", resource=resource_name(each.resource), speed=each.speed)
        for each in hard[:4]
    )
    said = [
        phrase(
            "On {gpu}: {resource}. {unit} that each resource allows at most: {several}.",
            gpu=first.gpu,
            resource=_resource(first.resource),
            unit=unit,
            several=several,
        )
    ]
    if first.waiting is not None and first.resource == "waiting":
        said.append(phrase("With waiting, about {speed:.3g}.", speed=first.speed))
        said.append(_waiting(first.waiting))
    said += [
        phrase(
            "On {gpu}: {resource} (about {speed:.3g} {unit}).",
            gpu=each.gpu,
            resource=_resource(each.resource),
            speed=each.speed,
            unit=unit,
        )
        for each in bounds[1:]
        if each.resource != first.resource
    ]
    return sentences(said)


_RESOURCES = {
    "issue": phrase("issue slots: too many instructions besides the FFMA"),
    "FP32": phrase("the FP32 pipes themselves"),
    "tensor cores": phrase("the tensor cores themselves"),
    "shared memory": phrase("shared memory: wavefronts of its loads and stores"),
    "L1": phrase("the L1 cache: lines of 128 bytes that loads from global memory touch"),
    "L2": phrase("the L2 cache's bandwidth"),
    "DRAM": phrase("DRAM's bandwidth"),
    "waiting": phrase("waiting: at times no warp is ready"),
    "latency": phrase("latency: too few warps to hide it"),
}
_RESOURCE_NAMES = {
    "issue": phrase("issue"),
    "tensor cores": phrase("tensor cores"),
    "shared memory": phrase("shared memory"),
    "waiting": phrase("waiting"),
    "latency": phrase("latency"),
}


def _resource(name: str) -> Message:
    return _RESOURCES.get(name, verbatim(name))


def resource_name(name: str) -> Message:
    return _RESOURCE_NAMES.get(name, verbatim(name))


def limit(bound: Bound) -> Message:
    """The limiting resource in a few words: "shared memory", "waiting for barriers"."""
    if bound.resource != "waiting" or bound.waiting is None:
        return resource_name(bound.resource)
    reasons = _reasons(bound.waiting)
    reasons.pop(_PIPE)  # a busy pipe is the goal, not a cause of waiting
    longest = max(reasons, key=lambda name: reasons[name])
    if longest == _RESULTS:
        return phrase(
            "waiting for {reason}, which more independent work for each scheduler would hide",
            reason=longest,
        )
    return phrase("waiting for {reason}", reason=longest)


def _waiting(waiting: Waiting) -> Message:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting).items(), key=lambda pair: -pair[1])
    named = listed(
        phrase("{reason} {share:.0f} %", reason=reason, share=100 * share)
        for reason, share in several
        if share >= 0.005
    )
    return phrase(
        "In the issue model the schedulers issue in {share:.0f} % of the cycles; the rest go by in "
        "waiting for {reasons}.",
        share=100 * waiting.issued,
        reasons=named,
    )


def _reasons(waiting: Waiting) -> dict[Message, float]:
    """Shares of the cycles in which no warp is ready."""
    return {
        _PIPE: waiting.fp32,
        phrase("register banks"): waiting.banks,
        phrase("loads from shared memory"): waiting.shared_loads,
        phrase("loads from global memory"): waiting.global_loads,
        phrase("barriers"): waiting.barriers,
        _RESULTS: waiting.stalls,
    }


def _loop(_result: Result, why: Explanation, counts: KernelCounts) -> Message:
    loop = next((k.loop for k in why.kernels if k.name == counts.name), None)
    if loop is None:
        return NOTHING
    return phrase(
        "{kernel}: {loop} ({arch}).",
        kernel=kernel_name(counts.name),
        loop=loop_sentence(loop),
        arch=why.arch,
    )


def _traffic(_result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    sectors = sum(
        each.global_loads.cost + each.global_copies.cost + each.bulk_loads.cost
        for each in why.counts
    )
    return phrase(
        "Counted: {counted:.4g} GB asked of the caches; every operand once is {once:.3g} GB.",
        counted=_SECTOR * sectors / 1e9,
        once=why.bytes / 1e9,
    )


def _divergence(_result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    """By line, over all launches."""
    if any(each.splits is None for each in why.counts):
        return NOTHING
    issued = sum(each.instructions for each in why.counts)
    lines: dict[tuple[str | None, int | None], list[float]] = {}
    for each in (split for counts in why.counts for split in counts.splits or ()):
        sums = lines.setdefault((each.file, each.line), [0.0, 0.0, 0.0])
        for place, value in enumerate((each.lost, each.splits, each.reached)):
            sums[place] += value
    lost = sum(sums[0] for sums in lines.values())
    if not lines:
        return phrase("None: at every branch, all lanes of a warp go the same way.")
    several = sorted(lines.items(), key=lambda item: -item[1][0])[:_LINES]
    said = [
        phrase(
            "{branch} splits a warp in {share:.0f} % of its executions and costs {cost:.2g} %",
            branch=verbatim(f"{file}:{line}")
            if line
            else phrase("a branch outside the submission"),
            share=100 * splits / reached,
            cost=100 * slots / max(issued, 1),
        )
        for (file, line), (slots, splits, reached) in several
    ]
    if len(lines) > _LINES:
        said.append(phrase("{count} more", count=len(lines) - _LINES))
    return phrase(
        "{share:.2g} % of the issue slots go to lanes that a branch switched off. {branches}.",
        share=100 * lost / max(issued, 1),
        branches=clauses(said),
    )


_Answer = Callable[[Result, Explanation, KernelCounts], Message]


def _question(text: Message, answer: _Answer, method: Message) -> Question:
    def answered(evidence: Evidence) -> Message:
        return answer(evidence.result, evidence.why, evidence.counts)

    return Question(text=text, method=method, answer=answered)


# By the names that problems use. Questions about one problem only are with the problem.
_QUESTIONS: Mapping[str, Question] = {
    "operations": _question(
        phrase("How many floating-point operations?"),
        _operations,
        phrase("the formula; {counts}", counts=COUNTED),
    ),
    "peak": _question(
        phrase("What is the peak, and how near is it?"),
        _peak,
        phrase(
            "the driver's or the data sheet's figures; the scored time; bounds from counts over "
            "the peaks of each resource"
        ),
    ),
    "limits": _question(
        phrase("What limits this kernel?"),
        _limits,
        phrase(
            "for each resource, its counts over its peak; waiting: an issue model runs the main "
            "loop"
        ),
    ),
    "loop": _question(
        phrase("What is one iteration of its main loop?"),
        _loop,
        phrase(
            "the machine code of the loop that does most of the work; grade sass --listing shows it"
        ),
    ),
    "traffic": _question(
        phrase("How much does it read from global memory?"),
        _traffic,
        phrase("sectors of 32 bytes: {counts}", counts=COUNTED),
    ),
    "divergence": _question(
        phrase("Which branches split warps?"),
        _divergence,
        phrase("lanes active after each branch, simulated"),
    ),
}


def advice_sentence(advice: Advice, language: Language = ENGLISH) -> str:
    """The message, the gain that the model predicts, and the rung that shows the idea."""
    words = language(advice.message)
    said = [phrase("{advice}.", advice=words[:1].upper() + words[1:])]
    if advice.gain is not None:
        said.append(
            phrase("In the model the kernel becomes {gain:.3g} times as fast.", gain=advice.gain)
        )
    if advice.rung is not None:
        said.append(phrase("Shown in reference/{rung}.", rung=advice.rung))
    return language(sentences(said))
