"""``grade SUBMISSION…``: grade, show and store; the default command."""

from __future__ import annotations

import argparse
from threading import Thread

import msgspec
from rich.console import Console

from grader.base import UsageError
from grader.cli.console import aside, speak_as
from grader.cli.defaults import chosen_lab
from grader.cli.hidden_command import known_hidden
from grader.labs import Lab, revealed
from grader.run import gpu_names


def run(chosen: argparse.Namespace, console: Console) -> int:
    if chosen.device != "cpu":
        Thread(target=gpu_names).start()  # the driver starts while modules are imported
    chosen.format = chosen.format or ("json" if chosen.json else None)
    if chosen.format not in (None, "json") and len(chosen.submissions) > 1:
        raise UsageError.saying("--format {name}: name one submission", name=chosen.format)
    lab = _lab(chosen)
    speak_as(lab, console)
    if chosen.format:  # stdout is that other program's; but see formats.show
        console = aside(console)
    from grader.cli.devices import standby  # what --help does not need

    with standby(chosen.device, lab.problem_ref) as gpu:
        # Not before: the GPU's worker loads its libraries while these are loaded.
        from grader.cli.grading import grade_each

        return grade_each(chosen, lab, console, gpu)


def _lab(chosen: argparse.Namespace) -> Lab:
    lab = chosen_lab(chosen)
    if chosen.reveal:
        known_hidden(lab)
        lab = revealed(lab)
    if chosen.memory_mb:
        least = min(lab.limits.memory_mb, chosen.memory_mb)
        limits = msgspec.structs.replace(lab.limits, memory_mb=least)
        lab = msgspec.structs.replace(lab, limits=limits)
    return lab
