"""The questions of a lab's report, and the evidence from which a student's own kernel answers them.

An answer explains and shows figures; it is no essay to hand in. Each has a method: where its
figures come from, so that a student can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grader.model import (
    Explanation,
    KernelCounts,
    ProfileDocument,
    ProfiledSize,
    Record,
    Result,
    Side,
)

_ONCE = 1.1  # times the inputs: what comes from DRAM is not redundant


class Evidence(Record):
    """All that is known of a graded kernel."""

    result: Result
    why: Explanation
    counts: KernelCounts  # of the kernel that does most of the work
    profile: ProfileDocument | None  # of the same source, where grade profile ran
    sources: Mapping[str, str]  # by file name; may be empty

    def profiled(self, size: Mapping[str, int]) -> ProfiledSize | None:
        found = self.profile.sizes if self.profile else ()
        return next((each for each in found if each.size == size), None)


class Question(Record):
    text: str  # "{output}" stands for the operand that a report is about
    method: str  # how the answer was found
    answer: Callable[[Evidence], str]  # "" where there is none for this kernel


def redundancy(size: ProfiledSize, side: Side) -> Iterator[str]:
    """Whether the traffic is redundant, before and after the caches; nothing if not counted."""
    if side.asked is None or side.from_l2 is None or side.from_dram is None or not side.asked:
        return
    inputs = size.inputs
    yield (
        f"{side.name} asks for {side.asked / 1e9:.4g} GB, {side.asked / inputs:.4g} times its "
        f"inputs ({inputs / 1e9:.4g} GB). {_l1(side)} {side.from_dram / 1e9:.4g} GB come from "
        f"DRAM, {side.from_dram / inputs:.3g} times the inputs."
    )
    if side.from_dram > _ONCE * inputs:
        yield (
            "So the traffic is redundant even once the caches are counted: DRAM delivers every "
            f"input {side.from_dram / inputs:.3g} times."
        )
    elif side.asked > _ONCE * inputs:
        yield (
            "So its loads are redundant, but not its traffic with DRAM: once the caches are "
            "counted, every input is read about once. What the redundancy costs is the bandwidth "
            "of the caches, and instructions."
        )
    else:
        yield "So nothing is redundant: every input is asked for about once."


def _l1(side: Side) -> str:
    assert side.asked and side.from_l2 is not None
    if side.from_l2 >= side.asked:
        return f"{side.from_l2 / 1e9:.4g} GB are read from the L2."
    share = 100 * (1 - side.from_l2 / side.asked)
    return f"The L1 answers {share:.1f} % of that, {side.from_l2 / 1e9:.4g} GB come from the L2."
