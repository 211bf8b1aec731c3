"""The questions of a lab's report, and the evidence from which a student's own kernel answers them.

An answer explains and shows figures; it is no essay to hand in. Each has a method: where its
figures come from, so that a student can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from grader.base import Sentences, gpus
from grader.model import Explanation, KernelCounts
from grader.report.formatting import SENTENCES
from grader.results import ProfileDocument, ProfiledSide, ProfiledSize, Result
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase, sentences

_ONCE = 1.1  # times the inputs: what comes from DRAM is not redundant


class Evidence(Record):
    """All that is known of a graded kernel."""

    result: Result
    why: Explanation
    counts: KernelCounts  # of the kernel that does most of the work
    profile: ProfileDocument | None  # of the same source, where grade profile ran
    sources: Mapping[str, str]  # by file name; may be empty

    def profiled(self, size: Mapping[str, int | str]) -> ProfiledSize | None:
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


class QuestionTable(Sentences):
    """Questions by name, and the sentences from which their answers choose."""

    def __init__(self, table: Path) -> None:
        self._rows: dict[str, Any] = msgspec.toml.decode(table.read_bytes())
        super().__init__({name: row.get("said", {}) for name, row in self._rows.items()})

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


def limit_words(held: gpus.Occupancy) -> Message:
    """Name the resource that keeps further blocks from a multiprocessor."""
    return SENTENCES.words("occupancy", held.limited_by)


def redundancy(size: ProfiledSize, side: ProfiledSide) -> Message:
    """Whether the traffic is redundant, before and after the caches; empty if not counted."""
    if side.asked is None or side.from_l2 is None or side.from_dram is None or not side.asked:
        return NOTHING
    say, inputs = SENTENCES.say, size.inputs
    asked, dram = side.asked / inputs, side.from_dram / inputs  # times the inputs
    asks = say("redundancy.asks", name=side.name, asked=side.asked / 1e9, times=asked)
    l2 = say("redundancy.l2", gb=side.from_l2 / 1e9)
    if side.from_l2 < side.asked:
        share = 100 * (1 - side.from_l2 / side.asked)
        l2 = say("redundancy.l1", share=share, gb=side.from_l2 / 1e9)
    verdict = "redundant" if dram > _ONCE else "cached" if asked > _ONCE else "once"
    return sentences(
        [
            asks.given(inputs=inputs / 1e9),
            l2,
            say("redundancy.dram", gb=side.from_dram / 1e9, times=dram),
            say(f"redundancy.{verdict}", times=dram),
        ]
    )
