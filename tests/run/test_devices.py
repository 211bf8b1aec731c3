"""The simulator's worker process: what it answers, and what is said when it cannot.

Misbehaving simulators are injected through the worker's command; the rest of the process, its
pipes, limits and end, is the real one.
"""

import ast
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from grader.base.errors import MachineError
from grader.base.finding import Kind
from grader.base.language import language
from grader.base.records import Verdict
from grader.build.building import Build
from grader.record.refusals import REFUSALS
from grader.results import store
from grader.run.gpu.device import GpuDevice
from grader.run.process import Silence, WorkerProcess
from grader.run.simulator.device import CpuDevice
from grader.run.simulator.simulated_calls import rejected
from grader.sandbox.running import Sandbox
from ptxsim import Reason, RefusedProgram
from ptxsim import findings as simulator
from ptxsim.findings import Access, Accessed, Event, Finding, Overlap, Severity, sentence
from ptxsim.findings.event_table import DETAILS
from ptxsim.lowering.memory_layout import too_large
from ptxsim.plan import POISONS, Place
from ptxsim.text import phrase
from tests.support.bench import lab, misbehaving, planned, run
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, table
from tests.support.product import GEMM_REF
from tests.support.results import RACE, make_result


def test_outcomes_come_in_the_order_of_the_cases(build: Build) -> None:
    heard: list[str] = []
    outcomes = run(
        misbehaving("time.sleep(0.3 if size['m'] == 5 else 0); right(size, a, b, c)"),
        build,
        [planned(0), planned(1, m=6), planned(2, m=6)],
        lambda stage, words: heard.append(str(words or stage)),
    )
    assert [outcome.id for outcome in outcomes] == ["cpu-0", "cpu-1", "cpu-2"]
    assert heard[-1] == "simulating: 3 of 3 sizes done"
    for outcome in outcomes:
        assert outcome.error is not None and outcome.error.wrong == 0
        assert outcome.findings == () and str(outcome.message) == "" and outcome.printed == "hello"


@pytest.mark.parametrize("turns", [[2], [3, 2, 1]], ids=["a case alone", "three cases"])
def test_both_orders_run_and_undefined_memory_differs(turns: list[int], build: Build) -> None:
    body = "printed = f'{turn} {c.view(np.uint32)[0]}'; right(size, a, b, c); "
    body += "c[0] = np.nan if turn == 2 else c[0]"
    outcomes = run(misbehaving(body), build, [planned(i) for i in range(len(turns))])
    assert [each.printed for each in outcomes] == [f"{n} {POISONS[n % 3]}" for n in turns]
    assert [bool(each.message) for each in outcomes] == [turn == 2 for turn in turns]
    assert all(each.findings == () for each in outcomes)


def test_c_starts_poisoned_and_a_wrong_c_is_located(build: Build) -> None:
    (outcome,) = run(misbehaving(), build, [planned(0)])
    assert "still NaN: never written" in str(outcome.message)
    (outcome,) = run(misbehaving("right(size, a, b, c); c[6] = 0"), build, [planned(0)])
    assert outcome.error is not None and outcome.error.first_mismatch is not None
    assert outcome.error.first_mismatch.index == (1, 1)


def test_changed_inputs_are_a_finding_with_their_place(build: Build) -> None:
    body = "right(size, a, b, c); a[3 * 2 + 1] = 9; b[3 * 4 + 2] = -b[3 * 4 + 2]"
    (outcome,) = run(misbehaving(body), build, [planned(0)])
    assert outcome.error is not None and outcome.error.wrong == 0
    assert [finding.kind for finding in outcome.findings] == ["input-modified"] * 2
    assert str(outcome.findings[0].message).startswith(
        "A[row 2, column 1] was overwritten; A and B"
    )
    assert str(outcome.findings[1].message).startswith(
        "B[row 2, column 4] was overwritten; A and B"
    )


def test_after_one_that_is_too_slow_the_others_are_not_run(build: Build) -> None:
    cases = [planned(i, m=5 if i == 1 else 6) for i in range(6)]
    body = "stopped = 'time' if size['m'] == 5 else time.sleep(0.2)"
    outcomes = run(misbehaving(body), build, cases)
    assert [outcome.id for outcome in outcomes][:2] == ["cpu-0", "cpu-1"]
    assert outcomes[1].stopped == "time" and outcomes[1].error is None
    assert "cpu-5" not in [outcome.id for outcome in outcomes]


def test_the_time_for_all_cases_is_shared(build: Build) -> None:
    outcomes = run(
        misbehaving("burn(min(0.4, limits.seconds))"),
        build,
        [planned(i) for i in range(8)],
        total_s=0.6,
    )
    assert 1 <= len(outcomes) < 8


def test_a_refusal_is_the_cases_outcome(build: Build) -> None:
    body = "raise RefusedProgram(Reason.UNSOUND, 'no such kernel')"
    (outcome,) = run(misbehaving(body), build, [planned(0)])
    assert (outcome.verdict, str(outcome.message)) == (Verdict.RE, "no such kernel")


FAILURES = {
    "crash": (
        misbehaving("__import__('ctypes').string_at(0)"),
        r"5×7×3: the simulator process ended unexpectedly \(SIGSEGV\)",
    ),
    "exit": (misbehaving("os._exit(7)"), r"^5×7×3: .*\(exit status 7\)"),
    "exception": (misbehaving("1 / 0"), r"^5×7×3: .*exit status 1\): ZeroDivisionError"),
    "no worker": ((sys.executable, "-c", "raise SystemExit('no room')"), "exit status 1.*no room"),
    "not prepared": (
        misbehaving(arguments="Fake, lambda: (_ for _ in ()).throw(ToolchainError('no g++'))"),
        "^no g\\+\\+$",
    ),
    "nonsense": (
        (sys.executable, "-c", "print('gibberish', flush=True); input()"),
        "the simulator's answer cannot be read",
    ),
}


def test_a_program_that_takes_all_memory_is_at_fault_itself(build: Build) -> None:
    (outcome,) = run(misbehaving("np.ones(1 << 31)"), build, [planned(0)], memory_mb=2048)
    assert (outcome.verdict, outcome.error) == (Verdict.RE, None)
    assert "more memory than the lab's 2048 MB: allocate less" in str(outcome.message)
    with pytest.raises(MachineError, match=r"raise limits\.memory_mb in the lab file"):
        run(misbehaving("np.ones(1 << 31)"), build, [planned(0)], memory_mb=500)


@pytest.mark.parametrize(("command", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failing_worker_is_the_machines_fault_in_one_line(
    command: Sequence[str], words: str, build: Build
) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        run(command, build, [planned(0)], memory_mb=2048)
    assert "\n" not in str(caught.value)


SAYS = 'import sys, time; print(sys.stdin.readline(), end="", flush=True); time.sleep(600)'


@pytest.mark.parametrize(("seconds", "patience", "at_all"), [(0.4, 300, True), (300, 0.4, False)])
def test_which_limit_a_silent_worker_exceeded(
    seconds: float, patience: float, at_all: bool
) -> None:
    with WorkerProcess((sys.executable, "-c", SAYS)) as worker:
        with pytest.raises(Silence) as silence:
            list(worker.ask(b"a line", seconds=seconds, patience=lambda: patience))
        assert silence.value.at_all is at_all


BREAKS = beside(__file__, "breaks.py.in")


def test_a_broken_context_is_evidence_for_the_judge(build: Build) -> None:
    heard: list[str] = []
    with GpuDevice(GEMM_REF, command=(sys.executable, "-c", BREAKS)) as device:
        (outcome,) = device.run(
            build, "", [planned(0), planned(1)], lab(), lambda _, words: heard.append(str(words))
        )
    assert heard == ["running 5×7×3 on the GPU"]
    assert (outcome.id, outcome.stopped, outcome.verdict) == ("cpu-1", "crash", None)
    assert str(outcome.message) == "cudaErrorIllegalAddress"


def test_leaving_kills_the_worker_and_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = beside(__file__, "parent.py.in", pids=repr(str(pids)))
    with (
        pytest.raises(KeyboardInterrupt),
        CpuDevice(Sandbox.open("off"), lab().limits, command=(sys.executable, "-c", script)),
    ):
        while not (pids.exists() and pids.read_text().endswith("\n")):
            time.sleep(0.02)
        raise KeyboardInterrupt
    for pid in map(int, pids.read_text().split()):
        assert ends(pid)


def test_a_worker_whose_grader_was_killed_ends() -> None:
    grader = beside(__file__, "waiting_grader.py.in")
    with subprocess.Popen(
        [sys.executable, "-c", grader], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    assert ends(pid)


def ends(pid: int) -> bool:
    """Whether the process is gone within ten seconds, or a zombie that nobody has collected yet."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


ROOT = Path(__file__).parents[2]
THREAD = (1, 0, 0)


def named(files: Iterable[Path]) -> set[str]:
    """Members of an enum ``Kind`` that the code of these files names."""
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) in ("Kind", "base.Kind", "FindingKind")
    }


def test_its_reasons_are_in_the_catalogues() -> None:
    assert_chinese(language("zh_CN")(rejected(too_large("gemm", phrase("predicates"))).message))


@pytest.mark.parametrize(("reason", "verdict", "words"), table(__file__, "rejected.txt"))
def test_the_grader_words_what_the_simulator_rejects(reason: str, verdict: str, words: str) -> None:
    refusal = RefusedProgram(Reason[reason], "why {}", (), Place(file="sgemm.cu", line=7))
    ruled = rejected(refusal)
    assert str(refusal) == "why {} (sgemm.cu:7)"
    assert (
        ruled.verdict is Verdict[verdict]
        and str(ruled).startswith(words)
        and "why {}" in str(ruled)
    )
    assert [(f.file, f.line) for f in ruled.findings] == (
        [("sgemm.cu", 7)] if reason == Reason.ASSEMBLY.name else []
    )


def test_every_kind_of_the_simulator_is_made_somewhere() -> None:
    made = named((ROOT / "ptxsim" / "src").rglob("*.py")) | {event.kind.name for event in Event}
    assert made == set(simulator.FindingKind.__members__)


def test_every_kind_of_the_grader_is_made_somewhere() -> None:
    own = set(Kind.__members__) - set(simulator.FindingKind.__members__)
    refusals = {refusal.kind.name for refusal in REFUSALS}
    execution = "".join(
        file.read_text() for file in (ROOT / "ptxsim/src/ptxsim/execution").glob("*.py")
    )
    of_programs = {name for name in own if f'"{Kind[name].value}"' in execution}
    assert own <= named((ROOT / "grader").rglob("*.py")) | refusals | of_programs
    assert {kind.value for kind in simulator.FindingKind} == {
        kind.value for name, kind in Kind.__members__.items() if name not in own
    }


@pytest.mark.parametrize("event", Event)
def test_every_event_has_a_sentence(event: Event) -> None:
    record = DETAILS.get(event)
    found = Finding(
        kind=event.kind,
        severity=Severity.ERROR,
        place=Place(file="sgemm.cu", line=12),
        event=event,
        here=Place(file="sgemm.cu", line=12),
        there=Place(file="tile.cuh", line=3),
        block=(0, 0, 0),
        thread=THREAD,
        other_block=(0, 0, 0),
        other_thread=(2, 0, 0),
        access=Access(
            space="shared",
            address=132,
            size=4,
            write=True,
            accessed=Accessed(name="tile", start=0, size=128, element=4),
        ),
        overlap=Overlap(
            overwritten="As", written="Bs", first="As", later="Bs", offset=1024, element=4
        ),
        detail=record and record(**dict.fromkeys(record.__struct_fields__, 3)),
    )
    said = str(sentence(found))
    assert "thread (1,0,0)" in said or "block (0,0,0)" in said
    assert "line 12" in said or "sgemm.cu:12" in said or "tile[33]" in said


def test_documents_hold_the_words_that_they_always_held(tmp_path: Path) -> None:
    path = store.save(tmp_path, make_result(findings=(RACE,)))
    assert '"kind": "race"' in path.read_text()
    assert store.load(path).findings == (RACE,)
