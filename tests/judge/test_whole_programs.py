"""Labs that ask for a whole program: verdicts, and programs that try to get one unearned."""

from pathlib import Path

import msgspec
import pytest

from grader.base.records import Verdict
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import find_lab, load_lab
from grader.run.protocol import quietly
from grader.sandbox.running import Mode, Sandbox
from tests.support.bench import bench
from tests.support.corpus import Fixture, fixtures
from tests.support.files import beside
from tests.support.places import ROOT

MAINS = {"vector-add": "add.cu", "heat": "heat.cu"}
WRONG = [(lab, each) for lab, main in MAINS.items() for each in fixtures(lab, main)]


def context(lab: Path, mode: Mode = "auto") -> GradingContext:
    return msgspec.structs.replace(bench(), lab=load_lab(lab), sandbox=Sandbox.open(mode))


@pytest.mark.parametrize("lab", MAINS)
def test_the_solution_is_accepted(lab: str) -> None:
    (rung,) = (ROOT / "reference" / lab).iterdir()
    result = grade(rung, context(find_lab(lab)), quietly).result
    assert result.verdict is Verdict.AC, (result.error, result.cases, result.findings)
    assert result.score and result.score.total == 100
    assert [group.right for group in result.groups] == [3, 1]


@pytest.mark.parametrize(("lab", "want"), WRONG, ids=lambda each: getattr(each, "folder", each))
def test_a_wrong_hand_in(lab: str, want: Fixture) -> None:
    result = grade(want.folder, context(find_lab(lab)), quietly).result
    assert want.cpu.met_by(result), (result.error, result.cases, result.findings)
    if want.finding:
        said = [(each.kind.value, each.file) for each in result.findings]
        assert (want.finding.kind, want.finding.file) in said
    assert result.score and result.score.total < 50


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


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
def test_no_attack_is_accepted(hostile: Path, mode: Mode) -> None:
    """Each prints what is expected. RF: no launch; so the attack itself did not succeed, either."""
    result = grade(hostile / "mallory", context(hostile / "lab.yaml", mode), quietly).result
    said = {case.id: (case.verdict, str(case.message)) for case in result.cases}
    assert result.verdict is not Verdict.AC
    for name in ("nothing", "memory", "trace", "signal", "reads", "writes"):
        assert said[name] == (Verdict.RF, "0 of 1 kernel launch that this lab asks for"), said
    assert said["idle"][0] is Verdict.RF
    assert "the host computes it" in said["idle"][1]
    assert said["descriptors"][0] is Verdict.RE, said
    assert said["forks"][0] is not Verdict.AC, said
    assert "did not write it" in said["links"][1]
