"""Show one result, and store it with its page."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from grader.base import GraderError, Verdict
from grader.cli import formats
from grader.cli.console import answer, complain, spoken, status_of
from grader.cli.grade_command import GradeOptions
from grader.judge import Graded
from grader.report import clean, terminal
from grader.results import StoreError, keep_sources, store
from ptxsim.text import Message, phrase


def present(graded: Graded, path: Path, chosen: GradeOptions, console: Console) -> int:
    """Present the result of the submission at ``path``; return the exit status."""
    result, language = graded.result, spoken(console)
    shown = [terminal.render(result, graded.sources, language, chosen.verbosity.detail)]
    if graded.printed and chosen.verbosity.detail != "verdict":
        # Indented, so that no line looks like one of the grader's.
        words = textwrap.indent(clean(graded.printed), "  ", lambda _line: True)
        shown.append(Text(f"\n{language(phrase('printed by the kernels:'))}\n{words}"))
    status, failures, files = status_of(result), list[GraderError](), list[Message]()
    try:  # before anything is shown: the reader of a pipe may leave at the first line
        # The grader's failure must not replace a real result, and a page that tells hidden sizes
        # must not lie where students' pages do.
        if result.verdict is not Verdict.IE and not chosen.reveal:
            keep_sources(store.result_path(chosen.out, result), graded.contents.values())
            written = store.save(chosen.out, result)
            files.append(phrase("result: {file}", file=str(written)))
            if not chosen.no_report:
                files.append(formats.write_page(written, result, graded.sources, language))
    except StoreError as error:
        failures.append(error)
    formats.show(chosen.written_as, Group(*shown), console)
    for file in files if chosen.verbosity.detail != "verdict" else ():
        answer(console, file)
    try:
        if chosen.written_as:
            formats.write(chosen.written_as, result, path, language)
    except GraderError as error:
        failures.append(error)
    for failure in failures:
        complain(failure, console)
        status = failure.exit_status
    return status
