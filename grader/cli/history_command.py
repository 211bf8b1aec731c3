"""``grade history NAME``: a student's graded versions, what changed, and the climb."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from markupsafe import Markup
from rich.console import Console

from grader.base import UsageError
from grader.cli.console import DONE, say, skipped, spoken, to_stdout
from grader.cli.leaderboard_command import known_ladders
from grader.labs import did_you_mean, student_of
from grader.report import png_file, svg_file
from grader.results import ResultEntry, Stored, read_index, store
from grader.study import board_of, board_words, make_history, read_versions
from grader.study import history_render as render
from ptxsim.text import Message, clauses, phrase


def run(chosen: argparse.Namespace, console: Console) -> int:
    student = student_of(chosen.name)
    index = read_index(chosen.out)
    every = index.of(student)
    found, complaints = read_versions(each for each in every if _wanted(each.entry, chosen))
    skipped([*index.complaints, *complaints], console)
    if not found:
        raise UsageError(_nothing(student, index.documents, chosen))
    history = make_history(found, known_ladders(chosen.out, console), chosen.gpu)
    picture = render.climb(history, spoken(console))
    if picture is None and (chosen.svg or chosen.png):
        none = phrase("--svg, --png: no version has a speed yet; there is nothing to draw")
        raise UsageError(none)
    if chosen.markdown:
        shown = chosen.svg or chosen.png
        to_stdout(render.markdown(history, shown.name if shown else None, spoken(console)))
    else:
        console.print(render.terminal(history, spoken(console)))
    own = store.result_path(chosen.out, found[-1].result).parent
    target = own / f"history-{history.device}.html"
    store.write(target, render.html(history, spoken(console)).encode())
    say(console, phrase("page: {file}", file=str(target)))
    if picture is not None:
        write_pictures(chosen, picture, console)
    return DONE


def write_pictures(chosen: argparse.Namespace, picture: Markup, console: Console) -> None:
    """Where the options ask for it. Raises StoreError, and MachineError if no PNG can be made."""
    if chosen.svg is not None:
        store.write(chosen.svg, svg_file(picture).encode())
        say(console, phrase("picture: {file}", file=str(chosen.svg)))
    if chosen.png is not None:
        store.write(chosen.png, png_file(picture))
        say(console, phrase("picture: {file}", file=str(chosen.png)))


def _wanted(entry: ResultEntry, chosen: argparse.Namespace) -> bool:
    lab, device, gpu = board_of(entry)
    same_gpu = device != "gpu" or (chosen.gpu or "").lower() in (gpu or "").lower()
    return same_gpu and chosen.lab in (None, lab) and chosen.device in (None, device)


def _nothing(student: str, stored: Sequence[Stored], chosen: argparse.Namespace) -> Message:
    every = [each for each in stored if each.entry.submission.student == student]
    if not every:
        none = phrase("{student}: no results in {folder}; {remedy}", student=student)
        students = {each.entry.submission.student for each in stored}
        grading = phrase("grade it first, or name the folder: --out")
        remedy = did_you_mean(student, students) or grading
        return none.given(folder=str(chosen.out), remedy=remedy)
    several = sorted({board_words(board_of(each.entry)) for each in every}, key=str)
    others = phrase("{student}: no such result; there are {boards}", student=student)
    return others.given(boards=clauses(several))
