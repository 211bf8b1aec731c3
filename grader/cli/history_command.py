"""``grade history NAME``: a student's graded versions, what changed, and the climb."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from grader.base import UsageError
from grader.cli.boards import known_ladders
from grader.cli.console import DONE, say, skipped, spoken, to_stdout
from grader.cli.options import OptionGroup, argument, flag, option
from grader.cli.pictures import Pictures
from grader.cli.shared_options import RESULTS, OneDevice
from grader.labs import did_you_mean, student_of
from grader.results import ResultEntry, Stored, read_index, store
from grader.study import board_of, board_words, make_history, read_versions
from grader.study import history_render as render
from ptxsim.text import Message, clauses, phrase


class HistoryOptions(OptionGroup):
    """Show every graded version of a student's kernel in order: what changed, how fast it became,
    and which advice was followed. Writes a page with the climb beside the ladder."""

    name: Path = argument("the student, or the folder of the submission", "NAME")
    out: Path = RESULTS
    lab: str | None = option("only this lab's results", "ID")
    only: OneDevice
    markdown: bool = flag("print the table as Markdown on stdout")
    pictures: Pictures


def run(chosen: HistoryOptions, console: Console) -> int:
    student = student_of(chosen.name)
    index = read_index(chosen.out)
    every = index.of(student)
    found, complaints = read_versions(each for each in every if _wanted(each.entry, chosen))
    skipped([*index.complaints, *complaints], console)
    if not found:
        raise UsageError(_nothing(student, index.documents, chosen))
    history = make_history(found, known_ladders(chosen.out, console), chosen.only.gpu)
    picture = render.climb(history, spoken(console))
    if picture is None and chosen.pictures.shown:
        none = phrase("--svg, --png: no version has a speed yet; there is nothing to draw")
        raise UsageError(none)
    if chosen.markdown:
        shown = chosen.pictures.shown
        to_stdout(render.markdown(history, shown.name if shown else None, spoken(console)))
    else:
        console.print(render.terminal(history, spoken(console)))
    own = store.result_path(chosen.out, found[-1].result).parent
    target = own / f"history-{history.device}.html"
    store.write(target, render.html(history, spoken(console)).encode())
    say(console, phrase("page: {file}", file=str(target)))
    if picture is not None:
        chosen.pictures.write(picture, console)
    return DONE


def _wanted(entry: ResultEntry, chosen: HistoryOptions) -> bool:
    lab, device, gpu = board_of(entry)
    same_gpu = device != "gpu" or (chosen.only.gpu or "").lower() in (gpu or "").lower()
    return same_gpu and chosen.lab in (None, lab) and chosen.only.device in (None, device)


def _nothing(student: str, stored: Sequence[Stored], chosen: HistoryOptions) -> Message:
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
