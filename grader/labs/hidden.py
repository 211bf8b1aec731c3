"""Hidden sizes: graded like the others, but students are not told what they are."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from grader.errors import LabError
from grader.labs.lab import Case, Lab
from grader.model import CaseResult

PREFIX = "hidden-"


def with_hidden(lab: Lab, hidden: Lab) -> Lab:
    """The lab with the ``correctness`` and ``cpu`` sizes of another lab file, hidden.

    Everything else, timed sizes included, is as in ``lab``. Sizes that both have stay visible.
    Raises LabError if the two are of different problems.
    """
    if hidden.problem_ref != lab.problem_ref:
        raise LabError(f"the hidden sizes are of another problem than the lab {lab.id}")
    return msgspec.structs.replace(
        lab,
        sha256=sha256(f"{lab.sha256}{hidden.sha256}".encode()).hexdigest(),
        correctness=(*lab.correctness, *_hidden(hidden.correctness, lab.correctness)),
        cpu=(*lab.cpu, *_hidden(hidden.cpu, lab.cpu)),
    )


def is_hidden(case: CaseResult) -> bool:
    return case.id.startswith(PREFIX)


def _hidden(cases: Iterable[Case], seen: Iterable[Case]) -> Iterable[Case]:
    known = [case.size for case in seen]
    return (
        msgspec.structs.replace(case, id=f"{PREFIX}{case.id}")
        for case in cases
        if case.size not in known
    )
