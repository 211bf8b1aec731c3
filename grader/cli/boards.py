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
from grader.judge import rescored
from grader.labs import REFERENCE, Attempts, Lab, Term, TimeRules, due_rule, load_lab, provided
from grader.results import Ladder, ResultEntry, read_entries, shipped_ladders, stored_ladders
from ptxsim.text import listed, phrase, verbatim


class Selection(OptionGroup):
    """Stored results, and how they rank."""

    out: Path = RESULTS
    lab: str | None = option(
        "only this lab's results: its id, or its file, by which points then count", "LAB"
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
    file, lab, rules = lab_and_rules(chosen)
    ladders = known_ladders(chosen.out, console)
    parties = course.Parties(course.read_roster(*chosen.roster)) if chosen.roster else None
    found, complaints = read_entries(chosen.out)
    entries = [entry for entry in found if lab in (None, entry.lab.id)]
    if file is not None:
        entries = _rescored(entries, file, ladders, console)
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
        ladders=() if chosen.no_ladder else ladders,
        version=file.sha256 if file else None,
    )
    wanted = tuple(board for board in boards if chosen.only.wants(board.device, board.gpu))
    warn(course.undated(wanted), console)
    return Selected(wanted, parties)


def lab_and_rules(chosen: Selection) -> tuple[Lab | None, str | None, TimeRules | None]:
    """The lab of the file that is asked for, if all of its sizes are known; the id; and the rules
    of time: --due goes before the file's. Raises LabError."""
    named = chosen.lab
    if named is None or not ("/" in named or "." in named or Path(named).is_file()):
        return None, named, chosen.due
    lab = load_lab(Path(named))
    rules = chosen.due or lab.time
    if chosen.due is not None and lab.time is not None:
        rules = msgspec.structs.replace(chosen.due, attempts=lab.time.attempts)
    return lab if lab.hidden is None or lab.hidden.known else None, lab.id, rules


def _rescored(
    entries: Sequence[ResultEntry], lab: Lab, ladders: Sequence[Ladder], console: Console
) -> list[ResultEntry]:
    """The results as this version of the lab file scores them; says which ones it cannot score."""
    old = [entry for entry in entries if entry.lab.sha256 != lab.sha256]
    new = {id(entry): rescored(entry, lab, ladders) for entry in old}
    kept = [entry.submission for entry in old if new[id(entry)] is None]
    names = [verbatim(f"{one_line(who.student)} {who.sha256[:12]}") for who in kept]
    names[5:] = [verbatim("…")] if names[5:] else []
    if old:
        told = phrase(
            "results by another version of this lab file: {count}; their points follow this one, "
            "but not its rules and limits; to be graded again, since it counts other sizes: {names}"
        )
        warn(told.given(count=len(old), names=listed(names or [phrase("none")])), console)
    return [new.get(id(entry)) or entry for entry in entries]


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
    rungs, ladders = reference_names(), known_ladders(out, console)
    entries = [each for each in entries if device in ("auto", each.environment.device)]
    ours: list[ResultEntry] = []
    for lab in labs:
        own = [e for e in entries if e.lab.id == lab.id and e.submission.student not in rungs]
        known = lab.hidden is None or lab.hidden.known
        ours += _rescored(own, lab, ladders, console) if known else own
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
