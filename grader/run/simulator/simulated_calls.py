"""The calls of one case: each on fresh inputs, each verified, and what they come to.

A plan without a set-up is one call, or two: where no other case runs blocks in the other order, and
where threads synchronise through global memory, so that all sizes run in the order in which these
give way to each other. Where a call leaves memory behind, the set-up runs first, as the first call
of a real program does, then the call that is judged, then the same call once more: it must not
depend on finding things as the first one did.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from grader.base import ErrorStats, Finding, Kind, Rejected, Verdict, element_words, wrong_elements
from grader.problems import FUNCTION, Operand, OutputCheck, Problem, check, make_inputs, poisoned
from grader.results import ThreadTile
from grader.run.protocol import CaseOutcome, PlannedCase
from grader.run.simulator.messages import BlockCapacity
from grader.run.simulator.reach import idle_blocks, unreached
from ptxsim import Reason, RefusedProgram, SimOutcome
from ptxsim import findings as simulator
from ptxsim.findings import Residency, Severity, in_elements, remark, with_early
from ptxsim.plan import Launch, Plan, Record, Size
from ptxsim.text import NOTHING, Message, enumerated, listed, phrase, verbatim

_PRINTED_CHARACTERS = 2000
_SHOWN_THREADS, _SHOWN_ELEMENTS = 4, 256  # of a block; of each thread
_LARGEST_TILE = 1 << 16  # elements
_AGAIN = 1 / 3  # of a call's time: the call runs once more if it took less
_CALLS = 3
_FIRST = 1 << 20  # elements that stand for all
_LATER_IS_WRONG = {
    2: phrase("the first call is right, the second is not: {what}"),
    3: phrase("the first two calls are right, the third is not: {what}"),
}


class Arrays:
    """The operands of one size, and copies of what is given to compare with; ``turn``: of the first
    call."""

    def __init__(self, problem: Problem, size: Size, turn: int) -> None:
        self._problem, self._size = problem, size
        self.operands = problem.operands(size)
        self._inputs = [each for each in self.operands if each.given]
        self._outputs = [each for each in self.operands if each.written]
        self._unchanged = len(self.operands) - len(self._outputs)  # so many before the outputs
        self._originals = make_inputs(self.operands)
        self._given = [each.copy() for each in self._originals]
        self._turn = turn
        new = (poisoned(each, turn) for each in self._outputs if not each.given)
        self._results = [*self._given[self._unchanged :], *new]
        arrays = (*self._given[: self._unchanged], *self._results)
        self.buffers = {i: _bytes(each) for i, each in enumerate(arrays)}

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.buffers.values())

    def renew(self) -> None:
        """Other inputs, and nothing in the outputs."""
        self._originals = make_inputs(self.operands)
        for given, original in zip(self._given, self._originals, strict=True):
            given[:] = original
        self._turn += 1
        self.poison()

    def poison(self) -> int:
        """Put nothing in the outputs, or what is given, and return a digest of what they held."""
        held = hash(tuple(each.tobytes() for each in self._results))
        changed = self._originals[self._unchanged :]
        new = (poisoned(each, self._turn) for each in self._outputs[len(changed) :])
        for result, before in zip(self._results, (*changed, *new), strict=True):
            _bytes(result)[:] = _bytes(before)
        return held

    def check(self) -> OutputCheck:
        return check(self._problem, self._size, self._originals, self._results)

    @property
    def matrices(self) -> tuple[int, ...]:
        """The outputs that are matrices, as indices of allocations."""
        found = enumerate(self._outputs, self._unchanged)
        return tuple(index for index, each in found if len(each.shape) == 2)

    def tile(self, writers: Mapping[int, NDArray[Any]]) -> ThreadTile | None:
        """Where threads of the block that computes the first element of a matrix wrote."""
        for operand, who in self._written(writers):
            if not who["block"][0]:
                continue
            places = np.flatnonzero(who["block"] == who["block"][0])
            rows, columns = (each - each.min() for each in operand.index(places))
            height, width = int(rows.max()) + 1, int(columns.max()) + 1
            elements = rows * width + columns
            shown = (np.sort(elements[who["thread"][places] == t]) for t in range(_SHOWN_THREADS))
            if height * width <= _LARGEST_TILE:
                return ThreadTile(
                    operand=operand.name,
                    rows=height,
                    columns=width,
                    threads=tuple(tuple(each[:_SHOWN_ELEMENTS].tolist()) for each in shown),
                )
        return None

    def unreached(
        self, writers: Mapping[int, NDArray[Any]], plan: Plan, error: ErrorStats
    ) -> Message:
        """Say what of a matrix the only launch of a plan does not reach, if just that is wrong."""
        launches = [each for each in plan.operations if isinstance(each, Launch)]
        for operand, who in self._written(writers):
            missing = int(np.count_nonzero(who["block"] == 0))
            if (operand.name, missing, len(launches)) == (error.operand, error.wrong, 1):
                return unreached(operand, who, launches[0])
        return NOTHING

    def idle(self, outcome: SimOutcome) -> tuple[Finding, ...]:
        """A warning for each launch of a call most of whose blocks store nothing."""
        own = (Kind.IDLE_BLOCKS, Severity.WARNING)
        written = list(self._written(outcome.writers)) if len(outcome.blocks) == 1 else []
        said = (idle_blocks(each, written) for each in outcome.blocks)
        return tuple(Finding.at(None, *own, words) for words in dict.fromkeys(said) if words)

    def _written(
        self, writers: Mapping[int, NDArray[Any]]
    ) -> Iterator[tuple[Operand, NDArray[Any]]]:
        """Matrices that the last launch wrote, and who wrote each element."""
        for index, who in writers.items():
            operand = self._outputs[index - self._unchanged]
            if who.size and who.size % operand.count == 0:
                yield operand, who[:: who.size // operand.count]  # several cells for a wide element

    def modified(self) -> tuple[Finding, ...]:
        """A finding for each input that is no longer as it was given."""
        found = []
        inputs = self._inputs[: self._unchanged]
        names = enumerated(verbatim(each.name) for each in inputs)
        for operand, before, after in zip(inputs, self._originals, self._given, strict=False):
            differs = (_bytes(before) != _bytes(after)).reshape(operand.count, -1).any(axis=1)
            changed = np.flatnonzero(differs)
            if changed.size:
                message = phrase(
                    "{place} was overwritten; {names} must not change",
                    place=element_words(operand.named(operand.index(int(changed[0])))),
                    names=names,
                )
                own = (Kind.INPUT_MODIFIED, Severity.ERROR, message)
                found.append(Finding.at(None, *own, count=int(changed.size)))
        return tuple(found)


class SeenCall(Record):
    outcome: SimOutcome
    check: OutputCheck | None  # None: it did not end
    findings: tuple[Finding, ...]
    steady: bool = False  # as in ``CaseOutcome``

    @property
    def fails(self) -> bool:
        wrong = self.check is None or bool(self.check.message)
        return wrong or any(each.severity is Severity.ERROR for each in self.findings)


def seen_calls(
    calls: Iterator[SimOutcome],
    plan: Plan,
    arrays: Arrays,
    seconds: float,
    capacities: Sequence[BlockCapacity],
    *,
    turn: int,
    alone: bool,
) -> list[SeenCall]:
    """The calls as far as they are right; ``seconds`` is what each may take. capacities: one for
    every launch of the plan; turn: of the first call; alone: the job has no other case."""
    seen: list[SeenCall] = []
    while True:
        started = time.thread_time()
        outcome = next(calls)
        took = time.thread_time() - started
        check = None if outcome.stopped else arrays.check()
        # The GPU that a launch of too many blocks did not fit.
        details = (each.detail for each in outcome.findings)
        held = {each.fitting for each in details if isinstance(each, Residency)}
        gpu = next((capacity.gpu for capacity in capacities if capacity.blocks in held), "")
        wrong = check is not None and bool(check.message)
        found = with_early(outcome.findings, outcome.early if wrong else ())
        sizes = element_sizes(arrays.operands, plan)
        findings = (*worded(found, gpu, sizes), *arrays.modified())
        kinds = {each.kind for each in findings if each.severity is Severity.ERROR}
        steady = wrong and kinds == {Kind.RACE} and not plan.setup and took <= _AGAIN * seconds
        if steady:  # does it come of the race? The next call runs in the other order
            before = arrays.poison()
            steady = next(calls).stopped is None and arrays.poison() == before
        seen.append(SeenCall(outcome=outcome, check=check, findings=findings, steady=steady))
        in_order = turn % 2 == 0  # of the numbers
        most = _CALLS if plan.setup else 1 + (alone or (in_order and outcome.synchronises))
        judged = not plan.setup or len(seen) == 2
        again = not judged or (not plan.calls_differ and took <= _AGAIN * seconds)
        if seen[-1].fails or not again or len(seen) == most:
            return seen
        arrays.renew()


def summary(
    planned: PlannedCase, seen: Sequence[SeenCall], arrays: Arrays, *, hints: bool, shown: bool
) -> CaseOutcome:
    """Combine the calls: counts are the judged call's, the verdict that of the worst. hints: also
    if all elements are right; shown: with the tile that a block computes."""
    judged, last = seen[min(1, len(seen) - 1)], seen[-1]
    mistaken = any(each.severity is Severity.ERROR for each in judged.findings)
    findings = [*(() if mistaken else arrays.idle(judged.outcome)), *judged.findings]
    known = {(each.subject, each.message) for each in findings}
    for each in (finding for other in seen for finding in other.findings):
        if (each.subject, each.message) not in known:
            known.add((each.subject, each.message))
            findings.append(each)
    message = last.check.message if last.check else NOTHING
    if message and last.check:
        error = last.check.error
        if ends := arrays.unreached(last.outcome.writers, planned.plan, error):
            wrong = wrong_elements(error.wrong, math.prod(error.shape))
            message = phrase("{wrong}: {cause}", wrong=wrong, cause=ends)
    if message or hints:
        findings += worded(last.outcome.hints)
    by_order = message and last.outcome.early  # why a later call is wrong
    if planned.plan.setup and len(seen) > 1 and last.fails and not by_order:
        what = phrase("it depends on the one before it")
        if changed := seen[-2].outcome.changed:
            names = listed(map(verbatim, changed[:3]))
            what = phrase("the previous call changed {names}", names=names)
        cause = _LATER_IS_WRONG[len(seen)].given(what=what)
        if message:
            message = phrase("{cause}; {wrong}", cause=cause, wrong=message)
        findings.insert(0, Finding(kind=Kind.STATE_LEFT, severity=Severity.ERROR, message=cause))
    if how := planned.plan.calls_differ:
        words = phrase(
            "the calls of {function} differ, and the third one is judged: {how}",
            function=FUNCTION,
            how=how,
        )
        findings.append(Finding(kind=Kind.CALLS_DIFFER, severity=Severity.WARNING, message=words))
    return msgspec.structs.replace(
        planned.case,
        message=message,
        stopped=last.outcome.stopped,
        seconds=sum(each.outcome.seconds for each in seen),
        error=last.check.error if last.check else None,
        findings=tuple(findings),
        steady=last.steady,
        lines=judged.outcome.lines,
        printed=judged.outcome.printed[:_PRINTED_CHARACTERS],
        tile=arrays.tile(judged.outcome.writers) if shown else None,
    )


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.view(np.uint8)


# --- wording -----------------------------------------------------------------------------------

_REFUSALS = {
    Reason.UNREADABLE: (Verdict.IE, phrase("the grader cannot read what nvcc made of this: {why}")),
    Reason.ASSEMBLY: (
        Verdict.CE,
        phrase(
            "the grader cannot read the PTX that inline assembly makes here ({why}); write plain "
            "instructions and declarations, as nvcc itself does"
        ),
    ),
    Reason.TAKEN_NAME: (Verdict.CE, phrase("{why}; give yours another name")),
    Reason.LONG_NAME: (Verdict.CE, phrase("{why}; give yours a shorter one")),
    Reason.UNSUPPORTED: (Verdict.IE, phrase("{why}; grade it on a GPU")),
    Reason.TOO_LARGE: (Verdict.IE, phrase("{why}; grade it on a GPU")),
    Reason.UNSOUND: (Verdict.RE, phrase("{why}")),
    Reason.WRONG_PLAN: (Verdict.RE, phrase("the recorded launches do not fit the program: {why}")),
}


def element_sizes(operands: Sequence[Operand], plan: Plan) -> dict[int, int]:
    """Return the bytes of an operand's elements, by the operand's address."""
    given = zip(plan.allocations, operands, strict=False)  # they come first, in this order
    return {allocation.address: operand.element.bytes for allocation, operand in given}


def whole_numbers(operands: Sequence[Operand]) -> dict[int, NDArray[np.uint8]]:
    """Return the first of each input of whole numbers, by its place: a kernel may take them as
    indices, for which made-up numbers would not do."""
    return {
        place: make_inputs([part])[0].view(np.uint8)
        for place, each in enumerate(operands)
        if each.given and each.element.whole
        for part in (msgspec.structs.replace(each, shape=(min(each.count, _FIRST),)),)
    }


def worded(
    findings: Sequence[simulator.Finding], gpu: str = "", sizes: Mapping[int, int] | None = None
) -> tuple[Finding, ...]:
    """gpu: that more blocks wait for each other than it holds, where one does. sizes: as from
    ``element_sizes``."""
    return tuple(remark(in_elements(seen, sizes or {}), Kind, gpu) for seen in findings)


def rejected(refusal: RefusedProgram) -> Rejected:
    """The verdict on a program that the simulator rejects, with its message and findings."""
    verdict, words = _REFUSALS[refusal.reason]
    message = words.given(why=refusal.message)
    place, findings = refusal.place, worded(refusal.findings)
    if refusal.reason is Reason.ASSEMBLY:
        findings += (Finding.at(place, Kind.UNSUPPORTED, Severity.ERROR, message),)
    if place:
        message = phrase("{place}: {what}", place=f"{place.file}:{place.line}", what=message)
    return Rejected(verdict, message, findings)
