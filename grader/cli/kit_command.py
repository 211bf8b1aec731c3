"""``grade kit``: everything that a course system needs to grade with this grader."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from grader.cli import options
from grader.cli.console import DONE, answer
from grader.cli.export_command import shown, visibilities
from grader.cli.new_command import find_starter
from grader.course import kits
from grader.labs import find_lab, load_lab
from grader.results import store


def add_options(parser: options.Parser) -> None:
    parser.description = "Write what a course system needs to grade with this grader."
    systems = parser.add_subparsers(dest="system", metavar="SYSTEM", required=True)
    scope = systems.add_parser("gradescope", help="autograder.zip, to upload")
    github = systems.add_parser("github", help="a workflow that grades on every push")
    judge = systems.add_parser("csoj", help="an image and a problem for ZJUSCT's judge")
    for one in (scope, github, judge):
        options.lab(one)
    for one in (scope, judge):
        one.option(
            "--hidden FILE",
            "another lab file, whose correctness and cpu sizes students do not see",
            type=Path,
        )
        one.option(
            "--memory-mb N",
            "memory of the container (default: 2048)",
            type=options.positive,
            default=2048,
        )
        options.sandbox(one, default="require")
    for one, minutes in ((scope, 10), (github, 15), (judge, 10)):
        one.option(
            "--minutes N",
            f"time for a submission there (default: {minutes})",
            type=options.positive,
            default=minutes,
        )
    visibilities(scope, ("the result", "the hidden sizes", "what the autograder prints"))
    github.option("--folder DIR", "where sgemm.cu is in a repository", default=".")
    github.option(
        "--grader REQUIREMENT",
        "what pip installs there, such as both wheels' addresses (default: sgemm-grader)",
        default="sgemm-grader",
    )
    github.option("--code-scanning", "also send findings to code scanning")
    judge.add_argument("--image", default="sgemm-grader", help="its name in the cluster")
    for one, default, meaning in (
        (scope, "autograder.zip", "file to write"),
        (github, ".", "root of the repository"),
        (judge, "csoj", "folder for the kit"),
    ):
        one.option("--to PATH", f"{meaning} (default: {default})", type=Path, default=Path(default))


def run(chosen: argparse.Namespace, console: Console) -> int:
    _SYSTEMS[chosen.system](chosen, console)
    return DONE


def _container(chosen: argparse.Namespace) -> kits.Container:
    return kits.Container(
        minutes=chosen.minutes, memory_mb=chosen.memory_mb, sandbox=chosen.sandbox
    )


def _gradescope(chosen: argparse.Namespace, console: Console) -> None:
    lab = find_lab(chosen.lab)
    starter = find_starter(Path.cwd(), load_lab(lab))
    kit = kits.gradescope_kit(lab, chosen.hidden, starter, shown(chosen), _container(chosen))
    store.write(chosen.to, kits.zipped(kit))
    answer(console, f"autograder: {chosen.to}")
    answer(
        console,
        "upload it under Configure Autograder; in the assignment's settings give the container "
        f"{chosen.memory_mb} MB and {chosen.minutes} minutes",
    )


def _github(chosen: argparse.Namespace, console: Console) -> None:
    kit = kits.github_kit(
        find_lab(chosen.lab),
        folder=chosen.folder,
        requirement=chosen.grader,
        minutes=chosen.minutes,
        code_scanning=chosen.code_scanning,
    )
    kits.write_folder(kit, chosen.to)
    for name in kit:
        answer(console, f"written: {chosen.to / name}")


def _csoj(chosen: argparse.Namespace, console: Console) -> None:
    kit = kits.csoj_kit(find_lab(chosen.lab), chosen.hidden, chosen.image, _container(chosen))
    kits.write_folder(kit, chosen.to)
    answer(console, f"kit: {chosen.to}/")
    answer(console, f"docker build -t {chosen.image} {chosen.to}, then create problem.json in CSOJ")


_SYSTEMS: dict[str, Callable[[argparse.Namespace, Console], None]] = {
    "gradescope": _gradescope,
    "github": _github,
    "csoj": _csoj,
}
