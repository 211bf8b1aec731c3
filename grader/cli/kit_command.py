"""``grade kit``: everything that a course system needs to grade with this grader."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from grader.cli.console import DONE, answer
from grader.cli.defaults import chosen_lab, lab_file
from grader.cli.export_command import shown
from grader.cli.new_command import find_starter
from grader.course import kits
from grader.labs import load_lab
from grader.results import store


def run(chosen: argparse.Namespace, console: Console) -> int:
    _SYSTEMS[chosen.system](chosen, console)
    return DONE


def _container(chosen: argparse.Namespace) -> kits.Container:
    return kits.Container(
        minutes=chosen.minutes, memory_mb=chosen.memory_mb, sandbox=chosen.sandbox
    )


def _lab(chosen: argparse.Namespace) -> Path:
    """The lab's file, which a kit carries. Raises LabError, also where nobody vouches for it."""
    chosen_lab(chosen)
    return lab_file(chosen.lab)[0]


def _gradescope(chosen: argparse.Namespace, console: Console) -> None:
    lab = _lab(chosen)
    starter = find_starter(Path.cwd(), load_lab(lab))
    kit = kits.gradescope_kit(lab, starter, shown(chosen), _container(chosen))
    store.write(chosen.to, kits.zipped(kit))
    answer(console, f"autograder: {chosen.to}")
    answer(
        console,
        "upload it under Configure Autograder; in the assignment's settings give the container "
        f"{chosen.memory_mb} MB and {chosen.minutes} min",
    )


def _github(chosen: argparse.Namespace, console: Console) -> None:
    kit = kits.github_kit(
        _lab(chosen),
        folder=chosen.folder,
        requirement=chosen.grader,
        minutes=chosen.minutes,
        code_scanning=chosen.code_scanning,
    )
    kits.write_folder(kit, chosen.to)
    for name in kit:
        answer(console, f"written: {chosen.to / name}")


def _csoj(chosen: argparse.Namespace, console: Console) -> None:
    kit = kits.csoj_kit(_lab(chosen), chosen.image, _container(chosen))
    kits.write_folder(kit, chosen.to)
    answer(console, f"kit: {chosen.to}/")
    answer(console, f"docker build -t {chosen.image} {chosen.to}, then create problem.json in CSOJ")


_SYSTEMS: dict[str, Callable[[argparse.Namespace, Console], None]] = {
    "gradescope": _gradescope,
    "github": _github,
    "csoj": _csoj,
}
