"""Nsight Compute's table read; what is said where it cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grader.base.errors import MachineError
from grader.cli.entry import main
from grader.explain import profiler
from grader.explain.comparison import compare, total
from grader.run.gpu.messages import Watching
from grader.run.probe import gpu_names
from ptxsim.records import Plan, Size
from tests.support.explained import counts
from tests.support.files import values
from tests.support.places import ALICE
from tests.support.product import GEMM_REF

TABLE = """\
==PROF== Connected to process 12 (/usr/bin/python3)
==PROF== Profiling "sgemm" - 0: 0%....100% - 3 passes
==PROF== Disconnected from process 12
"ID","Process ID","Kernel Name","smsp__inst_executed.sum","gpu__time_duration.sum","other"
"","","","inst","ns",""
"0","12","{name}","{instructions}","1,000","x"
"1","12","{name}","{instructions}","2,000.5","x"
"""
PLAN = Plan(size=Size.of(m=1, n=1, k=1), allocations=(), operations=())
JOB = Watching(problem=GEMM_REF, cubin="/some/cubin", plan=PLAN)


def fake_ncu(folder: Path, script: str) -> None:
    path = folder / "ncu"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)


def test_ncus_table_is_read_and_summed() -> None:
    seen = profiler.read(TABLE.format(name="_Z1k", instructions="4,096"))

    assert [each.kernel for each in seen] == ["_Z1k", "_Z1k"]
    assert seen[1].metrics == {"smsp__inst_executed.sum": 4096, "gpu__time_duration.sum": 2000.5}
    assert total(seen)["gpu__time_duration.sum"] == 3000.5


def test_our_counts_stand_beside_ncus() -> None:
    (kernel,) = counts(ALICE, "sm_90", 256)
    compared = compare(kernel, {"smsp__inst_executed.sum": kernel.instructions / 1.01})

    assert str(compared[0].quantity) == "instructions"
    assert compared[0].apart == pytest.approx(0.01)
    assert compared[1].theirs is None and compared[1].apart is None
    assert compared[1].ours == 256**3


def test_ncu_is_run_with_the_plan_and_only_with_metrics_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "arguments"
    table = TABLE.format(name="_Z1k", instructions="7")
    fake_ncu(
        tmp_path,
        "import os, sys\n"
        "if '--query-metrics' in sys.argv:\n"
        "    print('smsp__inst_executed  Counter  inst  # of warp instructions')\n"
        "else:\n"
        f"    open({str(log)!r}, 'w').write(chr(10).join([os.getcwd(), *sys.argv[1:]]))\n"
        f"    print({table!r})\n",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    seen = profiler.profile([JOB], ["_Z1k"], seconds=30)

    given = log.read_text().split("\n")
    assert seen[0].metrics["smsp__inst_executed.sum"] == 7
    assert given[given.index("--metrics") + 1] == "smsp__inst_executed.sum"
    assert given[given.index("--kernel-name") + 1] == "regex:^(_Z1k)$"
    assert given[given.index("--clock-control") + 1] == "none"
    assert (Path(given[0]) / "grader").is_dir(), "-m would find modules in a student's folder"
    assert given[given.index("--profile-from-start") + 1] == "no", "the set-up is not profiled"


@pytest.mark.parametrize(("script", "words"), values(__file__, "no_ncu.txt"))
def test_why_ncu_gives_nothing_is_said_in_one_line(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    with pytest.raises(MachineError, match=words):
        profiler.profile([JOB], ["k"], seconds=30)


@pytest.mark.skipif(bool(gpu_names()), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(ALICE)]) == 3
    assert "no NVIDIA GPU here" in capsys.readouterr().err


def test_without_ncu_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "_PLACES", ())

    with pytest.raises(MachineError, match="no ncu on PATH: install Nsight Compute"):
        profiler.find_ncu()
