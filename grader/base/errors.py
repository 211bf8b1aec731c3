"""Everything the grader raises on purpose.

GraderError                 caught once, in cli/entry.py
├── UsageError              exit 2: the command line or a path is wrong
│   ├── LabError            exit 2: lab.yaml is wrong; names file and field
│   └── SubmissionError     exit 2: there is no folder to grade
├── OutOfTime               exit 3: the job's time limit is near; verdict TLE while grading
├── MachineError            exit 3: the machine lacks something or broke; verdict IE
│   ├── ToolchainError      nvcc, the host compiler or a header cannot be found
│   ├── SandboxError        the sandbox asked for cannot be had
│   └── StoreError          a result cannot be written or read
└── Rejected                a stage ends the student's work; becomes a verdict, never an exit
"""

from __future__ import annotations

from typing import TypeVar

from grader.base.finding import Finding
from grader.base.records import BuildInfo, Verdict
from ptxsim.text import Message, verbatim

_Error = TypeVar("_Error", bound="GraderError")


def one_line(name: object) -> str:
    """A path or name for any message: unprintable characters are escaped (``\\n``)."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(name)
    )


class GraderError(Exception):
    """Base of the tree; ``message`` is the one line shown to the user, ``str()`` in English."""

    exit_status = 3

    def __init__(self, message: Message | str) -> None:
        super().__init__(message)
        self.message = verbatim(message)

    @classmethod
    def saying(cls: type[_Error], text: str, /, **args: int | float | str | Message) -> _Error:
        """The error with a sentence that the catalogues translate, as of ``phrase``."""
        return cls(Message(text=text).given(**args))


class UsageError(GraderError):
    exit_status = 2


class LabError(UsageError):
    pass


class OutOfTime(GraderError):  # noqa: N818 - an event, raised by a signal
    pass


class MachineError(GraderError):
    @staticmethod
    def of(error: OSError) -> MachineError:
        """The system's error in one line."""
        where = f"{one_line(error.filename)}: " if error.filename else ""
        why = error.strerror or str(error)
        return MachineError.saying("{where}{why}; fix that and try again", where=where, why=why)


class ToolchainError(MachineError):
    pass


class Rejected(GraderError):  # noqa: N818 - a verdict on the work, not a fault of ours
    """A stage rejects the student's work.

    verdict: FE, CE, RE, TLE or RF. findings: evidence with source lines, if any. build: the
    compiler's output, if the compiler rejects it.
    """

    exit_status = 1

    def __init__(
        self,
        verdict: Verdict,
        message: Message,
        findings: tuple[Finding, ...] = (),
        build: BuildInfo | None = None,
    ) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.findings = findings
        self.build = build
