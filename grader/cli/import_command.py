"""``grade import FOLDER``: a lab of whole programs from a course's skeleton."""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console

from grader.base import UsageError
from grader.cli.console import DONE, answer
from grader.cli.options import OptionGroup, argument, option
from grader.labs import lab_of_skeleton, load_lab
from grader.results import store
from ptxsim.text import phrase


class ImportOptions(OptionGroup):
    """Make a lab that asks for a whole program from a course's skeleton: its files, the flags of
    its Makefile, and a solution, which computes what must come out."""

    folder: Path = argument("with the skeleton: sources and, if there is one, a Makefile", "FOLDER")
    solution: Path = option("folder of the solution (default: {default})", "DIR", Path("solution"))
    out: Path = option("folder for the lab (default: {default})", "DIR", Path("lab"))
    student: tuple[str, ...] = option(
        "a file that students hand in (default: those that say TODO, else those with kernels and "
        "no main)",
        "FILE",
    )
    run: tuple[str, ...] = option(
        "the arguments of a case, in quotes; {seed} in them is drawn for each run", "ARGUMENTS"
    )


def run(chosen: ImportOptions, console: Console) -> int:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", chosen.folder.resolve().name).strip("-_")[:64] or "lab"
    if not chosen.folder.is_dir():
        raise UsageError.saying("{folder}: no such folder", folder=str(chosen.folder))
    files = lab_of_skeleton(
        chosen.folder, chosen.solution, name, chosen.student, chosen.run or ("",)
    )
    for each, content in files.items():
        store.write(chosen.out / each, content)
    lab = chosen.out / f"{name}.yaml"
    load_lab(lab)
    answer(console, phrase("lab: {file}", file=str(lab)))
    solved = chosen.out / "reference" / name / "solution"
    then = phrase("see whether the solution is accepted: grade {folder} --lab {lab}")
    answer(console, then.given(folder=str(solved), lab=str(lab)))
    return DONE
