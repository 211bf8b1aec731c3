"""The questions of a lab's report, and the evidence from which a student's own kernel answers them.

An answer explains and shows figures; it is no essay to hand in. Each has a method: where its
figures come from, so that a student can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from grader import base
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase, sentences, verbatim

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


class Sentences:
    """Sentences of a table, by section and name; a pair of them is for one and for many."""

    def __init__(self, sections: Mapping[str, Mapping[str, str | list[str]]]) -> None:
        self._sections = sections

    @classmethod
    def of(cls, table: Path) -> Sentences:
        return cls(msgspec.toml.decode(table.read_bytes()))

    def names(self, section: str) -> Iterable[str]:
        return self._sections[section]

    def words(self, section: str, name: str) -> Message:
        """Return the words of this name; the name itself where the section has none."""
        known = name in self._sections[section]
        return self.say(f"{section}.{name}") if known else verbatim(name)

    def say(self, place: str, /, **args: int | float | str | Message) -> Message:
        """Fill in the sentence at "section.name"."""
        section, _, name = place.partition(".")
        found = self._sections[section][name]
        one, many = (found, None) if isinstance(found, str) else found
        return Message(text=one, plural=many).given(**args)


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


_SENTENCES = Sentences.of(Path(__file__).with_name("sentences.toml"))


def limit_words(held: base.Occupancy) -> Message:
    """Name the resource that keeps further blocks from a multiprocessor."""
    return _SENTENCES.words("limit", held.limited_by)


def redundancy(size: base.ProfiledSize, side: base.ProfiledSide) -> Message:
    """Whether the traffic is redundant, before and after the caches; empty if not counted."""
    if side.asked is None or side.from_l2 is None or side.from_dram is None or not side.asked:
        return NOTHING
    say, inputs = _SENTENCES.say, size.inputs
    asked, dram = side.asked / inputs, side.from_dram / inputs  # times the inputs
    asks = say("traffic.asks", name=side.name, asked=side.asked / 1e9, times=asked)
    l2 = say("traffic.l2", gb=side.from_l2 / 1e9)
    if side.from_l2 < side.asked:
        share = 100 * (1 - side.from_l2 / side.asked)
        l2 = say("traffic.l1", share=share, gb=side.from_l2 / 1e9)
    verdict = "redundant" if dram > _ONCE else "cached" if asked > _ONCE else "once"
    return sentences(
        [
            asks.given(inputs=inputs / 1e9),
            l2,
            say("traffic.dram", gb=side.from_dram / 1e9, times=dram),
            say(f"traffic.{verdict}", times=dram),
        ]
    )
