"""``grade class``: grade every submission in a folder, several at a time; resumes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader.cli.chosen_lab import LAB, LabName
from grader.cli.options import OptionGroup, argument, option
from grader.cli.shared_options import Batch, architecture
from grader.study import warm_up


class BatchSystem(OptionGroup):
    title = "for batch systems (slurm/class.sh uses them)"

    plan: Path | None = option("grade nothing: list what is left to grade", "FILE")
    manifest: Path | None = option("grade a part of the list that --plan wrote", "FILE")
    part: str = option("which part: 0/10 is the first of ten", "I/N", "0/1")
    compile: str | None = option(
        "grade nothing: only compile, e.g. for sm_80",
        "ARCH",
        type=architecture(r"sm_\d{2,3}", "sm_80"),
    )


class ClassOptions(OptionGroup):
    """Grade every submission in DIR: folders, files such as alice.cu, or an export from Gradescope.
    Submissions that already have a result are not graded again."""

    epilog = (
        "exit status: 0 all graded; 2 wrong usage, or two entries of DIR have the same name; "
        "3 the grader or the machine failed for a submission: the same command tries it again"
    )

    folder: Path | None = argument("folder of submissions; with --course it may be left out", "DIR")
    course: Path | None = option("add up the results of this term (docs/instructor.md)", "FILE")
    lab: LabName = LAB
    batch: Batch
    gpus: str | None = option(
        "measure on several GPUs of this machine, one submission on each at a time: all, or "
        "indices and UUIDs such as 0,2 (default: the first one)",
        "WHICH",
    )
    system: BatchSystem


def run(chosen: ClassOptions, console: Console) -> int:
    if chosen.folder and not chosen.system.plan:
        warm_up()
    # Not before: the workers' modules are imported beside these.
    from grader.cli.class_grading import grade_class

    return grade_class(chosen, console)
