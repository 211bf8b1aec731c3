"""Figures that a course measured of its cards, and where it keeps them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import msgspec

from grader import base, model
from grader.results import store
from ptxsim.text import phrase


def calibrate(file: Path | None) -> tuple[Path, base.CardFigures, base.CardFigures]:
    """Measure the first GPU; return the file of its figures, these, and those of the card on which
    the constants were fitted. file: None for the folder that grading reads. Raises MachineError,
    UsageError."""
    folder = _folder()
    if file is None and folder is None:
        raise base.UsageError.saying(
            "name a file, or set {variable} to the folder of: grade doctor --prepare",
            variable=base.PREPARED_VARIABLE,
        )
    from grader.run import measure_card  # with CuPy, which only a machine with a GPU has

    figures = measure_card()
    file = file or (folder or Path()) / f"{figures.gpu.replace(' ', '-')}.json"
    store.write_document(file, figures)
    return file, figures, model.FITTED.card


def course_cards() -> tuple[base.CardFigures, ...]:
    """Return what a course measured of its cards. Raises UsageError that names file and field."""
    folder = _folder()
    return _cards(folder) if folder else ()


def _folder() -> Path | None:
    prepared = os.environ.get(base.PREPARED_VARIABLE)
    return Path(prepared) / "calibration" if prepared else None


@cache
def _cards(folder: Path) -> tuple[base.CardFigures, ...]:
    return tuple(map(_card, sorted(folder.glob("*.json"))))


def _card(file: Path) -> base.CardFigures:
    try:
        return base.decode(file.read_bytes(), base.CardFigures)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        wrong = phrase("{file}: not what grade calibrate writes: {error}", file=str(file))
        raise base.UsageError(wrong.given(error=str(error))) from None
