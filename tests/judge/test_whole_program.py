"""Labs that ask for a whole program: verdicts, and programs that try to get one unearned."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from grader.base import MachineError, Rejected
from grader.base.records import Verdict
from grader.judge import whole_program
from grader.judge.pipeline import Graded, grade
from grader.judge.program import GradingContext
from grader.judge.whole_program import _Bench, _difference
from grader.labs.lab import find_lab, load_lab
from grader.labs.whole_program import OutputRules
from grader.report import html
from grader.run import first_gpu_arch
from grader.run.protocol import quietly
from grader.sandbox.running import Mode, Sandbox
from ptxsim.text import verbatim
from tests.support.bench import bench
from tests.support.corpus import Fixture, fixtures
from tests.support.files import beside, values
from tests.support.pages import printed
from tests.support.places import FIXTURES, ROOT

MAINS = {"vector-add": "add.cu", "heat": "heat.cu"}
WRONG = [(lab, each) for lab, main in MAINS.items() for each in fixtures(lab, main)]


def context(lab: Path, mode: Mode = "auto", cases: int | None = None) -> GradingContext:
    """cases: so many of the lab's first."""
    known = load_lab(lab)
    assert known.program
    file = msgspec.structs.replace(known.program.file, cases=known.program.file.cases[:cases])
    known = msgspec.structs.replace(
        known, program=msgspec.structs.replace(known.program, file=file)
    )
    return msgspec.structs.replace(bench(), lab=known, sandbox=Sandbox.open(mode))


def solution(lab: str) -> Path:
    (rung,) = (ROOT / "reference" / lab).iterdir()
    return rung


def shown(graded: Graded) -> str:
    """By the terminal and by the page."""
    page = html.render(graded.result, graded.sources)
    return printed(graded.result) + page


def test_the_solution_is_accepted() -> None:
    graded = grade(solution("vector-add"), context(find_lab("vector-add"), cases=1), quietly)
    assert graded.result.verdict is Verdict.AC, (graded.result.error, graded.result.cases)
    assert "Score 100.00 max.100 (by cases)" in shown(graded)


def test_the_output_must_need_the_kernels() -> None:
    folder = FIXTURES / "vector-add" / "on_the_host"
    graded = grade(folder, context(find_lab("vector-add"), cases=1), quietly)
    assert graded.result.verdict is Verdict.RF
    assert "the host computes it" in shown(graded)
    assert "No advice on speed" not in shown(graded)


@pytest.mark.sampled
def test_hidden_cases_count_and_are_not_shown() -> None:
    graded = grade(FIXTURES / "heat" / "transposed", context(find_lab("heat")), quietly)
    public, hidden = graded.result.groups
    assert (public.right, public.sizes, hidden.right, hidden.sizes) == (1, 3, 0, 1)
    assert graded.result.score
    assert graded.result.score.total == 16.67
    assert {case.id for case in graded.result.cases} == {"one-cell", "a-block", "uneven"}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lab", "want"),
    [
        pytest.param(
            *(lab, want),
            id=want.folder.name,
            marks=[pytest.mark.nightly] if place % 3 else [],
        )
        for place, (lab, want) in enumerate(WRONG)
    ],
)
def test_a_wrong_hand_in(lab: str, want: Fixture) -> None:
    result = grade(want.folder, context(find_lab(lab)), quietly).result
    assert want.cpu.met_by(result), (result.error, result.cases, result.findings)
    if want.finding:
        said = [(each.kind.value, each.file) for each in result.findings]
        assert (want.finding.kind, want.finding.file) in said
    assert result.score
    assert result.score.total < 50


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lab and of one hand-in, with a file that nobody may read or write."""
    place = tmp_path_factory.mktemp("hostile")
    (place / "starters" / "hostile").mkdir(parents=True)
    (place / "results").write_text("secret")
    lab, results = place / "lab.yaml", place / "results"
    lab.write_text(beside(__file__, "hostile/lab.yaml", lab=lab, results=results))
    (place / "mallory").mkdir()
    (place / "mallory" / "hostile.cu").write_text(beside(__file__, "hostile/hostile.cu"))
    return place


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
def test_no_attack_is_accepted(hostile: Path, mode: Mode) -> None:
    """Each prints what is expected. RF: no launch; so the attack itself did not succeed, either."""
    result = grade(hostile / "mallory", context(hostile / "lab.yaml", mode), quietly).result
    said = {case.id: (case.verdict, str(case.message)) for case in result.cases}
    assert result.verdict is Verdict.RF, result.error
    for name in ("nothing", "memory", "trace", "signal", "reads", "writes"):
        assert said[name] == (Verdict.RF, "0 of 1 kernel launch that this lab asks for"), said
    assert said["idle"][0] is Verdict.RF
    assert "the host computes it" in said["idle"][1]
    assert said["descriptors"] == (Verdict.RE, "host code wrote into the channel to its device")
    assert said["forks"][0] is not Verdict.AC, said
    assert said["swells"] == (
        Verdict.RE,
        "the device's memory, or memory that the program shares, takes more than 1024 MiB, "
        "the lab's limit",
    )
    assert "did not write it" in said["links"][1]


def test_what_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a case's input nor anything in the place of the course's files. A solution that is
    not accepted is the lab's fault."""
    tools, asked = context(find_lab("heat")), []

    def refuse(task: object, contents: Mapping[str, bytes], *_: object, **__: object) -> None:
        asked.append(set(contents))
        raise Rejected(Verdict.CE, verbatim("no"))

    monkeypatch.setattr(whole_program, "compile_whole", refuse)
    tools = msgspec.structs.replace(tools, lab=msgspec.structs.replace(tools.lab, sha256="none"))
    assert tools.lab.program
    task = msgspec.structs.replace(tools.lab.program, given={"secret.txt": b""})
    bench = _Bench(task, tools, tmp_path)
    with pytest.raises(Rejected):
        bench.build(dict.fromkeys(("heat.cu", "main.cu/x.cuh", "own.cuh"), b""))
    assert asked == [{"heat.cu", "own.cuh", "main.cu", "heat.h"}]
    with pytest.raises(MachineError, match="the lab's own solution does not compile: no"):
        bench.solution()


TEXTS = values(__file__, "texts.txt")


@pytest.mark.parametrize(("got", "want", "spaces", "tolerance", "says"), TEXTS)
def test_texts_are_compared(
    got: str | None, want: str, spaces: str, tolerance: float | None, says: str
) -> None:
    rules = msgspec.convert({"spaces": spaces, "tolerance": tolerance}, OutputRules)
    assert str(_difference(got, want, rules)) == says


@pytest.mark.gpu
@pytest.mark.skipif(first_gpu_arch() is None, reason="no NVIDIA GPU here")
@pytest.mark.parametrize("lab", MAINS)
def test_programs_run_on_a_gpu(lab: str) -> None:
    tools = context(find_lab(lab))
    tools = msgspec.structs.replace(tools, gpu_arch=first_gpu_arch())
    right = grade(solution(lab), tools, quietly).result
    assert right.verdict is Verdict.AC, (right.error, right.cases, right.findings)
    assert right.environment.device == "gpu"
