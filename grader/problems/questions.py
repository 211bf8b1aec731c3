"""The questions of a lab's report, and the evidence from which a student's own kernel answers them.

An answer explains and shows figures; it is no essay to hand in. Each has a method: where its
figures come from, so that a student can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from grader import base
from ptxsim.message import NOTHING, Message, phrase, sentences, verbatim
from ptxsim.records import Record

_LIMITS = {
    "registers": phrase("registers"),
    "shared memory": phrase("shared memory"),
    "warps": phrase("warps"),
    "blocks": phrase("blocks"),
}
_ONCE = 1.1  # times the inputs: what comes from DRAM is not redundant


class Evidence(Record):
    """All that is known of a graded kernel."""

    result: base.Result
    why: base.Explanation
    counts: base.KernelCounts  # of the kernel that does most of the work
    profile: base.ProfileDocument | None  # of the same source, where grade profile ran
    sources: Mapping[str, str]  # by file name; may be empty

    def profiled(self, size: Mapping[str, int]) -> base.ProfiledSize | None:
        found = self.profile.sizes if self.profile else ()
        return next((each for each in found if each.size == size), None)


class Question(Record):
    text: Message  # "{output}" stands for the operand that a report is about
    method: Message  # how the answer was found
    answer: Callable[[Evidence], Message]  # empty where there is none for this kernel


COUNTED = phrase(
    "nvdisasm's machine code, each instruction times its executions in a few simulated blocks, "
    "scaled to the whole grid"
)


class QuestionTable:
    """Questions by name, and the sentences from which their answers choose."""

    def __init__(self, path: Path) -> None:
        self._rows: dict[str, Any] = msgspec.toml.decode(path.read_bytes())

    def questions(
        self, answers: Mapping[str, Callable[[Evidence], Message]]
    ) -> dict[str, Question]:
        return {
            name: Question(
                text=Message(text=self._rows[name]["text"]),
                method=Message(text=self._rows[name]["method"], args={"counts": COUNTED}),
                answer=answer,
            )
            for name, answer in answers.items()
        }

    def say(self, name: str, /, **args: int | float | str | Message) -> Message:
        """Fill in a sentence: "tiling.saved"; a pair of them is for one and for many."""
        question, _, own = name.partition(".")
        found = self._rows[question]["said"][own]
        one, many = (found, None) if isinstance(found, str) else found
        return Message(text=one, plural=many).given(**args)


def limit_words(held: base.Occupancy) -> Message:
    """Name the resource that keeps further blocks from a multiprocessor."""
    return _LIMITS.get(held.limited_by, verbatim(held.limited_by))


def redundancy(size: base.ProfiledSize, side: base.ProfiledSide) -> Message:
    """Whether the traffic is redundant, before and after the caches; empty if not counted."""
    if side.asked is None or side.from_l2 is None or side.from_dram is None or not side.asked:
        return NOTHING
    inputs = size.inputs
    asks = phrase(
        "{name} asks for {asked:.4g} GB, {times:.4g} times its inputs ({inputs:.4g} GB).",
        name=side.name,
        asked=side.asked / 1e9,
        times=side.asked / inputs,
        inputs=inputs / 1e9,
    )
    dram = phrase(
        "{gb:.4g} GB come from DRAM, {times:.3g} times the inputs.",
        gb=side.from_dram / 1e9,
        times=side.from_dram / inputs,
    )
    if side.from_dram > _ONCE * inputs:
        verdict = phrase(
            "So the traffic is redundant even once the caches are counted: DRAM delivers every "
            "input {times:.3g} times.",
            times=side.from_dram / inputs,
        )
    elif side.asked > _ONCE * inputs:
        verdict = phrase(
            "So its loads are redundant, but not its traffic with DRAM: once the caches are "
            "counted, every input is read about once. What the redundancy costs is the bandwidth "
            "of the caches, and instructions."
        )
    else:
        verdict = phrase("So nothing is redundant: every input is asked for about once.")
    return sentences([asks, _l2(side.asked, side.from_l2), dram, verdict])


def _l2(asked: float, from_l2: float) -> Message:
    if from_l2 >= asked:
        return phrase("{gb:.4g} GB are read from the L2.", gb=from_l2 / 1e9)
    return phrase(
        "The L1 answers {share:.1f} % of that, {gb:.4g} GB come from the L2.",
        share=100 * (1 - from_l2 / asked),
        gb=from_l2 / 1e9,
    )
