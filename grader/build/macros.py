"""A submission's lines with its own macros expanded, as the compiler sees them.

nvcc preprocesses twice. First it handles directives alone: the toolkit's headers decide conditions,
and what a condition leaves out is gone. Then the student's lines, among them their ``#define``,
are expanded by themselves, so that nothing of a header is. Both runs end within limits: macros that
double one another would fill any disk.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from grader.base import Rejected, Verdict
from grader.build.entry import strip_comments
from grader.build.steps import BuildSettings, StepFailed, TooLarge, only_directives, only_macros
from grader.build.toolchain import Toolchain
from grader.labs import SourceLine, Submission, copy_sources
from grader.problems import Interface
from grader.sandbox import ProcessLimits, Sandbox
from ptxsim.text import phrase

_LIMITS = ProcessLimits(cpu_s=10, memory_mb=2048)
_LINES_MB = 1  # of expanded lines
_MARKER = re.compile(r'# (\d+) "(.*)"[ \d]*')
# Who writes such a line can pass a line off as a header's.
_MOVES = re.compile(rb"^\s*(?:#|%:|\?\?=)\s*(?:line\b|\d)", re.MULTILINE)


def has_macros(submission: Submission) -> bool:
    return any(b"define" in content for content in submission.contents.values())


def expand_macros(
    submission: Submission,
    interface: Interface,
    toolchain: Toolchain,
    sandbox: Sandbox,
    arch: str,
) -> tuple[SourceLine, ...]:
    """The lines of all files, with macros expanded where the main file includes them. Raises
    Rejected for a source that cannot be preprocessed within the limits."""
    spliced = strip_comments(submission).replace(b"\\\n", b"")
    if _MOVES.search(spliced):
        raise _refused("it has #line directives")
    settings = BuildSettings(
        toolchain=toolchain,
        sandbox=sandbox,
        arch=arch,
        limits=_LIMITS,
        interface=interface,
        lambdas=True,
    )
    smaller = msgspec.structs.replace(_LIMITS, file_mb=_LINES_MB)
    try:
        active = only_directives(settings, partial(copy_sources, submission))
        own = list(_own_lines(active, submission))
        settings = msgspec.structs.replace(settings, limits=smaller)
        expanded = only_macros(settings, "".join(_with_markers(own)))
    except (StepFailed, TooLarge):
        raise _refused("it cannot be preprocessed") from None
    lines = list(_own_lines(expanded, submission))
    seen = {line.file for line in own}
    for name, content in submission.contents.items():
        if name not in seen:  # nothing includes it
            text = content.decode(errors="replace").split("\n")
            lines += [SourceLine(file=name, number=n, text=line) for n, line in enumerate(text, 1)]
    return tuple(lines)


def _refused(why: str) -> Rejected:
    return Rejected(Verdict.CE, phrase("macros are not expanded: {why}", why=why))


def _own_lines(preprocessed: str, submission: Submission) -> Iterator[SourceLine]:
    """The lines that stand in the submission's own files, by the preprocessor's markers."""
    file, number = "", 0
    for text in preprocessed.split("\n"):
        if marker := _MARKER.fullmatch(text):
            file, number = os.path.normpath(marker[2]), int(marker[1])
            continue
        if file in submission.contents:
            yield SourceLine(file=file, number=number, text=text)
        number += 1


def _with_markers(lines: Iterable[SourceLine]) -> Iterator[str]:
    place: tuple[str, int] | None = None
    for line in lines:
        if place != (line.file, line.number):
            yield f'# {line.number} "{line.file}"\n'
        yield f"{line.text}\n"
        place = line.file, line.number + 1
