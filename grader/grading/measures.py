"""What the timed sizes of a lab are measured against, on one GPU model."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from grader.errors import LabError
from grader.judging.scoring import Yardsticks, yardsticks
from grader.labs.lab import Lab
from grader.ladder.document import Ladder
from grader.model import Dims, phrase, size_text


def measures(lab: Lab, gpu: str, ladders: Sequence[Ladder]) -> Yardsticks:
    """Raises LabError, one line, if the lab or the ladders say nothing of this GPU model."""

    def rung_ratio(rung: str, size: Dims) -> float:
        return _rung_ratio(lab, gpu, ladders, rung, size)

    return yardsticks(lab.scoring, lab.timed, lab.problem, gpu, rung_ratio)


def _rung_ratio(lab: Lab, gpu: str, ladders: Sequence[Ladder], rung: str, size: Dims) -> float:
    """From the first ladder that has the figure: those measured here come before shipped ones."""
    problem = lab.problem.info()
    alike = [each for each in ladders if each.problem.like(problem)]
    here = [each for each in alike if each.gpu and each.gpu.name == gpu]
    if not here:
        known = ", ".join(dict.fromkeys(each.gpu.name for each in alike if each.gpu))
        missing = (
            phrase(
                "scoring.rung: no ladder was measured on {gpu}, only on {known}; measure one there "
                "with: grade ladder",
                known=known,
            )
            if known
            else phrase(
                "scoring.rung: no ladder was measured on {gpu}; measure one there with: grade "
                "ladder"
            )
        )
        raise LabError(missing.given(gpu=gpu))
    steps = [step for ladder in here for step in ladder.steps if step.rung.name == rung]
    if not steps:
        names = [step.rung.name for step in here[0].steps]
        guess = difflib.get_close_matches(rung, names, 1) or names[-1:]
        raise LabError(
            phrase(
                "scoring.rung: no rung is named {name}; did you mean {other}?",
                name=repr(rung),
                other=repr(guess[0]),
            )
        )
    for step in steps:
        if speed := step.at(size):
            return speed.ratio
    timed = ", ".join(dict.fromkeys(size_text(each) for each in here[0].sizes))
    raise LabError(
        phrase(
            "scoring.rung: {rung} was not timed at {size} on {gpu}; time one of {timed}, or "
            "measure the ladder with such a lab file",
            rung=rung,
            size=size_text(size),
            gpu=gpu,
            timed=timed,
        )
    )
