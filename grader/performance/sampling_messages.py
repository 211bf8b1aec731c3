"""What the grader and the process that counts say to each other, one line of JSON each."""

from __future__ import annotations

from grader.model import Plan, Record
from ptxsim.sampling import LaunchSample


class Question(Record):
    ptx: str
    source_root: str  # the submission's folder
    plan: Plan
    seconds: float  # CPU time, of all launches


class Answer(Record, tag="answer"):
    samples: tuple[LaunchSample, ...]


class NoAnswer(Record, tag="none"):
    message: str  # why, in one line


Reply = Answer | NoAnswer
