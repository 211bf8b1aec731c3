"""``grade leaderboard``: rank the stored results. Other commands choose results and boards here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from grader import course
from grader.base import UsageError, one_line
from grader.cli.console import DONE, aside, say, skipped, spoken, to_stdout, warn
from grader.labs import REFERENCE, TimeRules, load_lab, provided
from grader.results import Ladder, StoreError, read_entries, shipped_ladders, stored_ladders
from ptxsim.text import phrase


def run(chosen: argparse.Namespace, console: Console) -> int:
    from grader.course import board_rendering as render  # what grading a submission does not need

    console = beside(console, chosen.html, chosen.csv)
    selected, language = select(chosen, console), spoken(console)
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


# --- choice of results and boards --------------------------------------------------------------


class Selected(NamedTuple):
    """The requested boards, and who is who on them."""

    boards: tuple[course.Board, ...]
    parties: course.Parties | None  # None without a roster

    @property
    def roster(self) -> course.Roster | None:
        """One person for each row: a group stands for its members."""
        return self.parties.roster if self.parties else None


def select(chosen: argparse.Namespace, console: Console) -> Selected:
    """Reports files that are not results."""
    lab, rules = lab_and_rules(chosen)
    parties = course.Parties(course.read_roster(*chosen.roster)) if chosen.roster else None
    found, complaints = read_entries(chosen.out)
    entries = [entry for entry in found if lab in (None, entry.lab.id)]
    if parties:
        entries, doubled = parties.merged(entries)
        complaints += doubled
    skipped(complaints, console)
    boards = course.make_boards(
        entries,
        chosen.choose or (rules.attempts if rules else "best"),
        roster=parties.roster if parties else None,
        rules=rules,
        references=reference_names(),
        ladders=() if chosen.no_ladder else known_ladders(chosen.out, console),
    )
    wanted = tuple(board for board in boards if is_wanted(board.device, board.gpu, chosen))
    warn(course.undated(wanted), console)
    return Selected(wanted, parties)


def lab_and_rules(chosen: argparse.Namespace) -> tuple[str | None, TimeRules | None]:
    """The id of the lab that is asked for, and the rules of time: --due goes before its file's.
    Raises LabError."""
    named: str | None = chosen.lab
    if named is None or not ("/" in named or "." in named or Path(named).is_file()):
        return named, chosen.due
    lab = load_lab(Path(named))
    if chosen.due is None or lab.time is None:
        return lab.id, chosen.due or lab.time
    return lab.id, msgspec.structs.replace(chosen.due, attempts=lab.time.attempts)


def is_wanted(device: str, gpu: str | None, chosen: argparse.Namespace) -> bool:
    """Whether --device and --gpu ask for results of this device."""
    if chosen.gpu is not None and chosen.gpu.lower() not in (gpu or "").lower():
        return False
    return chosen.device in (None, device)


def known_ladders(out: Path, console: Console) -> tuple[Ladder, ...]:
    """The ladders measured here, then those shipped with the package.

    "Here" is ``out`` and its parent folder: a cluster keeps one folder of results for each type of
    GPU, and the ladders of all types beside these folders.
    """
    stored, complaints = stored_ladders(out)
    above, _not_ours = stored_ladders(out.absolute().parent)
    skipped(complaints, console)
    return (*stored, *above, *shipped_ladders())


def reference_names() -> frozenset[str]:
    """Names of the reference rungs, whose results serve as a comparison."""
    return frozenset(
        path.parent.name for place in provided(REFERENCE) for path in place.glob("*/*/*.cu")
    )


def only(boards: Sequence[course.Board]) -> course.Board:
    """The board for a format that holds only one. Raises UsageError that lists the boards."""
    if len(boards) == 1:
        return boards[0]
    if not boards:
        none = phrase("no results to export; grade something first, or name the folder: --out")
        raise UsageError(none)
    several = phrase("several boards ({found}); choose one with --lab, --gpu and --device")
    raise UsageError(several.given(found="; ".join(str(board.title) for board in boards)))


def beside(console: Console, *targets: Path | None) -> Console:
    """Return where the answer for people goes: not to stdout where a target takes that."""
    return aside(console) if any(str(target) == "-" for target in targets) else console


def write(text: str, target: Path, console: Console, *, sheet: bool = False) -> None:
    """Write to a file, or to stdout for ``-``; a sheet with UTF-8's mark. Raises StoreError."""
    if str(target) == "-":
        to_stdout(text)
        return
    try:
        with target.open("w", encoding="utf-8-sig" if sheet else "utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        words = phrase("{target}: cannot be written: {why}")
        raise StoreError(words.given(target=str(target), why=str(error.strerror))) from None
    say(console, f"written: {target}")
