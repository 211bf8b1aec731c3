"""Why a build failed, and who is at fault.

The compiler's messages cannot decide that, because a submission can print any message. The grader
checks in other ways:

- a header is missing only if the line that the error names includes it,
- the machine is broken if it cannot build a small program of the grader's own,
- the interface is missing if the submission compiles without the grader's part.

Only builds that fail outside the student's own files need a trial, which takes a second or two.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from grader.compile.brought_headers import with_brought_headers
from grader.compile.diagnostics import Complaint, first_error, readable
from grader.compile.entry import alone, entry_source, trial
from grader.compile.steps import Failed, Fill, TooLarge, Workshop, assemble, link, translate
from grader.errors import Rejected, ToolchainError
from grader.model import BuildInfo, Submission, Verdict, verbatim
from grader.problems.problem import Interface, vendor_library
from grader.submission.folder import copy_sources, left_out

_OURS = "../entry/"
_UNDEFINED = re.compile(r"undefined|[Uu]nresolved")


def not_defined(interface: Interface) -> str:
    return f"{interface.symbols} is not defined in {interface.main}"


def refusal(failure: Failed, shop: Workshop, submission: Submission, info: BuildInfo) -> Exception:
    """The exception to raise. ``info`` holds the log."""
    if failure.done.starved:
        return ToolchainError(
            f"the machine was too busy to give the compiler its {shop.limits.cpu_s:g} s of CPU time"
        )
    if failure.done.timed_out:
        message = f"compiling took longer than {shop.limits.cpu_s:g} s of CPU time and was stopped"
        return Rejected(Verdict.CE, verbatim(message), build=info)
    if failure.killed:
        return ToolchainError("the compiler was killed twice; is there enough memory?")
    if failure.full:
        return ToolchainError("no space left to compile in; make room in the temporary folder")
    complaint = first_error(info.log)
    if complaint is not None and complaint.missing and _includes(submission, complaint):
        where = f"{complaint.file}:{complaint.line} includes <{complaint.missing}>"
        if (library := vendor_library(complaint.missing)) is not None:
            message = f"{where}: a submission may not call {library}"
            return Rejected(Verdict.FE, verbatim(message), build=info)
        cute = complaint.missing.startswith(("cute/", "cutlass/"))
        if cute and shop.toolchain.cutlass_include is None:
            return ToolchainError(
                f"{where}, and the CuTe headers are not installed: "
                "pip install 'sgemm-grader[cutlass]'"
            )
    place = complaint.file if complaint else None
    if place and place.startswith(_OURS) and _compiles_alone(shop, submission):
        words = f"{not_defined(shop.interface)} in the way that {shop.interface.header} declares it"
        message = words + left_out(submission)
        return Rejected(Verdict.FE, verbatim(message), build=info)
    if place not in submission.contents:
        trouble = _trouble(shop)
        if trouble is not None:
            return ToolchainError(trouble)
    words = _words(failure, info.log)
    hint = left_out(submission) if _UNDEFINED.search(words) else ""
    return Rejected(Verdict.CE, verbatim(words + hint), build=info)


def _words(failure: Failed, log: str) -> str:
    lines = log.splitlines()
    if failure.step == "g++" and lines:
        return f"the linker failed: {lines[0]}"
    complaint = first_error(log)
    if complaint is not None:
        return str(complaint)
    last = lines[-1] if lines else f"{failure.step} ended with status {failure.done.returncode}"
    return f"the compiler failed: {last}"


def _includes(submission: Submission, complaint: Complaint) -> bool:
    """Whether the line that the error names includes the missing header."""
    lines = submission.contents.get(complaint.file or "", b"").split(b"\n")
    if not complaint.missing or not complaint.line or complaint.line > len(lines):
        return False
    line = lines[complaint.line - 1]
    return b"include" in line and complaint.missing.encode() in line


def _trouble(shop: Workshop) -> str | None:
    """What fails even without the student's code."""
    try:
        translated = translate(shop, _writing(shop.interface), entry_source(shop.interface))
        assemble(shop, translated.ptx)
        link(shop, translated.host_object)
    except Failed as failure:
        words = _words(failure, readable(failure.output))
        return f"{failure.step} cannot build the grader's own trial program: {words}"
    return None


def _compiles_alone(shop: Workshop, submission: Submission) -> bool:
    entry = with_brought_headers(
        alone(shop.interface, submission.defines), submission, shop.toolchain
    )
    try:
        translate(shop, partial(copy_sources, submission), entry)
    except (Failed, TooLarge):
        return False
    return True


def _writing(interface: Interface) -> Fill:
    def fill(folder: Path) -> None:
        (folder / interface.main).write_text(trial(interface))

    return fill
