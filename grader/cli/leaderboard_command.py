"""``grade leaderboard``: rank the stored results."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader import course
from grader.base import one_line
from grader.cli import boards
from grader.cli.console import DONE, beside, say, spoken, write
from grader.cli.options import flag, option
from grader.course import board_rendering as render
from ptxsim.text import phrase


class LeaderboardOptions(boards.Selection):
    """Rank the stored results, on one board for each lab and GPU model."""

    html: Path | None = option("write a page; - is stdout", "FILE")
    csv: Path | None = option("write a table; - is stdout", "FILE")
    pseudonyms: bool = flag(
        "for students: stable made-up names, from a key stored with the results"
    )


def run(chosen: LeaderboardOptions, console: Console) -> int:
    console = beside(console, chosen.html, chosen.csv)
    selected, language = boards.select(chosen, console), spoken(console)
    found, roster = selected.boards, selected.roster
    if chosen.pseudonyms:
        key = course.load_pseudonym_key(chosen.out)
        found = render.for_students(found, lambda student: course.pseudonym(key, student))
        roster = None
    if chosen.html:
        write(render.html(found, roster, language), chosen.html, console)
    if chosen.csv:
        write(render.table_csv(found, roster), chosen.csv, console, sheet=True)
    if found:
        console.print(render.terminal(found, roster, language))
    else:
        say(console, phrase("no such results in {folder}", folder=one_line(chosen.out)))
    return DONE
