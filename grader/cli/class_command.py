"""``grade class``: grade every submission in a folder, several at a time; resumes."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.study import warm_up


def run(chosen: argparse.Namespace, console: Console) -> int:
    if not chosen.plan:
        warm_up()
    # Not before: the workers' modules are imported beside these.
    from grader.cli.class_grading import grade_class

    return grade_class(chosen, console)
