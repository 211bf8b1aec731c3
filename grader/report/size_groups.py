"""Public and hidden sizes as groups, in words. Of hidden sizes these are all that anybody reads."""

from __future__ import annotations

from grader.model import Message, Result, SizeGroup, Verdict, counted, kind_words, listed, phrase
from grader.report.text import VERDICT_WORDS

_NAMES = {"public": phrase("Public sizes"), "hidden": phrase("Hidden sizes")}


def group_sentences(result: Result) -> tuple[Message, ...]:
    """One for each group; () for a lab without hidden sizes."""
    return tuple(_sentence(group, result) for group in result.groups)


def right_of(group: SizeGroup) -> Message:
    """``all 3 right``, ``2 of 3 right: wrong answer, out-of-bounds``."""
    if group.verdict is None:
        return phrase("not run")
    if group.verdict is Verdict.AC:
        return counted("the one is right", "all {count} right", group.sizes)
    kinds = listed((VERDICT_WORDS[group.verdict], *map(kind_words, group.mistakes)))
    return phrase(
        "{right} of {sizes} right: {kinds}", right=group.right, sizes=group.sizes, kinds=kinds
    )


def _sentence(group: SizeGroup, result: Result) -> Message:
    name, right = _NAMES[group.name], right_of(group)
    if not group.sizes:
        return phrase(
            "{name}: not graded here, where their secret is missing. They count in the course.",
            name=name,
        )
    if not all(each.sizes for each in result.groups):
        return phrase("{name}: {right}.", name=name, right=right)
    share = 100 * group.weight / sum(each.weight for each in result.groups)
    if group.points is None:
        return phrase(
            "{name}: {right}; they count {share:.3g} %.", name=name, right=right, share=share
        )
    return phrase(
        "{name}: {right}; {points:.4g} points; they count {share:.3g} %.",
        name=name,
        right=right,
        points=group.points,
        share=share,
    )
