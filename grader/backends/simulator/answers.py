"""Whether the answers of the simulator's process, which nobody trusts, are possible."""

from __future__ import annotations

import msgspec

from grader.backends.protocol import CaseOutcome, Failed, PlannedCase
from grader.backends.simulator.simulation_messages import Refused, Reply
from grader.errors import MachineError, Rejected
from grader.model import Verdict, phrase
from ptxsim.sampling import LaunchSample

_ABSURD = 1 << 53
_VERDICTS = (Verdict.CE, Verdict.IE, Verdict.RE, Verdict.TLE, Verdict.RF)
_STOPS = (None, "time", "deadlock")


def plausible(sample: LaunchSample) -> bool:
    """Whether the counts of an untrusted process are possible: not negative, not huge."""
    numbers = [*sample.grid, *sample.block, sample.times, sample.blocks, sample.shared_bytes]
    for row in sample.rows:
        numbers += [each for each in msgspec.structs.astuple(row) if isinstance(each, int)]
        touched = [lane for lane in row.lanes if lane is not None]
        if len(row.lanes) not in (0, 32) or not all(0 <= at < row.array_bytes for at in touched):
            return False
    return all(0 <= number < _ABSURD for number in numbers)


def is_of(outcome: CaseOutcome, case: PlannedCase | None) -> bool:
    """Whether this is a possible answer for ``case``, which has none yet."""
    return (
        case is not None
        and outcome.size == case.plan.size
        and outcome.refused in (None, *_VERDICTS)
        and outcome.stopped in _STOPS
        and outcome.timing is None
    )


def unexpected(reply: Reply) -> Exception:
    """The error to raise for a reply that ends the work."""
    match reply:
        case Refused(verdict=verdict, message=message, findings=findings) if verdict in _VERDICTS:
            return Rejected(verdict, message, findings)
        case Failed(message=message):
            return MachineError(message)
        case _:
            return MachineError(phrase("the simulator's answer cannot be read: it does not fit"))
