"""All that is wrong with a program, as far as it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ptxsim.execution.host_code import HostCode
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, Severity
from ptxsim.findings.remarks import Remark, remark
from ptxsim.findings.reports import merge, stream_race
from ptxsim.plan.records import Operation, Place
from ptxsim.text import Message, counted, listed, phrase, verbatim

_MOST_NAMED = 4  # allocations of a note
_UNASKED = phrase(
    "{found} ({error}), and the program never asked: call cudaGetLastError() after the launch"
)
_FOR_THE_HOST = phrase(
    "{found}; if host code is to change it: here host code goes on when the kernel has ended"
)
_MORE = phrase("{count} more")

_Key = tuple[str, Place | None, str]


class Found:
    """Findings of launches and calls. ``shared``: host code can write to memory of kernels."""

    def __init__(self, host: HostCode) -> None:
        self._host = host
        self._launches: tuple[Finding, ...] = ()
        self._calls: dict[_Key, Remark[str]] = {}
        self._unasked: dict[_Key, str] = {}  # launches that failed, and CUDA's error
        self.shared = False
        self.errors = False

    def in_launch(self, findings: Iterable[Finding]) -> None:
        self._launches = merge([*self._launches, *findings])
        self.errors |= any(each.severity is Severity.ERROR for each in self._launches)

    def in_call(
        self,
        kind: str,
        frames: Sequence[int],
        words: Message,
        severity: Severity = Severity.ERROR,
    ) -> _Key:
        place = self._host.place(frames)
        key = (kind, place, str(words))
        count = self._calls[key].count + 1 if key in self._calls else 1
        self._calls[key] = Remark.at(place, kind, severity, words, count=count)
        self.errors |= severity is Severity.ERROR
        return key

    def failed_launch(self, frames: Sequence[int], words: Message, error: str) -> None:
        self._unasked[self.in_call("failed-call", frames, words)] = error

    def in_race(self, first: Operation, second: Operation, name: str) -> None:
        """Two operations on different streams use this memory."""
        self.in_launch([stream_race(self._placed(first), self._placed(second), name)])

    def _placed(self, operation: Operation) -> Operation:
        return msgspec.structs.replace(operation, place=self._host.place(operation.frames))

    def asked(self) -> None:
        """The program has looked at the error of what failed so far."""
        self._unasked.clear()

    def remarks(self) -> list[Remark[str]]:
        """All of them, errors first."""
        order = list(Severity)
        found = [*map(self._of_call, self._calls), *self._of_launches()]
        return sorted(found, key=lambda each: order.index(each.severity))

    def _of_call(self, key: _Key) -> Remark[str]:
        found = self._calls[key]
        if key not in self._unasked:
            return found
        message = _UNASKED.given(found=found.message, error=self._unasked[key])
        return msgspec.structs.replace(found, message=message)

    def _of_launches(self) -> Iterable[Remark[str]]:
        for each in self._launches:
            if each.severity is Severity.NOTE:
                continue
            waits = self.shared and each.event in (Event.WAITS_FOR_EVER, Event.ENDLESS)
            said = remark(each, str)
            if waits:
                words = _FOR_THE_HOST.given(found=said.message)
                said = msgspec.structs.replace(said, message=words)
            yield said


def leak(left: Sequence[tuple[Callable[[], str], int]]) -> Remark[str]:
    """A note on allocations that were not freed, as their names and bytes."""
    counts = Counter(name() for name, _ in left)
    times = phrase("{name}, {count} times")
    named = [
        verbatim(name) if count == 1 else times.given(name=name, count=count)
        for name, count in list(counts.items())[:_MOST_NAMED]
    ]
    if len(counts) > _MOST_NAMED:
        named.append(_MORE.given(count=len(counts) - _MOST_NAMED))
    words = counted(
        "{count} allocation, {bytes:,} bytes, was not freed: {names}",
        "{count} allocations, {bytes:,} bytes in all, were not freed: {names}",
        len(left),
        bytes=sum(size for _, size in left),
        names=listed(named),
    )
    return Remark(kind="leak", severity=Severity.NOTE, message=words)
