"""The fields of a lab file that all problems share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from grader.labs.groups import Groups
from grader.labs.scoring_rules import Positive, Scoring
from grader.labs.time_rules import TimeRules
from grader.model import Record

Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
# 80, or 90a: with the instructions that no later GPU has
_Suffixed = Annotated[str, Meta(pattern=r"^(9[0-9]|1[0-2][0-9])[af]$")]
Architecture = Annotated[int, Meta(ge=60, le=129)] | _Suffixed


class Rules(Record):
    tensor_cores: Literal["forbid", "allow"] = "forbid"
    findings: Literal["warn", "fail"] = "warn"  # what simulator errors do to a GPU grade
    kernels: Literal["any", "one"] = "any"  # how many one call may launch
    libraries: Literal["forbid", "allow"] = "forbid"  # kernels that do the whole task
    # Whether a timed call pays for what only the host does: allocating, freeing, waiting.
    host_calls: Literal["charged", "free"] = "charged"


class Limits(Record):
    """Seconds are CPU time, or wall time on a GPU; meter.py says what is charged.

    ``memory_mb`` applies to each process that runs untrusted work.
    """

    compile_s: Positive = 60
    record_s: Positive = 10  # one call of run_custom
    launch_s: Positive = 10  # one replay on a GPU
    total_s: Positive = 180  # all cases of one submission together
    simulate_s: Positive = 10  # one case in the simulator
    memory_mb: Annotated[int, Meta(ge=256)] = 4096


class Timed(Record):
    """An entry of ``performance`` apart from its size."""

    weight: Positive = 1
    id: Identifier | None = None


class LabFile(Record):
    """The part of the file that all problems share, before the checks across fields."""

    id: Identifier
    multiple_of: Annotated[int, Meta(ge=1, le=1024)] = 1
    architectures: Annotated[tuple[Architecture, ...], Meta(min_length=1)] = (80,)
    scoring: Scoring = Scoring()
    groups: Groups | None = None
    time: TimeRules | None = None
    rules: Rules = Rules()
    limits: Limits = Limits()
    language: str | None = None
