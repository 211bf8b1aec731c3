"""Messages between the grader and the simulator's worker, one line of JSON each."""

import msgspec

from grader.base import Finding, MachineError, Rejected, Strip, Verdict
from grader.run.protocol import CaseOutcome, Done, Failed, Finished, PlannedCase
from ptxsim import Declarations
from ptxsim.findings import LaunchSample
from ptxsim.plan import Plan, Record, Size
from ptxsim.text import NOTHING, Message


class Read(Record, tag="read"):
    """The first request: the module that all later requests are about."""

    ptx: str
    source_root: str  # the submission's folder, which findings name files relative to


class Inspect(Record, tag="inspect"):
    """Request for the instructions of these plans' kernels that run on tensor cores."""

    plans: tuple[Plan, ...]


class BlockCapacity(Record):
    """The GPU of the lab that holds most blocks of a launch at a time."""

    gpu: str  # its name; "" where none is known
    blocks: int  # 0: not known


class Job(Record, tag="job"):
    """All cases of one submission."""

    cases: tuple[PlannedCase, ...]  # run in this order
    case_seconds: float  # CPU time for one case
    total_seconds: float  # CPU time for all of them
    memory_mb: int
    threads: int
    # By case: one for each launch, the set-up's first.
    capacities: tuple[tuple[BlockCapacity, ...], ...]
    hints: bool = False  # also of what comes out right here


class Sample(Record, tag="sample"):
    """Run a few blocks of each launch of a plan that may be too large to simulate."""

    plan: Plan
    seconds: float  # CPU time, of all launches
    counts: bool  # true: count them; false: find their accesses outside their memory


class RunSecond(Record, tag="second"):
    """Run plans on the second build of the module that was read, each once, until one shows what
    the first build hides."""

    ptx: str
    source_root: str
    plans: tuple[Plan, ...]
    seconds: float  # CPU time, of all


class Look(Record, tag="look"):
    """Run a plan with wrong elements on coded inputs: what do they hold?"""

    plan: Plan
    seconds: float  # CPU time, of all runs


Request = Read | Inspect | Job | Sample | RunSecond | Look


class Declared(Record, tag="declared"):
    interface: Declarations


class Notes(Record, tag="notes"):
    findings: tuple[Finding, ...]


class Forbidden(Record, tag="refused"):
    """The submission's fault; the verdict that the worker asks for."""

    verdict: Verdict
    message: Message
    findings: tuple[Finding, ...] = ()


class Sampled(Record, tag="sampled"):
    samples: tuple[LaunchSample, ...]


class SecondRun(Record, tag="ran-second"):
    """The answer to ``RunSecond``."""

    findings: tuple[Finding, ...] = ()  # those that count against the program
    size: Size | None = None  # at which
    missing: Message = NOTHING  # why sizes were not looked at


class Contents(Record, tag="contents"):
    """The answer to ``Look``."""

    message: Message = NOTHING  # nothing where it cannot be known
    strips: tuple[Strip, ...] = ()
    findings: tuple[
        Finding, ...
    ] = ()  # the line that reads an input which is not where it should be


Reply = Declared | Notes | Sampled | SecondRun | Contents | Forbidden | Finished | Failed | Done


# --- answers -----------------------------------------------------------------------------------

_ABSURD = 1 << 53
_VERDICTS = (Verdict.CE, Verdict.IE, Verdict.RE, Verdict.TLE, Verdict.RF)
_STOPS = (None, "time", "deadlock")


def plausible(sample: LaunchSample) -> bool:
    """Whether the counts of an untrusted process are possible: not negative, not huge."""
    if not 0 <= sample.heaviest <= 1:
        return False
    numbers = [*sample.grid, *sample.block, sample.times, sample.blocks, sample.shared_bytes]
    for row in sample.rows:
        numbers += (each for each in msgspec.structs.astuple(row) if isinstance(each, int))
        touched = [lane for lane in row.lanes if lane is not None]
        if len(row.lanes) not in (0, 32) or not all(0 <= at < row.array_bytes for at in touched):
            return False
    return all(0 <= number < _ABSURD for number in numbers)


def is_of(outcome: CaseOutcome, planned: PlannedCase | None) -> bool:
    """Whether this is a possible answer for ``planned``, which has none yet."""
    return (
        planned is not None
        and outcome.continues(planned.case)
        and outcome.verdict in (None, *_VERDICTS)
        and outcome.stopped in _STOPS
        and outcome.timing is None
    )


def unexpected(reply: Reply) -> Exception:
    """The error to raise for a reply that ends the work."""
    match reply:
        case Forbidden(verdict=verdict, message=message, findings=findings) if verdict in _VERDICTS:
            return Rejected(verdict, message, findings)
        case Failed(message=message):
            return MachineError(message)
        case _:
            return MachineError.saying("the simulator's answer cannot be read: it does not fit")
