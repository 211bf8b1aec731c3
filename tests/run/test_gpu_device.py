"""The GPU's lock, and what the worker is told while the submission is compiled."""

import json
import re
import select
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from grader.base.errors import MachineError, Rejected
from grader.base.records import Verdict
from grader.base.result import Build, GpuInfo
from grader.labs.lab import load_lab
from grader.run.gpu import messages as checks
from grader.run.gpu.device import GpuDevice, in_stages
from grader.run.gpu.messages import Broken, GpuJob, Measured, Ready, checks_cubin
from grader.run.protocol import CaseOutcome, Done, Failed, PlannedCase, quietly
from ptxsim.plan import Allocation, Record
from ptxsim.text import verbatim
from tests.support.bench import planned
from tests.support.commands import until
from tests.support.files import beside
from tests.support.pages import H200 as INFO
from tests.support.product import GEMM_REF

CHECKS = Path(checks.__file__).with_name("checks.cu")


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests, and graders on this machine, take locks too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def device(log: Path, *replies: Record) -> GpuDevice:
    answers = b"\n".join(map(msgspec.json.encode, replies)).decode()
    program = beside(__file__, "noting_worker.py.in", log=repr(str(log)), answer=repr(answers))
    return GpuDevice(GEMM_REF, command=(sys.executable, "-c", program))


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
    return named("performance-0", m)


def named(name: str, m: int) -> PlannedCase:
    made = planned(9, m=m)
    return msgspec.structs.replace(made, case=msgspec.structs.replace(made.case, id=name))


VERIFIED = (planned(0), planned(1), planned(2), planned(3))
EVERY = (*VERIFIED, timed(64))


def started(gpu: GpuDevice, build: Build, cases: Sequence[PlannedCase] = ()) -> threading.Thread:
    thread = threading.Thread(target=run, args=(gpu, build, cases))
    thread.start()
    return thread


def ends_late(gpu: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The event that the end of its worker waits for."""
    may_end, end = threading.Event(), gpu._worker.__exit__
    monkeypatch.setattr(gpu._worker, "__exit__", lambda: (may_end.wait(60), end()))
    return may_end


def told_no_more_than(log: Path, *expected: str) -> None:
    until(lambda: told(log) == [*expected])
    time.sleep(0.2)
    assert told(log) == [*expected]


def test_who_finds_it_taken_makes_no_context_before_it_is_free(
    tmp_path: Path, build: Build
) -> None:
    with device(tmp_path / "second", Ready(gpu=INFO), Done()) as first:
        with device(tmp_path / "third", Ready(gpu=INFO), Done()) as second:
            waiting = started(second, build)
            told_no_more_than(tmp_path / "third", "prepare")
            run(first, build)  # which frees the GPU
            waiting.join(60)
            assert not waiting.is_alive()
        assert told(tmp_path / "third") == ["prepare", "warm", "job"]


def test_the_next_verifies_while_a_worker_ends_and_times_nothing_before_it_is_gone(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "second"
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        may_end = ends_late(first, monkeypatch)
        with device(log, Ready(gpu=INFO), Done()) as second:
            waiting = started(second, build, EVERY)
            run(first, build)  # does not wait for its worker's end
            told_no_more_than(log, "prepare", "warm", "job")
            may_end.set()
            waiting.join(60)
            assert told(log) == ["prepare", "warm", "job", "job", "job"]
    jobs = [line for line in log.read_text().splitlines() if '"job"' in line]
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
            if job.cases[0].id == "cpu-1":
                until(lambda: "warm" in told(tmp_path / "second"))
            time.sleep(0.2)
            whole = job_of(job, *given)
            told_before.append(told(tmp_path / "second"))
            return whole

        monkeypatch.setattr(first, "_run", slowly)
        waiting = started(second, build, EVERY)
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
            Measured(outcome=planned(0).case.refused(Rejected(Verdict.RE, "no room"))),
            Done(),
        ),
    ],
    ids=["context", "launch", "memory"],
)
def test_what_fails_beside_another_worker_is_tried_again_without_one(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, answers: tuple[Record, ...]
) -> None:
    found: list[CaseOutcome] = []
    log = tmp_path / "second"
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        may_end = ends_late(first, monkeypatch)
        with device(log, *answers) as second:
            second._command = device(log, Ready(gpu=INFO), Done())._command
            waiting = threading.Thread(
                target=lambda: found.extend(second.run(build, "", EVERY, load_lab(), quietly))
            )
            waiting.start()
            run(first, build)
            told_no_more_than(log, "prepare", "warm", "job")
            may_end.set()
            waiting.join(60)
    assert told(log)[3:] == ["prepare", "warm", "job", "job", "job"]
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
            waiting = started(second, build)
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
        assert run(gpu, build) == INFO
    assert told(tmp_path / "second") == ["prepare", "warm", "job"]


def real_worker(breaks_at: str = "") -> GpuDevice:
    holes = {"info": msgspec.json.encode(INFO), "breaks_at": repr(breaks_at)}
    program = beside(__file__, "real_worker.py.in", **holes)
    return GpuDevice(GEMM_REF, command=(sys.executable, "-c", program))


def test_a_successor_has_a_process_of_its_own(build: Build) -> None:
    """What device code leaves in the first one's memory, nobody finds there."""
    with real_worker() as gpu:
        (public,) = gpu.run(build, "", [planned(0)], load_lab(), quietly)
        with gpu.successor() as other:
            (hidden,) = other.run(build, "", [planned(2, m=6)], load_lab(), quietly)
    assert str(public.message) != str(hidden.message)
    assert gpu.gpu == other.gpu == INFO


def test_a_context_is_made_ahead() -> None:
    with real_worker() as gpu:
        ready, _, _ = select.select([gpu._worker._process.stdout], [], [], 60)
        assert ready


def test_a_gpu_that_admits_one_process_has_no_other_context_before_the_worker_is_gone(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.run.gpu.device.admits_one_process", lambda: True)
    with device(tmp_path / "first", Ready(gpu=INFO), Done()) as first:
        may_end = ends_late(first, monkeypatch)
        with device(tmp_path / "second", Ready(gpu=INFO), Done()) as second:
            waiting = started(second, build)
            run(first, build)
            told_no_more_than(tmp_path / "second", "prepare")
            may_end.set()
            waiting.join(60)
            assert told(tmp_path / "second") == ["prepare", "warm", "job"]


def test_nothing_runs_in_a_broken_context(build: Build) -> None:
    heard: list[str] = []
    both = [planned(0), planned(2, m=6)]
    with real_worker(breaks_at="cpu-0") as gpu:
        (broken,) = gpu.run(build, "", both, load_lab(), lambda _, words: heard.append(str(words)))
    assert str(broken.message) == "broken"
    assert heard == ["running 5×7×3 on the GPU"]


def test_a_timed_size_that_ends_the_worker_does_not_keep_smaller_ones_from_running(
    build: Build,
) -> None:
    lab = load_lab()
    heard: list[str] = []
    began: list[GpuInfo] = []
    with real_worker(breaks_at="performance-0") as gpu:
        found = gpu.run(
            build, "", EVERY, lab, lambda _, words: heard.append(str(words)), began.append
        )
    assert [each.id for each in found] == [each.id for each in EVERY]
    assert [each.stopped for each in found] == [None, None, None, None, "crash"]
    small, large = "running 5×7×3 on the GPU", "running 64×7×3 on the GPU"
    assert heard == [small, large, small, small, small]
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
        "grader.run.gpu.device.time", SimpleNamespace(monotonic=lambda: next(clock, 1e6))
    )
    with real_worker() as gpu:
        found = gpu.run(build, "", EVERY, lab, quietly)
    (late,) = (each for each in found if each.stopped == "time")
    assert str(late.message) == f"the {lab.limits.total_s:g} s for all sizes together are used up"


def test_an_answer_about_another_case_is_the_workers_fault(tmp_path: Path, build: Build) -> None:
    for name, m in (("cpu-1", 5), ("cpu-0", 6)):
        other = named(name, m).case.refused(Rejected(Verdict.RE, verbatim("no")))
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


# --- the order of sizes


def cases(*extents: int) -> list[PlannedCase]:
    return [named(str(at), m) for at, m in enumerate(extents)]


def staged(extents: Sequence[int], timed: set[str]) -> tuple[str, str, str]:
    found = in_stages(cases(*extents), timed)
    first, alone, last = (
        "".join(case.id for case in stage) for stage in (found.first, found.alone, found.last)
    )
    return first, alone, last


def test_most_of_what_is_verified_runs_last() -> None:
    assert staged([1, 2, 3, 4, 5, 1000], {"5"}) == ("01", "5", "234")
    assert staged([1, 2, 3, 4, 1000], {"4"}) == ("0", "4", "123")


def test_beside_another_context_runs_only_what_leaves_room_for_it() -> None:
    assert staged([1, 2, 3, 700, 1000], {"4"}) == ("0", "34", "12")


def test_what_a_submission_allocates_leaves_no_room() -> None:
    own = Allocation(name="own", address=0, size=1 << 40)
    found = cases(1, 2, 3, 1000)
    plans = [
        msgspec.structs.replace(each.plan, allocations=(*each.plan.allocations, own))
        for each in (found[2], found[3])
    ]
    found[2:] = [
        msgspec.structs.replace(each, plan=plan)
        for each, plan in zip(found[2:], plans, strict=True)
    ]
    stages = in_stages(found, {"3"})
    assert [case.id for case in stages.alone] == ["2", "3"]


def test_what_is_larger_than_a_timed_size_runs_after_it() -> None:
    assert staged([1, 2, 900, 1800, 4000], {"2"}) == ("0", "234", "1")


def test_without_a_timed_size_nothing_is_put_off() -> None:
    assert staged([1, 2, 3000], set()) == ("01", "2", "")
    assert staged([], set()) == ("", "", "")
