"""Real submissions that declare what they must get, graded by the whole pipeline on the CPU.

``fixtures/correct``, ``fixtures/broken`` and ``fixtures/gpu`` (right, but only a GPU can run them)
hold one submission per folder; its ``expect.yaml`` is an ``Expect`` (below). A finding's line is
given by a marker: ``// BUG`` at the end of that line.
"""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from pathlib import Path

import msgspec
import pytest
import yaml
from rich.console import Console

from grader.compile.building import compile_submission
from grader.grading.pipeline import Bench, Graded, grade
from grader.labs.lab import load_lab
from grader.model import Finding, Record, Result, Severity, Verdict
from grader.performance import sass
from grader.report import terminal, text
from grader.results import store
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = sorted(path.parent for path in FIXTURES.glob("*/*/expect.yaml"))


class ExpectedFinding(Record):
    kind: str
    says: str = ""  # part of the message
    file: str = "sgemm.cu"
    line: str | None = None  # a marker
    lines: tuple[str, ...] = ()  # markers, any of which will do


class ExpectedLog(Record):
    """One line of the compiler's output, which must name a marked line of sgemm.cu."""

    line: str
    says: str


class Expect(Record):
    """A case or the whole must show each thing that is given; no other kind of error may show."""

    verdict: Verdict
    finding: ExpectedFinding | None = None
    also: tuple[str, ...] = ()  # kinds of findings that follow from the same bug
    message: str = ""  # part of the result's error or of a case's message
    got: str | None = None  # what stands at the first mismatch, as printed
    log: ExpectedLog | None = None
    needs: str | None = None  # "cutlass"
    known: str | None = None  # why the grader does not manage this yet


@cache
def bench() -> Bench:
    lab = load_lab()
    limits = msgspec.structs.replace(lab.limits, record_s=2, simulate_s=5)
    return Bench(
        lab=msgspec.structs.replace(lab, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
        explain=False,
    )


def expectation(folder: Path) -> Expect:
    return msgspec.convert(yaml.safe_load((folder / "expect.yaml").read_text()), Expect)


def marked(file: Path, markers: tuple[str, ...]) -> set[int]:
    """The lines of ``file`` that end with one of the markers; each marker must be there."""
    found = {
        match[1]: number
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (match := re.search(r"// (BUG\d*)$", line))
    }
    return {found[marker] for marker in markers}


def check_finding(want: ExpectedFinding, findings: tuple[Finding, ...], folder: Path) -> None:
    markers = want.lines or ((want.line,) if want.line else ())
    lines = marked(folder / want.file, markers)
    assert any(
        finding.kind == want.kind
        and want.says in finding.message
        and (not lines or (finding.file == want.file and finding.line in lines))
        for finding in findings
    ), f"no {want.kind} at {want.file}:{lines} that says {want.says!r} among {findings}"


def check_result(result: Result, want: Expect, folder: Path) -> None:
    assert result.verdict is want.verdict, (result.error, result.cases, result.findings)
    if want.finding:
        check_finding(want.finding, result.findings, folder)
    allowed = {*want.also, want.finding.kind if want.finding else ""}
    unasked = [f for f in result.findings if f.severity is not Severity.NOTE]
    assert {f.kind for f in unasked} <= allowed, unasked
    messages = [result.error or "", *(case.message for case in result.cases)]
    assert any(want.message in message for message in messages), messages
    if want.got:
        mismatches = [c.error.first_mismatch for c in result.cases if c.error]
        assert want.got in {m.got_text for m in mismatches if m}
    if want.log:
        (line,) = marked(folder / "sgemm.cu", (want.log.line,))
        assert re.search(rf"sgemm\.cu\({line}\).*{re.escape(want.log.says)}", result.error or "")


def check_declined(graded: Graded) -> None:
    """No advice on speed; in its place what to fix, with its line where there is one."""
    result = graded.result
    assert result.explanation is None
    said = text.fix_first(result)
    assert said in " ".join(rendered(graded).split()) or not result.cases, said
    judged = result.verdict is not Verdict.IE  # of what it cannot simulate the grader says no more
    assert bool(said) == (judged and bool(result.cases))
    errors = [f for f in result.findings if f.severity is Severity.ERROR and f.line]
    assert not errors or any(f"{error.file}:{error.line}" in said for error in errors), said


def rendered(graded: Graded) -> str:
    console = Console(file=StringIO(), width=120)
    console.print(terminal.render(graded.result, graded.sources))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def tensor_cores(folder: Path) -> tuple[Finding, ...]:
    """What the scan of the machine code finds in a submission that was just built."""
    shared = bench()
    if shared.toolchain.nvdisasm is None:
        return ()
    limits = shared.lab.limits
    built = compile_submission(
        load_submission(folder),
        shared.toolchain,
        shared.sandbox,
        arch=f"sm_{shared.lab.architectures[0]}",
        compile_s=limits.compile_s,
        memory_mb=limits.memory_mb,
    )
    return sass.find_tensor_cores(sass.disassemble(built.cubin, shared.toolchain, shared.sandbox))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}-{f.name}")
def test_fixture(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    want = expectation(folder)
    if want.needs == "cutlass" and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    if want.known:
        request.applymarker(pytest.mark.xfail(reason=want.known, strict=True))

    wrong = want.verdict is not Verdict.AC  # asked to explain, it must decline
    graded = grade(
        folder, msgspec.structs.replace(bench(), explain=wrong), lambda _stage, _detail: None
    )

    check_result(graded.result, want, folder)
    if wrong:
        check_declined(graded)
    if want.verdict is Verdict.AC:
        assert tensor_cores(folder) == ()  # on a GPU the machine code decides, too
    assert store.load(store.save(tmp_path, graded.result)) == graded.result
    assert want.verdict.value in rendered(graded)


def test_every_correct_fixture_expects_acceptance() -> None:
    for folder in FOLDERS:
        accepted = expectation(folder).verdict is Verdict.AC
        assert accepted == (folder.parent.name == "correct"), folder


@pytest.mark.parametrize("name", ["starter", "submissions/alice"])
def test_samples_are_accepted(name: str) -> None:
    result = grade(FIXTURES.parents[1] / name, bench(), lambda _stage, _detail: None).result

    assert result.verdict is Verdict.AC
    assert [f for f in result.findings if f.severity is not Severity.NOTE] == []
