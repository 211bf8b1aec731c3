"""``grade course regrade``: whose points a change of the lab file changed, and why."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import boards, exit_status, options
from grader.cli.notices import skipped
from grader.cli.parser import Parser
from grader.course.leaderboard.ranking import Row
from grader.course.parties import Parties
from grader.course.regrade import Change, Comparison, Side, compare, versions
from grader.course.roster import read_roster
from grader.course.spreadsheet import harmless
from grader.errors import StoreError, UsageError, one_line
from grader.labs.lab import load_lab
from grader.labs.time_rules import TimeRules
from grader.report.long_table import LongTable
from grader.results import store
from grader.results.entries import Entry, read_entry
from grader.results.index import read_entries

_COLUMNS = (
    *("board", "student", "verdict_before", "points_before", "adjusted_before"),
    *("verdict_after", "points_after", "adjusted_after", "reasons"),
)


def add_options(parser: Parser) -> None:
    parser.description = (
        "List whose points differ between two versions of a lab file, and why. Grading again with "
        "a changed lab file keeps the results that it replaces."
    )
    options.selection(parser)
    which = "a lab file, or how its hash begins"
    add = parser.add_argument
    add("--before", metavar="LAB", help=f"{which} (default: the one before --after)")
    add("--after", metavar="LAB", help=f"{which} (default: that of the newest result)")
    add("--csv", metavar="FILE", type=Path, help="write a table; - is stdout")


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab, rules = boards.lab_and_rules(chosen)
    entries = _entries(chosen, lab, console)
    parties = Parties(read_roster(chosen.roster)) if chosen.roster else None
    known = versions(parties.merged(entries) if parties else entries)
    after = _side(chosen.after, known, rules, chosen)
    rest = {sha: found for sha, found in known.items() if sha != after.sha256}
    before = _side(chosen.before, rest if chosen.before is None else known, rules, chosen)
    found = compare(before, after, parties.roster if parties else None)
    if chosen.csv:
        boards.write(_csv(found), chosen.csv, console)
        return exit_status.DONE
    for side in (before, after):
        console.print(
            Text(f"lab file {side.sha256[:12]}: {len(side.entries)} results, to {side.newest}")
        )
    console.print(_table(found.changes))
    console.print(Text(f"{len(found.changes)} changed, {found.same} did not"))
    return exit_status.DONE


def _entries(chosen: argparse.Namespace, lab: str | None, console: Console) -> list[Entry]:
    """All of one lab, also those that a regrade replaced. Raises UsageError where it is unclear
    which lab is meant."""
    current, complaints = read_entries(chosen.out)
    labs = sorted({entry.lab.id for entry in current if lab in (None, entry.lab.id)})
    if len(labs) != 1:
        what = f"several labs ({', '.join(labs)}); choose one" if labs else "no results"
        raise UsageError(f"{one_line(chosen.out)}: {what}: --lab, --out")
    found = [entry for entry in current if entry.lab.id == labs[0]]
    replaced = [_former(path) for path in store.former(chosen.out, labs[0])]
    found += [entry for entry in replaced if isinstance(entry, Entry)]
    complaints += [complaint for complaint in replaced if isinstance(complaint, str)]
    skipped(complaints, console)
    return [entry for entry in found if _wanted(entry, chosen)]


def _former(path: Path) -> Entry | str:
    try:
        return read_entry(path)
    except StoreError as error:
        return str(error)


def _wanted(entry: Entry, chosen: argparse.Namespace) -> bool:
    gpu = entry.environment.gpu.name if entry.environment.gpu else ""
    if chosen.gpu is not None and chosen.gpu.lower() not in gpu.lower():
        return False
    return chosen.device in (None, entry.environment.device)


def _side(
    named: str | None,
    known: Mapping[str, Sequence[Entry]],
    rules: TimeRules | None,
    chosen: argparse.Namespace,
) -> Side:
    """One version of the lab file; a file that is named brings its own rules of time."""
    if not known:
        raise UsageError(
            "only one version of the lab file has results: there is nothing to compare"
        )
    sha256 = list(known)[-1]
    if named is not None and Path(named).is_file():
        lab = load_lab(Path(named))
        sha256, rules = lab.sha256, chosen.due or lab.time
    elif named is not None:
        matching = [sha for sha in known if sha.startswith(named.lower())]
        sha256 = matching[0] if len(matching) == 1 else ""
    if sha256 not in known:
        have = ", ".join(sha[:12] for sha in known)
        raise UsageError(f"{named}: no results by this lab file; there are some by {have}")
    choice = chosen.choose or (rules.attempts if rules else "best")
    return Side(sha256=sha256, entries=tuple(known[sha256]), rules=rules, choice=choice)


# --- output -----------------------------------------------------------------------------------


def _table(changes: Sequence[Change]) -> LongTable:
    columns = [("student", False), ("before", True), ("after", True), ("why", False)]
    table = LongTable("", [("board", False), *columns], give_way=(4, 0, 1))
    for change in changes:
        cells = [one_line(change.board), one_line(change.student)]
        cells += [_told(change.before), _told(change.after), "; ".join(change.reasons)]
        table.add(cells)
    return table


def _told(row: Row | None) -> str:
    """``86.07``, or with what late work lost ``86.07 (81.07)``."""
    if row is None or row.points is None or row.verdict is None:
        return ""
    adjusted = f" ({row.adjusted:.2f})" if row.adjusted != row.points else ""
    return f"{row.verdict.value} {row.points:.2f}{adjusted}"


def _csv(found: Comparison) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for change in found.changes:
        cells: list[object] = [change.board, change.student]
        for row in (change.before, change.after):
            verdict = row.verdict.value if row and row.verdict else ""
            cells += [verdict, row.points, row.adjusted] if row else ["", "", ""]
        writer.writerow([harmless(cell) for cell in (*cells, "; ".join(change.reasons))])
    return buffer.getvalue()
