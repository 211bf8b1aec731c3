"""Hidden sizes: graded like the others, but nobody is told what they are."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from grader.errors import LabError
from grader.labs.groups import KINDS
from grader.labs.lab import HIDDEN, Case, Hidden, Lab
from grader.model import phrase


def with_hidden(lab: Lab, other: Lab) -> Lab:
    """The lab with the ``correctness`` and ``cpu`` sizes of another lab file as its hidden group;
    in the simulator every size counts the same.

    Everything else, timed sizes included, is as in ``lab``. Sizes that both have stay public. The
    lab's hash says only how many there are: sizes are so few that whoever knows a hash of them
    could find them by trying. Raises LabError if the two are of different problems, or if ``lab``
    has hidden sizes already.
    """
    if other.problem_ref != lab.problem_ref:
        raise LabError(
            phrase("the hidden sizes are of another problem than the lab {lab}", lab=lab.id)
        )
    if lab.hidden is not None:
        raise LabError(
            phrase("the lab {lab} has hidden sizes of its own; leave --hidden out", lab=lab.id)
        )
    cpu, correctness = _new(other.cpu, lab.cpu), _new(other.correctness, lab.correctness)
    told = f"{lab.sha256} and {len(cpu)}, {len(correctness)} hidden sizes"
    return msgspec.structs.replace(
        lab,
        sha256=sha256(told.encode()).hexdigest(),
        hidden=Hidden(
            weight=max(1, len(cpu)),
            public_weight=len(lab.cpu),
            seed_file=None,
            correctness=correctness,
            cpu=cpu,
        ),
    )


def revealed(lab: Lab) -> Lab:
    """The lab with its hidden sizes among the public ones, for who knows the secret."""
    if lab.hidden is None:
        return lab
    shown = {kind: (*getattr(lab, kind), *getattr(lab.hidden, kind)) for kind in KINDS}
    return msgspec.structs.replace(lab, hidden=None, **shown)


def _new(cases: Iterable[Case], seen: Iterable[Case]) -> tuple[Case, ...]:
    known = [case.size for case in seen]
    return tuple(
        msgspec.structs.replace(case, id=f"{HIDDEN}{case.id}")
        for case in cases
        if case.size not in known
    )
