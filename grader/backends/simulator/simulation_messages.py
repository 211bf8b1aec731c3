"""Messages between the grader and the simulator's worker, one line of JSON each."""

from __future__ import annotations

from grader.backends.protocol import Done, Failed, Finished, PlannedCase
from grader.errors import Rejected
from grader.model import Finding, Message, Plan, Record, Verdict
from ptxsim.frontend.interface import Interface
from ptxsim.sampling import LaunchSample


class Read(Record, tag="read"):
    """The first request: the module that all later requests are about."""

    ptx: str
    source_root: str  # the submission's folder, which findings name files relative to


class Inspect(Record, tag="inspect"):
    """Which instructions of the kernels in these plans run on tensor cores."""

    plans: tuple[Plan, ...]


class Room(Record):
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
    rooms: tuple[tuple[Room, ...], ...]  # by case: one for each launch, the set-up's first


class Sample(Record, tag="sample"):
    """Count a few blocks of each launch of a plan that may be too large to simulate."""

    plan: Plan
    seconds: float  # CPU time, of all launches


class Probe(Record, tag="probe"):
    """Whether a few blocks of each launch of a large plan leave their memory."""

    plan: Plan
    seconds: float  # CPU time, of all launches


Request = Read | Inspect | Job | Sample | Probe


class Declared(Record, tag="declared"):
    interface: Interface


class Notes(Record, tag="notes"):
    findings: tuple[Finding, ...]


class Refused(Record, tag="refused"):
    """The submission's fault; the verdict that the worker asks for."""

    verdict: Verdict
    message: Message
    findings: tuple[Finding, ...] = ()

    @staticmethod
    def of(refusal: Rejected) -> Refused:
        return Refused(verdict=refusal.verdict, message=refusal.message, findings=refusal.findings)


class Sampled(Record, tag="sampled"):
    samples: tuple[LaunchSample, ...]


Reply = Declared | Notes | Sampled | Refused | Finished | Failed | Done
