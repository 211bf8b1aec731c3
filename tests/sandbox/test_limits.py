"""Limits count work, not waiting: nobody is at fault for a machine that is busy.

The load is made on one core, to which the grader is pinned meanwhile: four processes there do what
four times as many as cores do on the whole machine.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from grader.base.errors import MachineError, Rejected
from grader.base.records import Verdict
from grader.build.building import Build
from grader.build.toolchain import find_toolchain
from grader.judge.pipeline import grade
from grader.labs.lab import Case
from grader.labs.shape import Limits
from grader.labs.submission import load_submission
from grader.record.recording import record_plans
from grader.run.protocol import quietly
from grader.sandbox.running import Completed, ProcessLimits, Sandbox
from ptxsim.plan import Plan, Size
from tests.support.bench import bench, built, limited, of_lab, read_declarations
from tests.support.commands import hand_in
from tests.support.files import beside
from tests.support.places import HONEST
from tests.support.product import GEMM, MAIN

BUSY = 4  # processes for each core
BURN = "import time\nwhile time.process_time() < {}: pass"


@pytest.fixture
def busy_core() -> Iterator[None]:
    """This process and what it starts share one core with others that never rest."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with ExitStack() as stack:
            for _ in range(BUSY):
                process = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
                stack.callback(process.wait)
                stack.callback(process.kill)
            yield
    finally:
        os.sched_setaffinity(0, before)


def python(program: str, folder: Path, cpu_s: float, mode: str = "off") -> Completed:
    sandbox = Sandbox.open(mode)
    limits = ProcessLimits(cpu_s=cpu_s)
    command = [sys.executable, "-S", "-c", program]
    readable = [Path(sys.prefix), Path(sys.base_prefix), folder]
    return sandbox.run(command, cwd=folder, limits=limits, readable=readable)


@pytest.mark.sampled
def test_waiting_for_a_core_is_free(tmp_path: Path, busy_core: None) -> None:
    for _ in range(5):
        done = python(BURN.format(0.5), tmp_path, cpu_s=0.7)
        assert done.ok
        if done.seconds > 0.8:  # the core was busy enough to say anything
            break
    assert done.seconds > 0.8
    late = python(BURN.format(60), tmp_path, cpu_s=0.3)
    assert late.timed_out and not late.starved


def test_what_sleeps_is_charged_as_if_it_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each nap may end in a wait for a busy core, which is free: the wall clock leaves room for it.
    monkeypatch.setattr("grader.sandbox.meter.PATIENCE", 100)
    for program in ("time.sleep(60)", "while True: time.sleep(0.001)"):
        done = python(f"import time\n{program}", tmp_path, cpu_s=0.4)
        assert done.timed_out and not done.starved


def test_all_processes_are_charged_the_dead_ones_too(tmp_path: Path) -> None:
    burn = BURN.format(0.1)
    program = (
        f"import os\nwhile True:\n  if not os.fork():\n    exec({burn!r}); os._exit(0)\n  os.wait()"
    )
    for mode in ("off", "auto"):
        done = python(program, tmp_path, cpu_s=0.6, mode=mode)
        assert done.timed_out and 0.6 < done.charged < 3


def test_a_machine_that_gives_no_time_is_told_from_a_program_that_takes_too_much(
    tmp_path: Path, busy_core: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.sandbox.meter.PATIENCE", 1)
    done = python(BURN.format(60), tmp_path, cpu_s=0.8)
    assert done.starved and not done.timed_out and not done.ok and not done.killed
    assert done.charged < 0.8


def test_a_compiler_without_time_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.sandbox.meter.PATIENCE", 0.01)
    runs: list[Completed] = []
    run = Sandbox.run

    def counted(*given: object, **named: object) -> Completed:
        runs.append(run(*given, **named))
        return runs[-1]

    monkeypatch.setattr(Sandbox, "run", counted)
    with pytest.raises(MachineError, match="the machine was too busy to give the compiler"):
        compiled((HONEST / "sgemm.cu").read_text() + f"// {time.time_ns()}\n", tmp_path, 20)
    assert [each.starved for each in runs] == [True, True]


def compiled(text: str, place: Path, compile_s: float = 20) -> Build:
    return built(hand_in(place / "eve", text), compile_s=compile_s)


@pytest.mark.sampled
def test_a_compiler_that_the_source_puts_to_sleep_is_the_sources_fault(tmp_path: Path) -> None:
    """It reads its own output, where nothing ever comes."""
    with pytest.raises(Rejected, match="longer than 2 s of CPU time") as caught:
        compiled('#include "/proc/self/fd/2"\n', tmp_path, compile_s=2)
    assert caught.value.verdict is Verdict.CE


HOST_CODE = """
  timespec now{};
  if (m == 1) while (now.tv_nsec < 200000000) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  if (m == 2) sleep(60);
  if (m == 3) for (;;);
  if (m == 4) for (;;) usleep(1000);
"""
WORKS, SLEEPS, NEVER_ENDS, NAPS = 1, 2, 3, 4
Recorder = Callable[[int, float], Plan | Rejected]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Records a call whose M says what host code does before it launches."""
    place = tmp_path_factory.mktemp("host")
    head, name, tail = (HONEST / "sgemm.cu").read_text().rpartition("run_custom")
    start = tail.index("{") + 1
    text = f"#include <unistd.h>\n{head}{name}{tail[:start]}{HOST_CODE}{tail[start:]}"
    build, sandbox = compiled(text, place), Sandbox.open()
    declared = read_declarations(build, str(place / "eve"), sandbox)

    def recorded(kind: int, record_s: float) -> Plan | Rejected:
        submission, sizes = load_submission(place / "eve", MAIN), [Size.of(m=kind, n=8, k=8)]
        given = (build, submission, GEMM, sizes, find_toolchain(), sandbox)
        limits = Limits(record_s=record_s, memory_mb=2048)
        (outcome,) = record_plans(*given, declared=declared, limits=limits)
        return outcome

    return recorded


@pytest.mark.sampled
def test_host_code_is_charged_for_sleep_and_work_but_not_for_others(
    host: Recorder, busy_core: None
) -> None:
    assert isinstance(host(WORKS, 0.5), Plan)
    for kind in (SLEEPS, NEVER_ENDS, NAPS):
        outcome = host(kind, 0.5)
        assert isinstance(outcome, Rejected) and outcome.verdict is Verdict.TLE, (kind, outcome)


@pytest.mark.sampled
def test_host_code_without_time_is_the_machines_fault(
    host: Recorder, busy_core: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.record.recording.PATIENCE", 1)
    with pytest.raises(MachineError, match=r"too busy to give host code its 0\.8 s of CPU time"):
        host(NEVER_ENDS, 0.8)


@pytest.mark.slow
def test_a_busy_machine_costs_nobody_a_verdict(tmp_path: Path, busy_core: None) -> None:
    honest = (HONEST / "sgemm.cu").read_text()
    case = Case(id="cpu-0", size=Size.of(m=9, n=17, k=33))
    tools = limited(
        of_lab(bench(), cpu=(case,)), compile_s=8, record_s=0.5, simulate_s=1, memory_mb=2048
    )
    endless = honest.replace("float sum = 0.0f;", "float sum = 0.0f; while (k > 0) sum += A[0];")
    assert endless != honest
    expected = {honest: (Verdict.AC, Verdict.IE), endless: (Verdict.TLE, Verdict.IE)}
    for text, verdicts in expected.items():
        folder = hand_in(tmp_path / "eve", f"{text}\n// {time.time_ns()}\n")
        result = grade(folder, tools, quietly).result
        assert result.verdict in verdicts, (result.error, result.cases)


def test_limits_of_the_shell_below_ours_hold_instead() -> None:
    for mode in ("off", "auto"):
        program = beside(__file__, "low_limits.py.in", mode=repr(mode))
        command = [sys.executable, "-c", program]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said.split() == ["200", "200", str(3 << 20), "0"], said
