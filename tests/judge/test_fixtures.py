"""Real submissions that declare what they must get, graded by the whole pipeline on the CPU.

``fixtures/correct``, ``fixtures/broken`` and ``fixtures/gpu`` (right, but only a GPU can run them)
hold one submission per folder; tests/support/corpus.py says how each declares what it must get.
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from grader.base.finding import Finding
from grader.base.records import Verdict
from grader.base.result import Result
from grader.explain import sass
from grader.judge.pipeline import Graded, grade
from grader.judge.program import GradingContext, compile_for
from grader.labs.lab import find_lab, load_lab
from grader.labs.submission import load_submission
from grader.report import formatting as text
from grader.report import terminal
from grader.results import store
from grader.run.protocol import quietly
from ptxsim.findings.finding import Severity
from tests.support.bench import bench
from tests.support.corpus import ExpectedFinding, Fixture, fixtures
from tests.support.places import FIXTURES, ROOT
from tests.support.product import MAIN


def marked(file: Path, markers: tuple[str, ...]) -> set[int]:
    """The lines of ``file`` that end with one of the markers; each marker must be there."""
    found = {
        match[1]: number
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (match := re.search(r"// (BUG\d*)$", line))
    }
    return {found[marker] for marker in markers}


def check_finding(want: ExpectedFinding, findings: tuple[Finding, ...], folder: Path) -> None:
    lines = marked(folder / want.file, want.markers)
    assert any(
        finding.kind == want.kind
        and want.says in str(finding.message)
        and (not lines or (finding.file == want.file and finding.line in lines))
        for finding in findings
    ), f"no {want.kind} at {want.file}:{lines} that says {want.says!r} among {findings}"


def check_result(result: Result, want: Fixture) -> None:
    assert result.verdict is want.cpu.verdict, (result.error, result.cases, result.findings)
    if want.finding:
        check_finding(want.finding, result.findings, want.folder)
    allowed = {*want.also, want.finding.kind if want.finding else ""}
    unasked = [f for f in result.findings if f.severity is not Severity.NOTE]
    assert {f.kind for f in unasked} <= allowed, unasked
    messages = [str(result.error or ""), *(str(case.message) for case in result.cases)]
    assert any(want.cpu.words in message for message in messages), messages
    if want.got:
        mismatches = [c.error.first_mismatch for c in result.cases if c.error]
        assert want.got in {m.got_text for m in mismatches if m}
    if want.log:
        (line,) = marked(want.folder / "sgemm.cu", (want.log.marker,))
        assert re.search(rf"sgemm\.cu\({line}\).*{re.escape(want.log.says)}", str(result.error))


def check_declined(graded: Graded) -> None:
    """No advice on speed; in its place what to fix, with its line where there is one."""
    result = graded.result
    assert result.explanation is None
    said = str(text.fix_first(result))
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


def bench_for(want: Fixture) -> GradingContext:
    lab = msgspec.structs.replace(bench().lab, architectures=(want.architecture,))
    return msgspec.structs.replace(bench(), lab=lab)


def tensor_cores(want: Fixture) -> tuple[Finding, ...]:
    """What the scan of the machine code finds in a submission that was just built."""
    shared = bench_for(want)
    if shared.toolchain.nvdisasm is None:
        return ()
    built = compile_for(load_submission(want.folder, MAIN), shared, want.architecture)
    return sass.find_tensor_cores(sass.disassemble(built.cubin, shared.toolchain, shared.sandbox))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "want", fixtures(), ids=lambda want: f"{want.folder.parent.name}-{want.folder.name}"
)
def test_fixture(want: Fixture, tmp_path: Path) -> None:
    if want.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")

    wrong = want.cpu.verdict is not Verdict.AC  # asked to explain, it must decline
    shared = msgspec.structs.replace(bench_for(want), explain=wrong)
    graded = grade(want.folder, shared, quietly)

    check_result(graded.result, want)
    if wrong:
        check_declined(graded)
    else:
        # On a GPU the machine code decides, too.
        assert tensor_cores(want) == ()
    assert store.load(store.save(tmp_path, graded.result)) == graded.result
    assert want.cpu.verdict.value in rendered(graded)


OF_OTHER_LABS = [
    pytest.param(lab, want, id=f"{lab}-{want.folder.name}")
    for lab in ("hgemm", "reduction")
    for want in fixtures(lab, f"{lab}.cu")
]


@pytest.mark.sampled
@pytest.mark.parametrize(("lab", "want"), OF_OTHER_LABS)
def test_fixture_of_another_lab(lab: str, want: Fixture) -> None:
    if want.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    asked = msgspec.structs.replace(bench(), lab=load_lab(find_lab(lab)), explain=False)
    result = grade(want.folder, asked, quietly).result
    assert want.cpu.met_by(result), (result.error, result.cases, result.findings)
    if want.finding:
        check_finding(want.finding, result.findings, want.folder)


def test_every_correct_fixture_expects_acceptance() -> None:
    for want in fixtures():
        accepted = want.cpu.verdict is Verdict.AC
        assert accepted == (want.folder.parent.name == "correct"), want.folder


@pytest.mark.parametrize("name", ["starter", "submissions/alice"])
def test_samples_are_accepted(name: str) -> None:
    result = grade(ROOT / name, bench(), quietly).result

    assert result.verdict is Verdict.AC
    assert [f for f in result.findings if f.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("split_k_zero_kernel", Verdict.RF, "one call launches 2 kernels (zero, "),
        ("many_kernels", Verdict.RF, "kernels (add<…>"),
        ("naive", Verdict.AC, ""),
    ],
)
def test_a_lab_may_ask_for_one_kernel_per_call(name: str, verdict: Verdict, words: str) -> None:
    shared = bench()
    rules = msgspec.structs.replace(shared.lab.rules, kernels="one")
    lab = msgspec.structs.replace(shared.lab, rules=rules, cpu=shared.lab.cpu[:4])
    asked = msgspec.structs.replace(shared, lab=lab)
    result = grade(FIXTURES / "correct" / name, asked, quietly).result

    assert result.verdict is verdict, result.cases
    for case in result.cases:
        assert (case.kernels == 1) == (case.verdict is Verdict.AC), case
        assert words in str(case.message) or case.kernels == 1
