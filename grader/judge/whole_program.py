"""Whole programs: what comes out of each case, against the lab file or the course's solution.

Of one case, the first rule that applies decides:

1. it cannot be simulated → FE; it did not end in time → TLE
2. a signal ended it, or a kernel accessed what it may not → RE
3. other output than expected → WA; the right one with another status than 0 → RE
4. fewer launches than the lab asks for, or the same output without them: the program runs again,
   and from the last launch asked for on they do nothing → RF
5. an error, where the lab's findings are to fail → WA
6. otherwise AC
"""

from __future__ import annotations

import hashlib
import math
import secrets
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import zip_longest
from pathlib import Path, PurePosixPath

import msgspec

from grader import base
from grader.build import PROGRAM, WholeBuild, cache, compile_whole, runtime_folder
from grader.judge.program import GradingContext
from grader.judge.rulings import Ruling
from grader.judge.verdicts import (
    ILLEGAL,
    STUCK,
    located,
    merge_findings,
    overall,
    weightiest,
    why_it_counts,
)
from grader.judge.walk import sealed
from grader.labs import SEED, OutputRules, ProgramCase, ProgramTask, Submission
from grader.results import Score, SizeGroup, weighted_mean
from grader.run import ALL, CaseOutcome, ProgramJob, ProgramRun, Progress, run_on_gpu, simulate
from ptxsim.findings import Severity
from ptxsim.text import NOTHING, Message, counted, phrase

_Texts = Mapping[str, str]  # by name of a file; "" is standard output
_MOST = 60  # characters of a line that are shown


def grade_program(
    submission: Submission, task: ProgramTask, context: GradingContext, progress: Progress
) -> Ruling:
    """Raises one of ``rulings.FATAL``."""
    if missing := [each for each in task.file.files.student if each not in submission.contents]:
        words = phrase("{main} is missing from the folder {folder}", main=missing[0])
        words = words.given(folder=submission.folder.name)
        raise base.Rejected(base.Verdict.FE, words)
    with tempfile.TemporaryDirectory(prefix="sgemm-program-") as name:
        bench = _Bench(task, context, Path(name).resolve())
        progress(phrase("compiling"), NOTHING)
        build, arch = bench.build(submission.contents), context.gpu_arch
        on_gpu = bench.build(submission.contents, arch).program if arch else None
        outcomes = []
        for case in task.file.cases:
            progress(phrase("simulating"), phrase("running the program"))
            with sealed() if case.hidden else nullcontext():
                outcomes.append(_outcome(bench, build.program, on_gpu, case))
    return _ruling(task, outcomes, build.info)


class _Bench:
    """Builds and runs one submission, and the lab's solution."""

    def __init__(self, task: ProgramTask, context: GradingContext, folder: Path) -> None:
        self.task, self.context, self._folder = task, context, folder

    def build(self, own: Mapping[str, bytes], gpu_arch: str | None = None) -> WholeBuild:
        lab, course = self.context.lab, self.task.course
        contents = {
            name: content  # but for what lies in a folder called as a file of the course
            for name, content in own.items()
            if course.keys().isdisjoint(map(str, PurePosixPath(name).parents))
        }
        return compile_whole(
            self.task,
            {**contents, **course},
            Path(tempfile.mkdtemp(dir=self._folder)),
            self.context.toolchain,
            self.context.sandbox,
            arch=lab.arch_on(gpu_arch) if gpu_arch else lab.architectures[0],
            limits=lab.limits,
            on_gpu=gpu_arch is not None,
        )

    def solution(self, gpu_arch: str | None = None) -> Path:
        """Return the lab's own program, which is kept: everybody's output is compared with its."""
        lab, version = self.context.lab, self.context.toolchain.cuda_version
        about = f"{lab.sha256} {gpu_arch} {lab.architectures[0]} {version} {runtime_folder()}"
        name = f"solution-{hashlib.sha256(about.encode()).hexdigest()[:24]}"
        folder = base.cache_folder() / "builds" / name
        if cache.find(folder, (PROGRAM,)) is None:
            try:
                made = self.build(self.task.solution, gpu_arch).program.read_bytes()
            except base.Rejected as refusal:
                words = phrase("the lab's own solution does not compile: {why}")
                raise base.MachineError(words.given(why=refusal.message)) from None
            cache.keep(folder, b"null", {PROGRAM: made})
        (folder / PROGRAM).chmod(0o700)
        return folder / PROGRAM

    def expected(self, case: ProgramCase, seed: str) -> _Texts:
        """Return what the lab file says must come out, or else what the solution makes."""
        wanted = {"": case.stdout, **case.files}
        if not case.asks_solution:
            return {name: text or "" for name, text in wanted.items()}
        ran = self.simulate(self.job(self.solution(), case, seed))
        made = _texts(ran)
        expected = {name: made.get(name, "") if it is None else it for name, it in wanted.items()}
        _must_be_right(case, _verdict(self, ran, expected)[1])
        return expected

    def job(self, program: Path, case: ProgramCase, seed: str) -> ProgramJob:
        return ProgramJob(
            program=program,
            arguments=tuple(word.replace(SEED, seed) for word in case.arguments),
            stdin=case.stdin.replace(SEED, seed),
            given={name: self.task.given[name] for name in case.given},
            wanted=tuple(case.files),
        )

    def simulate(self, job: ProgramJob, launches: int = ALL) -> ProgramRun:
        return simulate(job, self.context.sandbox, self.context.lab.limits, launches)


def _outcome(bench: _Bench, program: Path, on_gpu: Path | None, case: ProgramCase) -> CaseOutcome:
    """A case that is right in the simulator runs on the GPU, too, if there is one."""
    seed = str(secrets.randbelow(1 << 31))
    expected = bench.expected(case, seed)
    job = bench.job(program, case, seed)
    ran = bench.simulate(job)
    found = _findings(ran)
    launches = ran.seen.launches if ran.seen else 0
    verdict, message = _verdict(bench, ran, expected, found)
    if verdict is base.Verdict.AC and (broken := _idle(bench, job, expected, launches)):
        verdict, message = base.Verdict.RF, broken
    if verdict is base.Verdict.AC and on_gpu:
        ran, verdict, message = _on_gpu(bench, bench.job(on_gpu, case, seed), expected)
        if message and bench.task.solution:
            own = bench.job(bench.solution(bench.context.gpu_arch), case, seed)
            _must_be_right(case, _on_gpu(bench, own, expected)[2])
    return CaseOutcome(
        id=case.name,
        size={"case": case.name},
        amount=0,
        seconds=ran.done.seconds,
        kernels=launches,
        findings=found,
        verdict=verdict,
        message=message,
    )


def _on_gpu(
    bench: _Bench, job: ProgramJob, expected: _Texts
) -> tuple[ProgramRun, base.Verdict, Message]:
    ran = run_on_gpu(job, bench.context.sandbox, bench.context.lab.limits)
    verdict, message = _verdict(bench, ran, expected)
    return ran, verdict, phrase("on the GPU: {what}", what=message) if message else NOTHING


def _must_be_right(case: ProgramCase, mistake: Message) -> None:
    if mistake:
        words = phrase("the lab's own solution fails in the case {case}: {what}", case=case.name)
        raise base.MachineError(words.given(what=mistake))


def _findings(ran: ProgramRun) -> tuple[base.Finding, ...]:
    kinds, remarks = {each.value: each for each in base.Kind}, ran.seen.remarks if ran.seen else ()
    named = ((each, kinds.get(each.kind, base.Kind.OTHER)) for each in remarks)
    return tuple(base.Finding(**{**msgspec.structs.asdict(e), "kind": kind}) for e, kind in named)


def _verdict(
    bench: _Bench, ran: ProgramRun, expected: _Texts, findings: Sequence[base.Finding] = ()
) -> tuple[base.Verdict, Message]:
    done, seen = ran.done, ran.seen
    errors = [each for each in findings if each.severity is Severity.ERROR]
    if done.starved:
        raise base.MachineError.saying("the machine was too busy to run the program")
    if seen and seen.refused:
        return base.Verdict.FE, seen.refused
    if done.swollen or (seen and seen.full):
        words = phrase(
            "the device's memory, or memory that the program shares, takes more than {most} MiB, "
            "the lab's limit"
        )
        return base.Verdict.RE, words.given(most=bench.context.lab.limits.memory_mb)
    stuck = next((each for each in errors if each.kind in STUCK), None)
    if stuck or done.timed_out:
        return base.Verdict.TLE, located(stuck) if stuck else phrase("did not end in time")
    if seen and seen.broken:
        return base.Verdict.RE, phrase("host code wrote into the channel to its device")
    if done.signal is not None:
        ended = signal.Signals(done.signal).name
        return base.Verdict.RE, _because(phrase("ended by {signal}", signal=ended), errors)
    if illegal := next((each for each in errors if each.kind in ILLEGAL), None):
        return base.Verdict.RE, located(illegal)
    if difference := _differences(ran, expected, bench.task.file.output):
        return base.Verdict.WA, _because(difference, errors)
    if done.returncode:
        words = phrase("the output is right, and the status is {status}", status=done.returncode)
        return base.Verdict.RE, words
    if errors and bench.task.file.findings == "fail":
        return base.Verdict.WA, why_it_counts(errors[0])
    return base.Verdict.AC, NOTHING


def _idle(bench: _Bench, job: ProgramJob, expected: _Texts, launches: int) -> Message:
    """Say why the output does not need the launches that the lab asks for; NOTHING if it does."""
    least = bench.task.file.launches
    if launches < least:
        return counted(
            "{launches} of {count} kernel launch that this lab asks for",
            "{launches} of {count} kernel launches that this lab asks for",
            least,
            launches=launches,
        )
    if not least or _verdict(bench, bench.simulate(job, least - 1), expected)[1]:
        return NOTHING
    return phrase("the output is the same if the kernels do nothing: the host computes it")


def _because(what: Message, errors: Sequence[base.Finding]) -> Message:
    if not errors:
        return what
    return phrase("{wrong} ({cause})", wrong=what, cause=located(errors[0]))


def _texts(ran: ProgramRun) -> _Texts:
    files = {n: each.decode(errors="replace") for n, each in ran.files.items() if each is not None}
    return {"": ran.done.stdout, **files}


def _differences(ran: ProgramRun, expected: _Texts, rules: OutputRules) -> Message:
    texts = _texts(ran)
    for name, want in expected.items():
        if difference := _difference(texts.get(name), want, rules):
            where = name or phrase("standard output")
            return phrase("{where}, {what}", where=where, what=difference)
    return NOTHING


# --- texts -------------------------------------------------------------------------------------


def _difference(got: str | None, want: str, rules: OutputRules) -> Message:
    """The first difference that counts; NOTHING if there is none."""
    if got is None:
        return phrase("the program did not write it")
    pairs = zip_longest(_lines(got, rules), _lines(want, rules))
    for number, (own, right) in enumerate(pairs, 1):
        if own != right and not _near(own, right, rules.tolerance):
            words = phrase("line {line}: got {got}, expected {want}", line=number)
            return words.given(got=_shown(own), want=_shown(right))
    return NOTHING


def _lines(text: str, rules: OutputRules) -> list[str]:
    if rules.spaces == "exact":
        return text.split("\n")
    if rules.spaces == "any":
        return text.split()
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _near(got: str | None, want: str | None, tolerance: float | None) -> bool:
    """Whether two lines differ in numbers alone, by no more than the tolerance."""
    if got is None or want is None or tolerance is None:
        return False
    words = zip_longest(got.split(), want.split(), fillvalue="")
    return all(own == right or _close(own, right, tolerance) for own, right in words)


def _close(got: str, want: str, tolerance: float) -> bool:
    try:
        number, right = float(got), float(want)
    except ValueError:
        return False
    # What is infinite is near nothing else, nor is NaN.
    return number == right or abs(number - right) <= tolerance * max(1.0, abs(right)) < math.inf


def _shown(line: str | None) -> str | Message:
    if line is None:
        return phrase("no more lines")
    return repr(line if len(line) <= _MOST else f"{line[:_MOST]}…")


# --- the whole ---------------------------------------------------------------------------------


def _ruling(task: ProgramTask, outcomes: Sequence[CaseOutcome], info: base.BuildInfo) -> Ruling:
    """Hidden cases leave no more than ``SizeGroup`` tells."""
    weights = {case.name: case.weight for case in task.file.cases}
    secret = {case.name for case in task.file.cases if case.hidden}
    public = tuple(each for each in outcomes if each.id not in secret)
    hidden = tuple(each for each in outcomes if each.id in secret)
    verdict = overall(outcomes)
    earned = [(weights[e.id], 100.0 * (e.verdict is base.Verdict.AC)) for e in outcomes]
    total = 0.0 if verdict is base.Verdict.RF else round(weighted_mean(earned), 2)
    kind = weightiest(merge_findings(hidden))
    groups = [
        SizeGroup(
            name="hidden" if part is hidden else "public",
            weight=sum(weights[each.id] for each in part),
            sizes=len(part),
            right=sum(each.verdict is base.Verdict.AC for each in part),
            verdict=overall(part),
            mistakes=(kind,) if part is hidden and kind else (),
        )
        for part in (public, hidden)
        if hidden
    ]
    return Ruling(
        verdict=verdict,
        build=info,
        cases=public,
        findings=merge_findings(public),
        score=Score(total=total, max=100, policy="cases"),
        groups=tuple(groups),
    )
