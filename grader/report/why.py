"""Explanation → answers to the lab's thinking questions for the student's own kernel. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from grader import base
from grader.model import AccessMap, Advice
from grader.report import bounds
from grader.report.bounds import peak_sentence, resource_name, resource_words, waiting_sentence
from grader.report.formatting import SENTENCES, fix_first
from grader.report.kernels import loop_sentence
from grader.report.products.questions import PRODUCT_QUESTIONS
from grader.report.questions import Evidence, Question, QuestionTable
from grader.results import ProfileDocument, Result
from ptxsim.findings import kernel_name
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, clauses, listed, phrase, sentences, verbatim

_TABLE = QuestionTable(Path(__file__).with_name("questions.toml"))
_say = _TABLE.say
_SECTOR = 32  # bytes
_LINES = 4  # of branches that are listed


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
    """() when there is no explanation, there are no counts, or the lab shows no answers.

    sources, profile: of the same submission, as far as there are any.
    """
    why = result.explanation
    if why is None or not why.counts or "answers" in why.withheld:
        return ()
    counts = max(why.counts, key=lambda each: each.flops)
    evidence = Evidence(
        result=result, why=why, counts=counts, profile=profile, sources=sources or {}
    )
    return tuple(
        Said(question=asked, answer=words, method=question.method)
        for _, asked, question in _asked(result.problem)
        if (words := question.answer(evidence))
    )


def titles(problem: base.ProblemInfo) -> tuple[tuple[str, Message], ...]:
    """Name and words of every question that a report on this problem answers."""
    return tuple((name, asked) for name, asked, _ in _asked(problem))


def _asked(problem: base.ProblemInfo) -> Iterator[tuple[str, Message, Question]]:
    """Yield name, words and the rest of the questions in the result's order; of a product, all that
    are about products. A newer grader may have asked more than is known here."""
    product = not PRODUCT_QUESTIONS.keys().isdisjoint(problem.questions)
    for name in dict.fromkeys((*problem.questions, *(PRODUCT_QUESTIONS if product else ()))):
        if question := _QUESTIONS.get(name):
            yield name, question.text.given(output=problem.output), question


def _operations(evidence: Evidence) -> Message:
    result, why = evidence.result, evidence.why
    executed = sum(each.flops for each in why.counts)
    figures: dict[str, str | float] = {
        "formula": result.problem.formula,
        "operations": float(why.operations),
        "size": base.size_text(why.size),
        "executed": float(executed),
    }
    if tensor := [part for each in why.counts for part in each.tensor]:
        opcodes = {"HGMMA" if each.by_warpgroup else "HMMA" for each in tensor}
        figures["opcodes"] = ", ".join(sorted(opcodes))
        figures["share"] = 100 * sum(each.flops for each in tensor) / max(executed, 1)
        count = float(sum(each.count for each in tensor))
        return _say("operations.tensor", **figures, count=count)
    ffma = sum(e.count for each in why.counts for e in each.mix if e.kind == "FFMA")
    issued = sum(each.instructions for each in why.counts)
    figures["share"] = 100 * ffma / max(issued, 1)
    return _say("operations.ffma", **figures, ffma=float(ffma), issued=float(issued))


def _limits(evidence: Evidence) -> Message:
    bounds, unit = evidence.why.bounds, evidence.result.problem.unit
    if not bounds:
        return NOTHING
    first = bounds[0]
    hard = [each for each in first.limits if each.resource != "waiting"]
    several = listed(
        _say("limits.resource", resource=resource_name(each.resource), speed=each.speed)
        for each in hard[:4]
    )
    resource = resource_words(first.resource)
    said = [_say("limits.first", gpu=first.gpu, resource=resource, unit=unit, several=several)]
    if first.waiting is not None and first.resource == "waiting":
        said += [_say("limits.waiting", speed=first.speed), waiting_sentence(first.waiting)]
    for each in bounds[1:]:
        if each.resource != first.resource:
            words = _say("limits.other", gpu=each.gpu, resource=resource_words(each.resource))
            said.append(words.given(speed=each.speed, unit=unit))
    return sentences(said)


def _loop(evidence: Evidence) -> Message:
    why, name = evidence.why, evidence.counts.name
    loop = next((k.loop for k in why.kernels if k.name == name), None)
    if loop is None:
        return NOTHING
    words = loop_sentence(loop, evidence.result.problem.counts)
    return _say("loop.loop", kernel=kernel_name(name), loop=words, arch=why.arch)


def _traffic(evidence: Evidence) -> Message:
    kinds = ((c.global_loads, c.global_copies, c.bulk_loads) for c in evidence.why.counts)
    counted = _SECTOR * sum(each.cost for loads in kinds for each in loads) / 1e9
    return _say("traffic.counted", counted=counted, once=evidence.why.bytes / 1e9)


def _divergence(evidence: Evidence) -> Message:
    """List divergence by line, over all launches."""
    kernels = evidence.why.counts
    issued = max(1, sum(each.instructions for each in kernels))
    lines: dict[tuple[str | None, int | None], list[float]] = {}
    for each in (split for counts in kernels for split in counts.splits):
        sums = lines.setdefault((each.file, each.line), [0.0, 0.0, 0.0])
        for place, value in enumerate((each.lost, each.splits, each.reached)):
            sums[place] += value
    if not lines:
        return _say("divergence.none")
    said = []
    for (file, line), sums in sorted(lines.items(), key=lambda item: -item[1][0])[:_LINES]:
        branch = verbatim(f"{file}:{line}") if line else _say("divergence.outside")
        share, cost = 100 * sums[1] / sums[2], 100 * sums[0] / issued
        said.append(_say("divergence.branch", branch=branch, share=share, cost=cost))
    if len(lines) > _LINES:
        said.append(_say("divergence.more", count=len(lines) - _LINES))
    lost = 100 * sum(sums[0] for sums in lines.values()) / issued
    return _say("divergence.all", share=lost, branches=clauses(said))


_QUESTIONS = PRODUCT_QUESTIONS | _TABLE.questions(
    {
        "operations": _operations,
        "peak": lambda evidence: peak_sentence(evidence.result, evidence.why),
        "limits": _limits,
        "loop": _loop,
        "traffic": _traffic,
        "divergence": _divergence,
    }
)


def advice_sentence(
    advice: Advice, language: base.Language = base.ENGLISH, *, command: bool = True
) -> str:
    """The message, the gain that the model predicts, and the command that shows the idea."""
    words = language(advice.message)
    said = [phrase("{advice}.", advice=words[:1].upper() + words[1:])]
    if advice.gain is not None:
        said.append(
            phrase("In the model the kernel becomes {gain:.3g} times as fast.", gain=advice.gain)
        )
    return language(sentences([*said, advice_shown(advice)] if command and advice.rung else said))


def advice_in_brief(advice: Advice, language: base.Language = base.ENGLISH) -> str:
    """Return the evidence, which is the first clause; all, if no rung shows the remedy."""
    if advice.rung is None:
        return advice_sentence(advice, language, command=False)
    evidence = re.split("[;；]", language(advice.message), maxsplit=1)[0]
    return language(phrase("{advice}.", advice=evidence[:1].upper() + evidence[1:]))


def advice_shown(advice: Advice) -> Message:
    """The command that shows the idea in a rung; NOTHING without one."""
    if advice.rung is None:
        return NOTHING
    return phrase("To see it: {command}", command=f"grade rung {advice.rung}")


# By level of hint, what it needs that a lab may withhold.
HINTS: Mapping[str, tuple[str, ...]] = {"1": (), "2": ("advice",), "3": ("advice", "rungs")}


def hint(result: Result, level: str) -> Advice:
    """Return as much of the first advice as this level of hint says, or why it says nothing."""
    why, nothing = result.explanation, SENTENCES.say("hint.nothing")
    unexplained = SENTENCES.say("hint.unexplained")
    none = Advice(idea="", rung=None, message=nothing, file=None, line=None, gain=None)
    if why is None:
        return msgspec.structs.replace(none, message=fix_first(result) or unexplained)
    for refused in filter(None, (not_shown(name, why.withheld) for name in HINTS[level])):
        return msgspec.structs.replace(none, message=refused)
    first = next(iter(why.advice), none)
    if level == "1" and why.bounds:
        limit = bounds.limit(why.bounds[0])
        where = SENTENCES.say("hint.where", gpu=why.bounds[0].gpu, limit=limit)
        at: Advice | AccessMap = why.accesses[0] if why.accesses and not why.advice else first
        return msgspec.structs.replace(none, message=where, file=at.file, line=at.line)
    return first if level == "3" else msgspec.structs.replace(first, rung=None)


def not_shown(name: str, withheld: Mapping[str, str | None]) -> Message:
    """Return what is said in place of what a lab withholds; NOTHING where it does not."""
    if name not in withheld:
        return NOTHING
    time = withheld[name]
    return SENTENCES.say(f"later.{name}", time=time) if time else SENTENCES.say(f"never.{name}")
