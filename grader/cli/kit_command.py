"""``grade kit``: everything that a course system needs to grade with this grader."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader.cli.chosen_lab import LAB, LabName, chosen_lab, find_starter, lab_file
from grader.cli.console import DONE, answer
from grader.cli.options import Command, OptionGroup, flag, option
from grader.cli.shared_options import SANDBOXES
from grader.course import kits
from grader.labs import load_lab
from grader.report import Shown, Visibility
from grader.results import store
from grader.sandbox import Mode
from ptxsim.text import phrase


class KitOptions(OptionGroup):
    """Write what a course system needs to grade with this grader."""


class InContainer(OptionGroup):
    lab: LabName = LAB
    memory_mb: int = option("memory of the container (default: {default})", "N", 2048)
    sandbox: Mode = option(SANDBOXES, default="require")
    minutes: int = option("time for a submission there (default: {default})", "N", 10)

    @property
    def container(self) -> kits.Container:
        return kits.Container(minutes=self.minutes, memory_mb=self.memory_mb, sandbox=self.sandbox)


class Gradescope(InContainer):
    visibility: Visibility = option(
        "when students see the result (default: {default})", default="visible"
    )
    hidden_visibility: Visibility = option(
        "when students see the hidden sizes (default: {default})", default="hidden"
    )
    stdout_visibility: Visibility = option(
        "when students see what the autograder prints (default: {default})", default="hidden"
    )
    to: Path = option("file to write (default: {default})", "PATH", Path("autograder.zip"))


class GitHub(OptionGroup):
    lab: LabName = LAB
    minutes: int = option("time for a submission there (default: {default})", "N", 15)
    folder: str = option("where sgemm.cu is in a repository", "DIR", ".")
    grader: str = option(
        "what pip installs there, such as both wheels' addresses (default: {default})",
        "REQUIREMENT",
        "sgemm-grader",
    )
    code_scanning: bool = flag("also send findings to code scanning")
    to: Path = option("root of the repository (default: {default})", "PATH", Path())


class Csoj(InContainer):
    image: str = option("its name in the cluster", default="sgemm-grader")
    to: Path = option("folder for the kit (default: {default})", "PATH", Path("csoj"))


def _lab(named: LabName) -> Path:
    """The lab's file, which a kit carries. Raises LabError, also where nobody vouches for it."""
    chosen_lab(named)
    return lab_file(named)[0]


def _gradescope(chosen: Gradescope, console: Console) -> int:
    lab = _lab(chosen.lab)
    starter = find_starter(Path.cwd(), load_lab(lab))
    shown = Shown(
        visibility=chosen.visibility,
        hidden=chosen.hidden_visibility,
        stdout=chosen.stdout_visibility,
    )
    kit = kits.gradescope_kit(lab, starter, shown, chosen.container)
    store.write(chosen.to, kits.zipped(kit))
    answer(console, phrase("autograder: {file}", file=str(chosen.to)))
    upload = phrase(
        "upload it under Configure Autograder; in the assignment's settings give the container "
        "{memory} MB and {minutes} min",
        memory=chosen.memory_mb,
        minutes=chosen.minutes,
    )
    answer(console, upload)
    return DONE


def _github(chosen: GitHub, console: Console) -> int:
    kit = kits.github_kit(
        _lab(chosen.lab),
        folder=chosen.folder,
        requirement=chosen.grader,
        minutes=chosen.minutes,
        code_scanning=chosen.code_scanning,
    )
    kits.write_folder(kit, chosen.to)
    for name in kit:
        answer(console, phrase("written: {place}", place=str(chosen.to / name)))
    return DONE


def _csoj(chosen: Csoj, console: Console) -> int:
    kit = kits.csoj_kit(_lab(chosen.lab), chosen.image, chosen.container)
    kits.write_folder(kit, chosen.to)
    answer(console, phrase("kit: {folder}/", folder=str(chosen.to)))
    then = phrase("docker build -t {image} {folder}, then create problem.json in CSOJ")
    answer(console, then.given(image=chosen.image, folder=str(chosen.to)))
    return DONE


COMMAND = Command(
    KitOptions,
    metavar="SYSTEM",
    commands={
        "gradescope": Command(Gradescope, _gradescope, "autograder.zip, to upload"),
        "github": Command(GitHub, _github, "a workflow that grades on every push"),
        "csoj": Command(Csoj, _csoj, "an image and a problem for ZJUSCT's judge"),
    },
)
