"""The lab that --lab names: its file, its hidden sizes, and the sizes that it admits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.base import UsageError
from grader.cli.defaults import VARIABLES, Default, default_of
from grader.cli.options import option
from grader.labs import Hidden, Lab, find_lab, load_lab, provided
from ptxsim.plan import Size
from ptxsim.text import phrase

LabName = str | Default | None
LAB: LabName = option(
    phrase("a lab file, or one of the labs that grade labs lists (default: {default})"),
    "LAB",
    factory=lambda: default_of("lab"),
    unset=phrase("the first that grade labs lists"),
)


def lab_file(named: LabName) -> tuple[Path, bool]:
    """Return the file of the lab that --lab or a default names, and whether the user vouches for
    it: anybody may have written the nearest grade.toml, such as the author of a submission."""
    vouched = not isinstance(named, Default) or named.origin == VARIABLES["lab"]
    return find_lab(named if named is None else str(named)), vouched


def chosen_lab(named: LabName) -> Lab:
    """Load the lab of a command line. Raises LabError."""
    path, vouched = lab_file(named)
    return load_lab(path, vouched=vouched)


def with_plans(lab: Lab) -> Lab:
    """The lab, if its host function is recorded. Raises UsageError for one of whole programs."""
    if lab.program:
        whole = phrase("{lab} asks for a whole program: grade judges its output, and no more")
        raise UsageError(whole.given(lab=lab.id))
    return lab


def known_hidden(lab: Lab) -> Hidden | None:
    """The lab's hidden sizes, if it has some. Raises UsageError where their seed is missing."""
    hidden = lab.hidden
    if hidden is not None and not hidden.known:
        missing = phrase(
            "{file}: no seed file that can be read here, so nobody knows the hidden sizes of the "
            "lab {lab}; put it there, or leave groups out of the lab file"
        )
        raise UsageError(missing.given(file=str(hidden.seed_file), lab=lab.id))
    return hidden


def make_size(extents: Sequence[int], option: str, lab: Lab) -> Size:
    """Raises UsageError that begins with the option for a size that the lab does not admit."""
    dims = lab.problem.dims
    for dim, extent in zip(dims, extents, strict=True):
        if not 1 <= extent <= dim.most:
            outside = phrase("{option}: {extent} is not between 1 and {most}", option=option)
            raise UsageError(outside.given(extent=extent, most=dim.most))
        if extent % lab.multiple_of:
            uneven = phrase("{option}: {extent} is no multiple of {step}, as the lab asks")
            raise UsageError(uneven.given(option=option, extent=extent, step=lab.multiple_of))
    return Size(dims={dim.name: n for dim, n in zip(dims, extents, strict=True)})


STARTER, STARTERS = "starter", "starters"


def find_starter(base: Path, lab: Lab) -> Path:
    """The folder starters/ID of the lab, else starter/ if its interface is the lab's: in ``base``,
    beside the lab's own file, then in the grader's package. Raises UsageError."""
    if lab.program:
        return lab.program.starter
    main, header = lab.problem.interface.main, lab.problem.interface.header
    beside = [file.parent / STARTERS] if (file := lab.problem_ref.file) else []
    for place in (base / STARTERS, *beside, *provided(STARTERS)):
        folder = place / lab.id
        if (folder / main).is_file():
            return folder
    for folder in (base / STARTER, *provided(STARTER)):
        there = (folder / main).is_file() and (folder / header).is_file()
        if there and (folder / header).read_text(errors="replace") == lab.problem.interface.text:
            return folder
    missing = phrase(
        "no starter of the lab {lab} in {folder} or in the grader's package: put {main} into "
        "{starters}/"
    )
    starters = f"{STARTERS}/{lab.id}"
    raise UsageError(missing.given(lab=lab.id, folder=str(base), main=main, starters=starters))
