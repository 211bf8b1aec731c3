"""What ``grade leaderboard`` and ``grade export`` share: the choice of results and boards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from grader.cli.notices import say, skipped, to_stdout
from grader.course.leaderboard.ranking import Board, make_boards, read_entries
from grader.course.parties import Parties
from grader.course.roster import Roster, read_roster
from grader.errors import StoreError, UsageError
from grader.labs.lab import load_lab
from grader.labs.time_rules import TimeRules
from grader.ladder.document import Ladder, shipped_ladders, stored_ladders
from grader.model import phrase
from grader.submission.provided import REFERENCE, provided


class Selected(NamedTuple):
    """The requested boards, and who is who on them."""

    boards: tuple[Board, ...]
    parties: Parties | None  # None without a roster

    @property
    def roster(self) -> Roster | None:
        """One person for each row: a group stands for its members."""
        return self.parties.roster if self.parties else None


def select(options: argparse.Namespace, console: Console) -> Selected:
    """Reports files that are not results."""
    lab, rules = lab_and_rules(options)
    parties = Parties(read_roster(options.roster)) if options.roster else None
    found, complaints = read_entries(options.out)
    skipped(complaints, console)
    entries = [entry for entry in found if lab in (None, entry.lab.id)]
    boards = make_boards(
        parties.merged(entries) if parties else entries,
        options.choose or (rules.attempts if rules else "best"),
        roster=parties.roster if parties else None,
        due=rules.due_at if rules else None,
        rules=rules,
        references=reference_names(),
        ladders=() if options.no_ladder else known_ladders(options.out, console),
    )
    return Selected(tuple(board for board in boards if _wanted(board, options)), parties)


def lab_and_rules(options: argparse.Namespace) -> tuple[str | None, TimeRules | None]:
    """The id of the lab that is asked for, and the rules of time: --due goes before its file's.
    Raises LabError."""
    named: str | None = options.lab
    if named is None or not ("/" in named or "." in named or Path(named).is_file()):
        return named, options.due
    lab = load_lab(Path(named))
    if options.due is None or lab.time is None:
        return lab.id, options.due or lab.time
    attempts = lab.time.attempts
    return lab.id, msgspec.structs.replace(options.due, attempts=attempts)


def _wanted(board: Board, options: argparse.Namespace) -> bool:
    if options.gpu is not None and options.gpu.lower() not in (board.gpu or "").lower():
        return False
    return options.device in (None, board.device)


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


def only(boards: Sequence[Board]) -> Board:
    """The board for a format that holds only one. Raises UsageError that lists the boards."""
    if len(boards) == 1:
        return boards[0]
    if not boards:
        raise UsageError(
            phrase("no results to export; grade something first, or name the folder: --out")
        )
    found = "; ".join(str(board.title) for board in boards)
    raise UsageError(
        phrase("several boards ({found}); choose one with --lab, --gpu and --device", found=found)
    )


def write(text: str, target: Path, console: Console) -> None:
    """Write to a file, or to stdout for ``-``. Raises StoreError."""
    if str(target) == "-":
        to_stdout(text)
        return
    try:
        with target.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(
            phrase(
                "{target}: cannot be written: {why}", target=str(target), why=str(error.strerror)
            )
        ) from None
    say(console, f"written: {target}")
