"""What is said where the GPU's elements are wrong and the simulator's right. The GPU here is the
simulator, too: it runs the build for sm_90, whose shared memory begins at another address."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.judge.pipeline import Watcher, grade_in_simulator
from grader.judge.program import build_program
from grader.judge.rulings import Ruling
from grader.judge.second_look import look_again
from grader.judge.walk import Group, Ran, record_group, walk
from grader.labs.submission import load_submission
from grader.run.protocol import Progress, quietly
from grader.run.simulator.device import CpuDevice
from ptxsim.findings import Severity
from tests.support.bench import bench, of_lab
from tests.support.commands import hand_in
from tests.support.product import MAIN
from tests.support.swizzle import swizzle

SHARED = of_lab(bench(), cpu=bench().lab.cpu[:3], performance=())
WRONG = "at 1×1×1 the elements are wrong in the simulator, too, with the GPU's build for sm_90: "
RIGHT = "at 1×1×1 the elements are right in the simulator, also with the GPU's build for sm_90"


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    lab = SHARED.lab
    with CpuDevice(SHARED.sandbox, lab.limits, lab.problem_ref) as made:
        yield made


def on_gpu(folder: Path, device: CpuDevice) -> tuple[Group, Ruling]:
    """Grade the build for sm_90."""
    submission = load_submission(folder, MAIN)
    program = build_program(submission, SHARED, "sm_90", device, quietly)

    def run(group: Group, progress: Progress) -> Ran:
        return device.run(program.built, program.root, group.planned, SHARED.lab, progress), ()

    group = record_group(program, SHARED.lab.cpu, quietly)
    return group, walk(group, run, device, quietly)


def test_the_gpus_own_build_is_simulated_where_only_the_gpu_is_wrong(
    tmp_path: Path, device: CpuDevice
) -> None:
    by_place, by_address = (
        hand_in(tmp_path / of / "eve", swizzle(of)) for of in ("place", "address")
    )
    right_group, right = on_gpu(by_place, device)
    group, wrong = on_gpu(by_address, device)
    simulate = partial(
        grade_in_simulator, context=SHARED, device=device, progress=quietly, watcher=Watcher()
    )
    simulated = simulate(load_submission(by_address, MAIN))
    assert (right.verdict, wrong.verdict) == (Verdict.AC, Verdict.WA)
    assert simulated.verdict is Verdict.AC and not simulated.findings

    assert look_again(right_group, right, simulated, device, quietly) == simulated

    note, hint = look_again(group, wrong, simulated, device, quietly).findings
    assert note.severity is Severity.NOTE and str(note.message).startswith(WRONG)
    assert hint.kind is Kind.HINT and "the bits of an address" in str(hint.message)
    assert "1024 here, as on sm_90" in str(hint.message) and hint.file == MAIN

    # What the GPU says of the one, looked at in the build of the other.
    (note,) = look_again(right_group, wrong, simulated, device, quietly).findings
    assert str(note.message).startswith(RIGHT)
