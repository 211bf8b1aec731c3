"""The GPU's lock, and what the worker is told while the submission is compiled."""

from __future__ import annotations

import json
import re
import select
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from grader.backends.gpu import checks
from grader.backends.gpu.checks import checks_cubin
from grader.backends.gpu.device import GpuDevice
from grader.backends.gpu.gpu_messages import Broken, GpuJob, Measured, Ready
from grader.backends.protocol import CaseOutcome, Done, Failed, PlannedCase, refused
from grader.errors import MachineError, Rejected
from grader.labs.lab import Lab, load_lab
from grader.model import Build, GpuInfo, Message, Record, Verdict, verbatim
from tests.support.product import GEMM_REF
from tests.support.simulating import planned

INFO = GpuInfo(
    name="NVIDIA H200", uuid="GPU-1", driver="1", sm_clock_mhz=1980, memory_bytes=1,
    compute_capability="9.0",
)  # fmt: skip
# Writes down what it is told, and answers each job; without a ``Done`` it ends.
WORKER = """
import sys
answer = sys.argv[2]
with open(sys.argv[1], "a") as log:
    for line in sys.stdin:
        log.write(line)
        log.flush()
        if '"type":"job"' in line:
            print(answer, flush=True)
            answer = answer.splitlines()[-1]
            if '"type":"done"' not in answer:
                break
"""

# The real worker, but for its GPU. For a case it says whether its memory holds the second one.
REAL = """
import re, sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
for name in ("cupy", "cupy.cuda", "cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.api",
             "cupy_backends.cuda.libs", "cupy_backends.cuda.libs.cublas"):
    sys.modules[name] = MagicMock()
import msgspec
from grader.backends.gpu import gpu_worker
from grader.backends.gpu.gpu_messages import Broken, Measured
from grader.backends.protocol import refused
from grader.errors import Rejected
from grader.model import GpuInfo, Verdict

def knows_the_second():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            extent, rights, *_, name = (*line.split(), "")
            if rights.startswith("rw") and not "[v" in name:
                start, end = (int(each, 16) for each in extent.split("-"))
                memory.seek(start)
                if re.search(rb"cpu-[2]", memory.read(end - start)):
                    return True

def one(bench, cubin, each, job, replies):
    if each.case.id == sys.argv[2]:
        return Broken(case=each.case.id, message="broken")
    words = "it is there" if knows_the_second() else "it is not there"
    ran = refused(each.case.id, each.case.plan.size, Rejected(Verdict.RE, words))
    return Measured(outcome=ran)

gpu = msgspec.json.decode(sys.argv[1], type=GpuInfo)
gpu_worker.LoadedAhead = lambda problem: None
gpu_worker.SharedBench = lambda loaded: SimpleNamespace(gpu=gpu)
gpu_worker._one = one
gpu_worker._ERRORS = ()
gpu_worker.main()
"""

CHECKS = Path(checks.__file__).with_name("checks.cu")


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests, and graders on this machine, take locks too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def device(log: Path, *replies: Record) -> GpuDevice:
    answers = b"\n".join(map(msgspec.json.encode, replies)).decode()
    return GpuDevice(GEMM_REF, command=(sys.executable, "-c", WORKER, str(log), answers))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(log: Path) -> list[str]:
    if not log.exists():
        return []
    return [json.loads(line)["type"] for line in log.read_text().splitlines()]


def run(gpu: GpuDevice, build: Build, cases: Sequence[PlannedCase] = ()) -> GpuInfo | None:
    heard: list[GpuInfo] = []
    gpu.run(build, "", cases or [planned(0)], load_lab(), lambda *_: None, heard.append)
    return heard[0] if heard else None


def timed(m: int) -> PlannedCase:
    """The timed size of the default lab, but for its extents."""
    return msgspec.structs.replace(planned(9, m=m), id="performance-0")


VERIFIED = (planned(0), planned(1), planned(2), planned(3))
EVERY = (*VERIFIED, timed(64))


def test_a_free_gpu_is_taken_at_once(tmp_path: Path, build: Build) -> None:
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as gpu:
        assert run(gpu, build) == INFO
        assert told(tmp_path / "first") == ["prepare", "warm", "job"]


def test_who_finds_it_taken_makes_no_context_before_it_is_free(
    tmp_path: Path, build: Build
) -> None:
    with device(tmp_path / "second", Ready(gpu=INFO), Done()) as first:
        with device(tmp_path / "third", Ready(gpu=INFO), Done()) as second:
            waiting = threading.Thread(target=run, args=(second, build))
            waiting.start()
            until(lambda: told(tmp_path / "third") == ["prepare"])
            time.sleep(0.2)
            assert told(tmp_path / "third") == ["prepare"]
            run(first, build)  # which frees the GPU
            waiting.join(60)
            assert not waiting.is_alive()
        assert told(tmp_path / "third") == ["prepare", "warm", "job"]


def test_the_next_verifies_while_a_worker_ends_and_times_nothing_before_it_is_gone(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        end = first._worker.__exit__
        monkeypatch.setattr(first._worker, "__exit__", lambda: (may_end.wait(60), end()))
        with device(tmp_path / "second", Ready(gpu=INFO), Done()) as second:
            waiting = threading.Thread(target=run, args=(second, build, EVERY))
            waiting.start()
            run(first, build)  # does not wait for its worker's end
            until(lambda: told(tmp_path / "second") == ["prepare", "warm", "job"])
            time.sleep(0.2)
            assert told(tmp_path / "second") == ["prepare", "warm", "job"]
            may_end.set()
            waiting.join(60)
            assert told(tmp_path / "second") == ["prepare", "warm", "job", "job", "job"]
    jobs = [line for line in (tmp_path / "second").read_text().splitlines() if '"job"' in line]
    assert [set(re.findall("cpu-[0-9]|performance-[0-9]", job)) for job in jobs] == [
        {"cpu-0"},
        {"performance-0"},
        {"cpu-1", "cpu-2", "cpu-3"},
    ]


def test_the_next_makes_its_context_while_the_last_sizes_are_verified_and_runs_nothing(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_before: list[list[str]] = []
    with (
        device(tmp_path / "first", Ready(gpu=INFO), Done()) as first,
        device(tmp_path / "second", Ready(gpu=INFO), Done()) as second,
    ):
        job_of = first._run

        def slowly(job: GpuJob, *given: Any) -> bool:
            if job.cases[0].case.id == "cpu-1":
                until(lambda: "warm" in told(tmp_path / "second"))
            time.sleep(0.2)
            whole = job_of(job, *given)
            told_before.append(told(tmp_path / "second"))
            return whole

        monkeypatch.setattr(first, "_run", slowly)
        waiting = threading.Thread(target=run, args=(second, build, EVERY))
        waiting.start()
        run(first, build, EVERY)
        waiting.join(60)
    assert told_before == [["prepare"], ["prepare"], ["prepare", "warm"]]


@pytest.mark.parametrize(
    "answers",
    [
        (Failed(message=verbatim("no room for a context")),),
        (Ready(gpu=INFO), Broken(case="cpu-0", message="out of memory")),
        (
            Ready(gpu=INFO),
            Measured(
                outcome=refused("cpu-0", VERIFIED[0].plan.size, Rejected(Verdict.RE, "no room"))
            ),
            Done(),
        ),
    ],
    ids=["context", "launch", "memory"],
)
def test_what_fails_beside_another_worker_is_tried_again_without_one(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, answers: tuple[Record, ...]
) -> None:
    may_end = threading.Event()
    found: list[CaseOutcome] = []
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        end = first._worker.__exit__
        monkeypatch.setattr(first._worker, "__exit__", lambda: (may_end.wait(60), end()))
        with device(tmp_path / "second", *answers) as second:
            log = str(tmp_path / "second")
            again = b"\n".join(map(msgspec.json.encode, (Ready(gpu=INFO), Done()))).decode()
            second._command = (sys.executable, "-c", WORKER, log, again)
            waiting = threading.Thread(
                target=lambda: found.extend(
                    second.run(build, "", EVERY, load_lab(), lambda *_: None)
                )
            )
            waiting.start()
            run(first, build)
            until(lambda: told(tmp_path / "second") == ["prepare", "warm", "job"])
            time.sleep(0.2)
            assert told(tmp_path / "second") == ["prepare", "warm", "job"]
            may_end.set()
            waiting.join(60)
    assert told(tmp_path / "second")[3:] == ["prepare", "warm", "job", "job", "job"]
    assert found == []  # nothing is left of the first try


@pytest.mark.parametrize("last", [Failed(message=verbatim("no room")), None], ids=["fails", "dies"])
def test_after_a_worker_that_failed_no_context_is_made_before_it_is_gone(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, last: Record | None
) -> None:
    replies = (Ready(gpu=INFO), *([last] if last else []))
    with device(tmp_path / "first", *replies) as first:
        end = first._worker.__exit__
        with device(tmp_path / "second", Ready(gpu=INFO), Done()) as second:
            seen: list[list[str]] = []
            monkeypatch.setattr(
                first._worker,
                "__exit__",
                lambda: (time.sleep(0.2), seen.append(told(tmp_path / "second")), end()),
            )
            waiting = threading.Thread(target=run, args=(second, build))
            waiting.start()
            until(lambda: told(tmp_path / "second") == ["prepare"])
            with pytest.raises(MachineError):
                run(first, build)
            waiting.join(60)
            assert seen[0] == ["prepare"]
            assert told(tmp_path / "second") == ["prepare", "warm", "job"]


def test_a_grading_that_ends_early_frees_the_gpu(tmp_path: Path, build: Build) -> None:
    with device(tmp_path / "first"):
        pass  # it did not compile
    with device(tmp_path / "second", Ready(gpu=INFO), Done()) as gpu:
        run(gpu, build)
    assert told(tmp_path / "second") == ["prepare", "warm", "job"]


def real_worker(breaks_at: str = "") -> GpuDevice:
    info = msgspec.json.encode(INFO).decode()
    words = (sys.executable, "-c", REAL, info, breaks_at)
    return GpuDevice(GEMM_REF, command=words)


def ran(gpu: GpuDevice, build: Build, heard: list[str], lab: Lab | None = None) -> list[str]:
    def told(_stage: Message, detail: Message) -> None:
        heard.append(str(detail))

    found = gpu.run(
        build, "", [planned(0)], lab or load_lab(), told, lambda _: None, later=[planned(2, m=6)]
    )
    return [f"{each.id}: {each.message}" for each in found]


def test_while_public_sizes_run_the_plans_of_hidden_ones_are_nowhere_in_the_worker(
    build: Build,
) -> None:
    heard: list[str] = []
    with real_worker() as gpu:
        assert ran(gpu, build, heard) == ["cpu-0: it is not there", "cpu-2: it is there"]
    assert gpu.gpu == INFO and heard == ["5×7×3", "6×7×3", "6×7×3"]


def test_a_context_is_made_ahead() -> None:
    with real_worker() as gpu:
        ready, _, _ = select.select([gpu._worker._process.stdout], [], [], 60)
        assert ready


def test_a_gpu_that_admits_one_process_has_no_other_context_before_the_worker_is_gone(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.backends.gpu.device.admits_one_process", lambda: True)
    may_end = threading.Event()
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        end = first._worker.__exit__
        monkeypatch.setattr(first._worker, "__exit__", lambda: (may_end.wait(60), end()))
        with device(tmp_path / "second", Ready(gpu=INFO), Done()) as second:
            waiting = threading.Thread(target=run, args=(second, build))
            waiting.start()
            run(first, build)
            time.sleep(0.2)
            assert told(tmp_path / "second") == ["prepare"]
            may_end.set()
            waiting.join(60)
            assert told(tmp_path / "second") == ["prepare", "warm", "job"]


def test_nothing_runs_in_a_broken_context(build: Build) -> None:
    heard: list[str] = []
    with real_worker(breaks_at="cpu-0") as gpu:
        assert ran(gpu, build, heard) == ["cpu-0: broken"]
    assert heard == ["5×7×3"]


def test_a_timed_size_that_ends_the_worker_does_not_keep_smaller_ones_from_running(
    build: Build,
) -> None:
    lab = load_lab()
    heard: list[str] = []
    began: list[GpuInfo] = []
    with real_worker(breaks_at="performance-0") as gpu:
        found = gpu.run(
            build, "", EVERY, lab, lambda _, size: heard.append(str(size)), began.append
        )
    assert [each.id for each in found] == [each.id for each in EVERY]
    assert [each.stopped for each in found] == [None, None, None, None, "crash"]
    assert heard == ["5×7×3", "64×7×3", "5×7×3", "5×7×3", "5×7×3"]
    assert began == [INFO]  # once


def test_a_size_that_ends_the_worker_keeps_larger_ones_from_running(build: Build) -> None:
    reached = {"cpu-0": ["cpu-0"], "cpu-1": ["cpu-0", "cpu-1", "performance-0"]}
    for breaks, expected in reached.items():
        with real_worker(breaks_at=breaks) as gpu:
            found = gpu.run(build, "", EVERY, load_lab(), lambda *_: None)
        assert [each.id for each in found] == expected


def test_all_sizes_share_the_time(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time is left for the second job, which then has not even begun."""
    lab = load_lab()
    clock = iter([0.0, 0.0, 0.0, 0.0])
    monkeypatch.setattr(
        "grader.backends.gpu.device.time", SimpleNamespace(monotonic=lambda: next(clock, 1e6))
    )
    with real_worker() as gpu:
        last = ran(gpu, build, [], lab)[-1]
    assert last == f"cpu-2: the {lab.limits.total_s:g} s for all sizes together are used up"


def test_an_answer_about_another_case_is_the_workers_fault(tmp_path: Path, build: Build) -> None:
    for name, m in (("cpu-1", 5), ("cpu-0", 6)):
        other = refused(name, planned(0, m=m).plan.size, Rejected(Verdict.RE, verbatim("no")))
        answers = (Ready(gpu=INFO), Measured(outcome=other), Done())
        with (
            device(tmp_path / name, *answers) as gpu,
            pytest.raises(MachineError, match="is of no case"),
        ):
            run(gpu, build)


def test_what_fails_in_warming_up_is_said_when_the_job_comes(tmp_path: Path, build: Build) -> None:
    with (
        device(tmp_path / "log", Failed(message=verbatim("the GPU failed: no room"))) as gpu,
        pytest.raises(MachineError, match=r"^the GPU failed: no room$"),
    ):
        run(gpu, build)


def test_the_checks_are_compiled_once_for_an_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGEMM_GRADER_CACHE", str(tmp_path / "cache"))
    cubin = checks_cubin("sm_90", CHECKS)
    content, made = cubin.read_bytes(), cubin.stat().st_mtime_ns
    assert content.startswith(b"\x7fELF")
    assert all(f".text.{name}".encode() in content for name in ("fill", "changed", "head_start"))
    assert (checks_cubin("sm_90", CHECKS), cubin.stat().st_mtime_ns) == (cubin, made)
