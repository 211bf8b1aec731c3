"""Findings: what the grader says about the student's code."""

from __future__ import annotations

from enum import Enum

from ptxsim.findings import finding as simulator
from ptxsim.findings.finding import Severity
from ptxsim.message import Message
from ptxsim.records import Dim3, Record


class Kind(str, Enum):
    """What a finding is about: the simulator's kinds and the grader's own."""

    OUT_OF_BOUNDS = simulator.Kind.OUT_OF_BOUNDS.value
    MISALIGNED = simulator.Kind.MISALIGNED.value
    RACE = simulator.Kind.RACE.value
    UNINITIALIZED_READ = simulator.Kind.UNINITIALIZED_READ.value
    BARRIER_DIVERGENCE = simulator.Kind.BARRIER_DIVERGENCE.value
    ENDLESS_LOOP = simulator.Kind.ENDLESS_LOOP.value
    TRAP = simulator.Kind.TRAP.value
    TENSOR_CORE = simulator.Kind.TENSOR_CORE.value
    UNSUPPORTED = simulator.Kind.UNSUPPORTED.value

    FORBIDDEN_CALL = "forbidden-call"  # by host code
    BAD_LAUNCH = "bad-launch"
    HOST_CRASH = "host-crash"
    INPUT_MODIFIED = "input-modified"
    CANARY = "canary"  # something was written just outside an allocation
    IMPOSSIBLE_TIME = "impossible-time"
    UNTIMED_WORK = "untimed-work"
    RELOCATED = "relocated"  # the driver did not give the recorded addresses
    LIBRARY = "library"  # a library's kernel does the work
    CALLS_DIFFER = "calls-differ"  # the third call of run_custom does what the second did not
    CHECKS_DIFFER = "checks-differ"  # the host finds wrong what the GPU's comparison let pass
    STATE_LEFT = "state-left"  # a call is wrong because of what the one before it left behind


class Finding(Record):
    """One remark about the student's code, with its place."""

    kind: Kind
    severity: Severity
    message: Message  # one sentence a student understands
    file: str | None = None  # inside the submission where possible
    line: int | None = None
    block: Dim3 | None = None
    thread: Dim3 | None = None
    count: int = 1  # how many times it happened
