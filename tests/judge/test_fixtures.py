"""Real submissions that declare what they must get, graded by the whole pipeline on the CPU.

``fixtures/correct``, ``fixtures/broken`` and ``fixtures/gpu`` (right, but only a GPU can run them)
hold one submission per folder; tests/support/corpus.py says how each declares what it must get.
"""

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from grader.base.finding import Finding
from grader.base.records import Verdict
from grader.build import disassemble, find_tensor_cores
from grader.judge.pipeline import Graded, grade
from grader.judge.program import GradingContext, compile_for
from grader.labs.lab import Case, find_lab, load_lab, shipped_labs
from grader.labs.submission import load_submission
from grader.problems.problem import GB_S
from grader.report import formatting as text
from grader.results import store
from grader.results.result import Result
from grader.run.protocol import quietly
from grader.study import grade_and_explain
from ptxsim.findings import Severity
from ptxsim.plan import Size
from tests.support.bench import bench, of_lab
from tests.support.corpus import ExpectedFinding, Fixture, fixtures
from tests.support.files import table, values
from tests.support.pages import printed
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
    return printed(graded.result, graded.sources, 120)


def bench_for(want: Fixture) -> GradingContext:
    return of_lab(bench(), architectures=(want.architecture,))


def tensor_cores(want: Fixture) -> tuple[Finding, ...]:
    """What the scan of the machine code finds in a submission that was just built."""
    shared = bench_for(want)
    if shared.toolchain.nvdisasm is None:
        return ()
    built = compile_for(load_submission(want.folder, MAIN), shared, want.architecture)
    return find_tensor_cores(disassemble(built.cubin, shared.toolchain, shared.sandbox))


# Seconds of nvcc's, each, for what others show in less.
LONG = (
    *("cute", "virtual_tile_policy", "libcudacxx_pipeline", "cub_block_load"),
    "function_pointer_table",
)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "want",
    [
        # The long ones, and every third, are for the nightly run.
        pytest.param(
            want, marks=[pytest.mark.nightly] if want.folder.name in LONG or place % 3 == 2 else []
        )
        for place, want in enumerate(fixtures())
    ],
    ids=lambda want: f"{want.folder.parent.name}-{want.folder.name}",
)
def test_fixture(want: Fixture, tmp_path: Path) -> None:
    if want.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")

    wrong = want.cpu.verdict is not Verdict.AC  # asked to explain, it must decline
    graded = (grade_and_explain if wrong else grade)(want.folder, bench_for(want), quietly)

    check_result(graded.result, want)
    if wrong:
        check_declined(graded)
    else:
        # On a GPU the machine code decides, too.
        assert tensor_cores(want) == ()
    assert store.load(store.save(tmp_path, graded.result)) == graded.result
    assert want.cpu.verdict.value in rendered(graded)


# Of labs with many, every second is for the nightly run.
OF_OTHER_LABS = [
    pytest.param(
        *(lab, want),
        id=f"{lab}-{want.folder.name}",
        marks=[pytest.mark.nightly] if place % 2 and load_lab(path).problem.unit is GB_S else [],
    )
    for lab, path in shipped_labs().items()
    for place, want in enumerate(fixtures(lab, load_lab(path).problem.interface.main))
]


@pytest.mark.sampled
@pytest.mark.parametrize(("lab", "want"), OF_OTHER_LABS)
def test_fixture_of_another_lab(lab: str, want: Fixture) -> None:
    if want.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    asked = msgspec.structs.replace(bench(), lab=load_lab(find_lab(lab)))
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


@pytest.mark.parametrize(("name", "verdict", "words"), table(__file__, "one_kernel.txt"))
def test_a_lab_may_ask_for_one_kernel_per_call(name: str, verdict: str, words: str) -> None:
    shared = bench()
    rules = msgspec.structs.replace(shared.lab.rules, kernels="one")
    asked = of_lab(shared, rules=rules, cpu=shared.lab.cpu[:4])
    result = grade(FIXTURES / "correct" / name, asked, quietly).result

    assert result.verdict.name == verdict, result.cases
    for case in result.cases:
        assert (case.kernels == 1) == (case.verdict is Verdict.AC), case
        assert words in str(case.message) or case.kernels == 1


# --- a product by wgmma and TMA, and what becomes of it when a line is wrong


FOLDER = FIXTURES / "hopper" / "tma_wgmma"
SIZE = Size.of(m=72, n=136, k=520)  # partial tiles in every direction, more steps than stages
COPY, WGMMA, WAIT, LAUNCH = '"l"(map)', ': "l"(x), "l"(y)', '"r"(parity)', "cudaLaunchKernelEx("
MAP, EXPECT = "cuTensorMapEncodeTiled", "expect(&s.full[stage], TILE * LINE * 2);"


WRONG = {name: row for name, *row in table(__file__, "wrong_tma.txt")}


def graded(folder: Path, size: Size = SIZE) -> Result:
    hgemm = msgspec.structs.replace(bench(), lab=load_lab(find_lab("hgemm")))
    asked = of_lab(hgemm, cpu=(Case(id="cpu-0", size=size),), performance=())
    return grade(folder, asked, quietly).result


@pytest.mark.sampled
def test_wgmma_and_tma_are_accepted() -> None:
    result = graded(FOLDER)
    assert result.verdict is Verdict.AC, (result.error, result.findings)
    assert result.build is not None and result.build.arch == "sm_90a"
    assert all(each.severity is Severity.NOTE for each in result.findings)


def errors_of(result: Result) -> list[Finding]:
    return [each for each in result.findings if each.severity is Severity.ERROR]


@pytest.mark.sampled
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_line_is_found(name: str, tmp_path: Path) -> None:
    row = (each.encode().decode("unicode_escape") for each in WRONG[name])
    old, new, verdict, kind, at, says = row
    folder = changed(FOLDER, tmp_path, ("hgemm.cu", old, new))
    result = graded(folder)
    assert result.verdict is Verdict(verdict), (result.error, result.findings)
    lines = ["", *(folder / "hgemm.cu").read_text().splitlines()]
    assert any(
        each.kind.value == kind and says in str(each.message) and at in lines[each.line or 0]
        for each in errors_of(result)
    ), result.findings


def changed(folder: Path, place: Path, *changes: tuple[str, str, str] | str) -> Path:
    """Copy the program, with other words in some of its files or with a patch."""
    copy = shutil.copytree(folder, place / "student")
    for change in changes:
        if isinstance(change, str):
            patch = Path(__file__).parent / "data" / change
            subprocess.run(["git", "apply", patch], cwd=copy, check=True)
            continue
        file, old, new = change
        text = (copy / file).read_text()
        assert text.count(old) == 1, old
        (copy / file).write_text(text.replace(old, new))
    return copy


LAST_RUNG = ROOT / "reference" / "hgemm" / "13_dispatch"
ORDERS = values(__file__, "orders.txt")
TURNS, WIDE = ([row for name, *row in ORDERS if name == group] for group in ("turns", "wide"))
NO_TURNS = ("turns.cuh", "if (mine > 0) wait_until_let(turn_of(consumer));", "")
NO_WAIT = ("shares.cuh", "while (atomicCAS(&sums_left[slot], 1, 0) != 1);", "sums_left[slot] = 0;")
# A is copied first, by a kernel beside whose end the product begins: one thread waits for it, ahead
# of its first copy.
PACKED = ("packed.patch",)
NO_PACKED = ("hgemm.cu", "      if (p == 0) cudaGridDependencySynchronize();\n", "")


@pytest.mark.sampled
@pytest.mark.parametrize("waits", [pytest.param(True, marks=pytest.mark.nightly), False])
@pytest.mark.parametrize(
    ("program", "order", "mistake", "size", "verdicts", "says"),
    [
        # A parity says too little to a consumer that waits for a phase several rounds ahead: six
        # tiles, seven steps.
        pytest.param(
            *(LAST_RUNG, TURNS, NO_TURNS, (200, 520, 392), "WA TLE", "copy not waited for"),
            marks=pytest.mark.nightly,
        ),
        (LAST_RUNG, WIDE, NO_WAIT, (520, 512, 392), "WA RE TLE", ""),
        (FOLDER, PACKED, NO_PACKED, SIZE.extents, "WA", "has waited for the kernel launched befor"),
    ],
    ids=["consumers take turns", "clusters share a tile", "the operand is packed first"],
)
def test_who_does_not_wait_is_found(
    program: Path,
    order: tuple[tuple[str, str, str] | str, ...],
    mistake: tuple[str, str, str],
    size: tuple[int, int, int],
    verdicts: str,
    says: str,
    waits: bool,
    tmp_path: Path,
) -> None:
    folder = changed(program, tmp_path, *order, *([] if waits else [mistake]))
    m, n, k = size
    result = graded(folder, Size.of(m=m, n=n, k=k))
    errors = errors_of(result)
    if waits:
        assert result.verdict is Verdict.AC and not errors, (result.error, errors)
        return
    assert result.verdict.value in verdicts.split()
    races = [each for each in errors if each.kind.value == "race"]
    assert any(says in str(each.message) for each in races or errors), errors
    if order is PACKED:
        (found,) = errors
        assert COPY in ["", *(folder / "hgemm.cu").read_text().splitlines()][found.line or 0]
    if order is WIDE:
        assert races, errors
