"""Sizes that only a GPU times, larger than the memory of the simulator's worker."""

from pathlib import Path

import pytest

from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.judge.pipeline import grade
from grader.labs.lab import Case
from grader.run.protocol import quietly
from grader.run.simulator.device import CpuDevice
from ptxsim.plan import Size
from tests.support.bench import bench, of_lab
from tests.support.commands import hand_in
from tests.support.files import beside

LARGE = Case(id="performance-0", size=Size.of(m=50000, n=50000, k=64))  # C has 10 GB
LAB = of_lab(bench(), cpu=bench().lab.cpu[:2], performance=(LARGE,))


@pytest.mark.parametrize(("index", "verdict"), [("int", Verdict.RE), ("size_t", Verdict.AC)])
def test_an_index_may_not_wrap_at_a_timed_size(
    index: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LAB.lab.limits.memory_mb << 20 < 4 * 50000**2
    folder = hand_in(tmp_path / "eve", beside(__file__, "large_index.cu", index=index))
    result = grade(folder, LAB, quietly).result
    assert result.verdict is verdict, (result.error, result.findings)
    if verdict is Verdict.AC:
        assert not result.findings
    else:
        (found,) = result.findings
        assert found.kind is Kind.OUT_OF_BOUNDS and found.line == 8
        words = "at 50000×50000×64, which a GPU times: global write: block (3124,3124,0)"
        assert str(found.message).startswith(words)
        assert "bytes before the start of the 10000000000-byte allocation C" in str(found.message)

    # The answer is kept with the build, so no launch is looked at twice.
    monkeypatch.delattr(CpuDevice, "probe")
    again = grade(folder, LAB, quietly).result
    assert (again.verdict, again.findings) == (result.verdict, result.findings)
