"""Why a build failed, and who is at fault.

The compiler's messages cannot decide that, because a submission can print any message. The grader
checks in other ways:

- a header is missing only if the line that the error names includes it,
- the machine is broken if it cannot build a small program of the grader's own,
- the interface is missing if the submission compiles without the grader's part.

Only builds that fail outside the student's own files need a trial, which takes a second or two.
"""

import re
import signal
from functools import partial
from pathlib import Path

from grader.base import BuildInfo, Rejected, ToolchainError, Verdict
from grader.build import steps
from grader.build.diagnostics import Complaint, first_error, readable, used_at
from grader.build.entry import alone, entry_source, trial, with_brought_headers
from grader.labs import Submission, copy_sources, with_hint
from grader.problems import Interface, vendor_library
from ptxsim.text import Message, phrase

_OURS = "../entry/"
_NESTED = "launch from __device__ or __global__ functions requires separate compilation"
_UNDEFINED = re.compile(r"undefined|[Uu]nresolved")


def not_defined(interface: Interface) -> Message:
    return phrase(
        "{symbol} is not defined in {main}", symbol=interface.symbols, main=interface.main
    )


def refusal(
    failure: steps.StepFailed,
    settings: steps.BuildSettings,
    submission: Submission,
    info: BuildInfo,
) -> Exception:
    """The exception to raise. ``info`` holds the log."""
    if ended := early_end(failure, settings.limits.cpu_s, info):
        return ended
    complaint = first_error(info.log)
    if complaint is not None and complaint.missing and _includes(submission, complaint):
        line = f"{complaint.file}:{complaint.line}"
        where = phrase("{place} includes <{header}>", place=line, header=complaint.missing)
        if (library := vendor_library(complaint.missing)) is not None:
            words = phrase("{where}: a submission may not call {library}", library=library)
            return Rejected(Verdict.FE, words.given(where=where), build=info)
        cute = complaint.missing.startswith(("cute/", "cutlass/"))
        if cute and settings.toolchain.cutlass_include is None:
            return ToolchainError.saying(
                "{where}, and the CuTe headers are not installed: {command}",
                where=where,
                command="pip install 'sgemm-grader[cutlass]'",
            )
    place = complaint.file if complaint else None
    if place and place.startswith(_OURS) and _compiles_alone(settings, submission):
        words = phrase("{found} in the way that {header} declares it")
        found, header = not_defined(settings.interface), settings.interface.header
        words = with_hint(words.given(found=found, header=header), submission)
        return Rejected(Verdict.FE, words, build=info)
    words = words_of(failure, info.log)
    if place not in submission.contents:
        if (trouble := _trouble(settings)) is not None:
            return ToolchainError(trouble)
        if use := used_at(info.log, submission.contents):
            words = phrase("{place}: {what}", place=use, what=words)
    if _UNDEFINED.search(str(words)):
        words = with_hint(words, submission)
    return Rejected(Verdict.CE, words, build=info)


def early_end(failure: steps.StepFailed, seconds: float, info: BuildInfo) -> Exception | None:
    """The exception where the compiler did not come to an end of its own. seconds: that it has."""
    if failure.done.starved:
        return ToolchainError.saying(
            "the machine was too busy to give the compiler its {seconds:g} s of CPU time",
            seconds=seconds,
        )
    if failure.done.timed_out:
        words = phrase("compiling took longer than {seconds:g} s of CPU time and was stopped")
        return Rejected(Verdict.CE, words.given(seconds=seconds), build=info)
    if failure.killed:
        return ToolchainError.saying("the compiler was killed; is there enough memory?")
    if failure.full:
        return ToolchainError.saying(
            "no space left to compile in; make room in the temporary folder"
        )
    return None


def words_of(failure: steps.StepFailed, log: str) -> Message:
    lines = log.splitlines()
    if failure.step == "g++" and lines:
        return phrase("the linker failed: {line}", line=lines[0])
    complaint = first_error(log)
    if complaint is not None:
        if _NESTED in complaint.text:
            words = phrase("{error}; kernels that launch kernels are not supported")
            return words.given(error=complaint.message)
        return complaint.message
    if lines:
        return phrase("the compiler failed: {line}", line=lines[-1])
    if failure.done.signal is not None:
        return phrase(
            "the compiler failed: {step} itself crashed ({signal}); inline assembly may be the "
            "cause",
            step=failure.step,
            signal=signal.strsignal(failure.done.signal) or failure.done.signal,
        )
    return phrase(
        "the compiler failed: {step} ended with status {status}",
        step=failure.step,
        status=failure.done.returncode or 0,
    )


def _includes(submission: Submission, complaint: Complaint) -> bool:
    """Whether the line that the error names includes the missing header."""
    lines = submission.contents.get(complaint.file or "", b"").split(b"\n")
    if not complaint.missing or not complaint.line or complaint.line > len(lines):
        return False
    line = lines[complaint.line - 1]
    return b"include" in line and complaint.missing.encode() in line


def _trouble(settings: steps.BuildSettings) -> Message | None:
    """Return why even the grader's own trial program does not build; None if it does."""

    def fill(folder: Path) -> None:
        (folder / settings.interface.main).write_text(trial(settings.interface))

    try:
        translated = steps.translate(settings, fill, entry_source(settings.interface))
        steps.assemble(settings, translated.files[steps.PTX])
        steps.link(settings, translated.files[steps.OBJECT])
    except steps.StepFailed as failure:
        what = phrase("{step} cannot build the grader's own trial program: {words}")
        return what.given(step=failure.step, words=words_of(failure, readable(failure.output)))
    return None


def _compiles_alone(settings: steps.BuildSettings, submission: Submission) -> bool:
    source = alone(settings.interface, submission.defines)
    entry = with_brought_headers(source, submission, settings.toolchain)
    try:
        steps.translate(settings, partial(copy_sources, submission), entry)
    except (steps.StepFailed, steps.TooLarge):
        return False
    return True
