"""``grade history NAME``: a student's graded versions, what changed, and the climb."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from grader.cli import exit_status, options
from grader.cli.boards import known_ladders
from grader.cli.notices import say, skipped, to_stdout
from grader.cli.parser import Parser
from grader.cli.picture_files import write_pictures
from grader.cli.speaking import spoken
from grader.errors import StoreError, UsageError
from grader.model import Message, clauses, phrase
from grader.results import store
from grader.results.entries import Entry
from grader.results.index import Stored, read_index
from grader.study.history import board_of, board_words, make_history
from grader.study.history_render import html, markdown, terminal
from grader.study.pictures import climb
from grader.study.versions import read_versions
from grader.submission.folder import student_of


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase(
            "Show every graded version of a student's kernel in order: what changed, how fast it "
            "became, and which advice was followed. Writes a page with the climb beside the ladder."
        )
    )
    add = parser.add_argument
    add(
        "name",
        metavar="NAME",
        type=Path,
        help=phrase("the student, or the folder of the submission"),
    )
    options.out(parser, phrase("where the results are"))
    add("--lab", metavar="ID", help=phrase("only this lab's results"))
    add("--device", choices=("gpu", "cpu"), help=phrase("only results of this device"))
    add("--gpu", metavar="MODEL", help=phrase("only GPUs whose model name contains this text"))
    add("--markdown", action="store_true", help=phrase("print the table as Markdown on stdout"))
    options.pictures(parser)


def run(chosen: argparse.Namespace, console: Console) -> int:
    student = student_of(chosen.name)
    index = read_index(chosen.out)
    every = index.of(student)
    found, complaints = read_versions(each for each in every if _wanted(each.entry, chosen))
    skipped([*index.complaints, *complaints], console)
    if not found:
        raise StoreError(_nothing(student, every, chosen))
    history = make_history(found, known_ladders(chosen.out, console), chosen.gpu)
    picture = climb(history, spoken(console))
    if picture is None and (chosen.svg or chosen.png):
        raise UsageError(
            phrase("--svg, --png: no version has a speed yet; there is nothing to draw")
        )
    if chosen.markdown:
        shown = chosen.svg or chosen.png
        to_stdout(markdown(history, shown.name if shown else None, spoken(console)))
    else:
        console.print(terminal(history, spoken(console)))
    own = store.result_path(chosen.out, found[-1].result).parent
    target = own / f"history-{history.device}.html"
    store.write(target, html(history, spoken(console)).encode())
    say(console, phrase("page: {file}", file=str(target)))
    if picture is not None:
        write_pictures(chosen, picture, console)
    return exit_status.DONE


def _wanted(entry: Entry, chosen: argparse.Namespace) -> bool:
    lab, device, gpu = board_of(entry)
    if chosen.gpu and device == "gpu" and chosen.gpu.lower() not in (gpu or "").lower():
        return False
    return chosen.lab in (None, lab) and chosen.device in (None, device)


def _nothing(student: str, every: Sequence[Stored], chosen: argparse.Namespace) -> Message:
    if not every:
        return phrase(
            "{student}: no results in {folder}; grade it first, or name the folder: --out",
            student=student,
            folder=str(chosen.out),
        )
    several = sorted({board_words(board_of(each.entry)) for each in every}, key=str)
    return phrase(
        "{student}: no such result; there are {boards}", student=student, boards=clauses(several)
    )
