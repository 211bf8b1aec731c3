"""The boards that a command line selects from the stored results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from grader import course
from grader.base import UsageError, one_line
from grader.cli.console import DONE, say, skipped, spoken, warn, write
from grader.cli.options import OptionGroup, flag, option
from grader.cli.shared_options import RESULTS, OneDevice
from grader.labs import REFERENCE, Attempts, Lab, Term, TimeRules, due_rule, load_lab, provided
from grader.results import Ladder, read_entries, shipped_ladders, stored_ladders
from ptxsim.text import phrase


class Selection(OptionGroup):
    """Stored results, and how they rank."""

    out: Path = RESULTS
    lab: str | None = option(
        "only this lab's results: its id, or its file, whose rules of time then hold", "LAB"
    )
    only: OneDevice
    choose: Attempts | None = option(
        "the result that counts for a student (default: what the lab file says, else best)"
    )
    no_ladder: bool = flag("leave out the rungs that grade ladder measured")
    roster: tuple[Path, ...] = option(
        "CSV file, see docs/instructor.md; may be repeated: a gradebook and a table of times",
        "FILE",
    )
    due: TimeRules | None = option(
        "instead of the lab file's rules of time: a time such as 2026-01-31T23:59+01:00, and "
        "with commas grace=10m, late=5%/day or late=2/hour, and most=40%",
        "RULE",
        type=due_rule,
    )


class Selected(NamedTuple):
    """The requested boards, and who is who on them."""

    boards: tuple[course.Board, ...]
    parties: course.Parties | None  # None without a roster

    @property
    def roster(self) -> course.Roster | None:
        """One person for each row: a group stands for its members."""
        return self.parties.roster if self.parties else None


def select(chosen: Selection, console: Console) -> Selected:
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
    wanted = tuple(board for board in boards if chosen.only.wants(board.device, board.gpu))
    warn(course.undated(wanted), console)
    return Selected(wanted, parties)


def lab_and_rules(chosen: Selection) -> tuple[str | None, TimeRules | None]:
    """The id of the lab that is asked for, and the rules of time: --due goes before its file's.
    Raises LabError."""
    named = chosen.lab
    if named is None or not ("/" in named or "." in named or Path(named).is_file()):
        return named, chosen.due
    lab = load_lab(Path(named))
    if chosen.due is None or lab.time is None:
        return lab.id, chosen.due or lab.time
    return lab.id, msgspec.structs.replace(chosen.due, attempts=lab.time.attempts)


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


def add_up(term: Term, labs: Sequence[Lab], out: Path, device: str, console: Console) -> int:
    """Show and write the gradebook of a term, and write its board for students."""
    entries, complaints = read_entries(out)
    ours = [each for each in entries if device in ("auto", each.environment.device)]
    rungs = reference_names()
    ours = [each for each in ours if each.submission.student not in rungs]
    boards, people, doubled = course.term.term_boards(term, labs, ours)
    skipped([*complaints, *doubled], console)
    if not boards:
        say(console, phrase("no such results in {folder}", folder=one_line(out)))
        return DONE
    key, language = course.load_pseudonym_key(out), spoken(console)
    hidden = course.board_rendering.for_students(boards, lambda who: course.pseudonym(key, who))
    book, board = course.term.add_up(boards, term, people), course.term.add_up(hidden, term, {})
    console.print("", course.term.terminal(book, language))
    (folder := out / "course").mkdir(0o700, parents=True, exist_ok=True)
    write(course.term.table_csv(book), folder / "gradebook.csv", console, sheet=True)
    write(course.term.html(book, term, language), folder / "gradebook.html", console)
    write(course.term.html(board, term, language), folder / "board.html", console)
    return DONE
