"""Public and hidden sizes as groups, in words. Of hidden sizes these are all that anybody reads."""

from __future__ import annotations

from grader.model import Result, SizeGroup, Verdict
from grader.report.text import VERDICT_WORDS


def group_sentences(result: Result) -> tuple[str, ...]:
    """One for each group; () for a lab without hidden sizes."""
    return tuple(_sentence(group, result) for group in result.groups)


def right_of(group: SizeGroup) -> str:
    """``all 3 right``, ``2 of 3 right: wrong answer, out-of-bounds``."""
    if group.verdict is None:
        return "not run"
    if group.verdict is Verdict.AC:
        return f"all {group.sizes} right"
    words = ", ".join((VERDICT_WORDS[group.verdict], *(kind.value for kind in group.mistakes)))
    return f"{group.right} of {group.sizes} right: {words}"


def _sentence(group: SizeGroup, result: Result) -> str:
    name = f"{group.name.capitalize()} sizes"
    if not group.sizes:
        return f"{name}: not graded here, where their secret is missing. They count in the course."
    if not _weighed(result):
        return f"{name}: {right_of(group)}."
    share = 100 * group.weight / sum(each.weight for each in result.groups)
    points = f"{group.points:.4g} points; " if group.points is not None else ""
    return f"{name}: {right_of(group)}; {points}they count {share:.3g} %."


def _weighed(result: Result) -> bool:
    return all(group.sizes for group in result.groups)
