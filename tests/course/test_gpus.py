"""A class on several GPUs: real processes, with stand-ins for the driver and for the measuring."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from benchmarks.timeline import Turn, beside_timing
from grader.base.native import Native
from grader.results import store
from tests.support import commands
from tests.support.files import values
from tests.support.places import ROOT

STANDIN = ROOT / "tests" / "support" / "standin"
UUIDS = ["GPU-" + "-".join(2 * f"{n:02x}" * k for k in (2, 1, 1, 1, 3)) for n in range(4)]
H200 = ";".join(["NVIDIA H200"] * 4)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose libcuda.so.1 is the stand-in."""
    folder = tmp_path_factory.mktemp("driver")
    standin = Native(name="standin", sources=(STANDIN / "libcuda.cpp",), shared=True)
    (folder / "libcuda.so.1").symlink_to(standin.compiled())
    return folder


def grade(
    place: Path,
    driver: Path,
    *words: str,
    gpus: str = H200,
    visible: str | None = None,
    together: int = 1,
) -> subprocess.CompletedProcess[str]:
    more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    command = commands.grade("class", "class", "--lab", "lab.yaml", *words)
    return commands.run(
        command,
        place,
        240,
        PYTHONPATH=os.pathsep.join([str(STANDIN), str(ROOT)]),
        LD_LIBRARY_PATH=str(driver),
        CUDA_STANDIN_GPUS=gpus,
        CUDA_STANDIN_LOG=str(place / "log"),
        CUDA_STANDIN_TOGETHER=str(together),
        **more,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(commands.QUICK)
    for student in "abcde":
        commands.hand_in(tmp_path / "class" / student)
    return tmp_path


@pytest.mark.slow
def test_each_gpu_measures_one_submission_at_a_time(place: Path, driver: Path) -> None:
    words = ("--gpus", "1,0", "--jobs", "1", "--no-report")
    done = grade(place, driver, *words, visible="1,3,2", together=2)
    assert done.returncode == 0, done.stderr
    assert "grading on 2 × NVIDIA H200" in done.stderr
    results = [store.load(path) for path in store.stored(place / "results")]
    assert len(results) == 5
    for result in results:
        assert result.explanation is not None  # it was made beside the measurement
        assert {case.kernels for case in result.cases} == {1}
    used = {result.environment.gpu.uuid for result in results if result.environment.gpu}
    assert used == {UUIDS[1], UUIDS[3]}  # by CUDA's numbers, of which three are visible
    for number in (0, 1):
        assert f" on GPU {number}" in done.stderr

    busy: set[str] = set()
    together = 0
    lines = (place / "log").read_text().splitlines()
    for line in lines:
        what, uuid = line.split()
        assert what != "alone", lines  # both GPUs measured at the same time
        assert (uuid in busy) == (what == "end"), lines  # each of them one at a time
        busy ^= {uuid}
        together = max(together, len(busy))
    assert together == 2
    assert len(lines) == 20  # of two jobs each: the timed size is one of its own


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "gpus", "visible", "says"),
    [
        (("--gpus", "4"), H200, None, "'4' is not one of the GPUs here (0: NVIDIA H200, GPU-0000"),
        (("--gpus", "1"), H200, UUIDS[2], f"(0: NVIDIA H200, {UUIDS[2]})"),
        (("--gpus", "0,GPU-00"), H200, None, "--gpus 0,GPU-00: names a GPU twice"),
        (("--gpus", "all"), "NVIDIA H200;NVIDIA A100", None, "NVIDIA A100 and NVIDIA H200: speeds"),
        (("--gpus", "all"), "", None, "--gpus all: no NVIDIA GPU here"),
        (("--gpus", "0", "--device", "cpu"), H200, None, "--gpus: with --device cpu there is"),
        (("--gpus", "0", "--plan", "x"), H200, None, "--gpus: --plan and --compile use no GPU"),
    ],
)
def test_gpus_that_cannot_be_used(
    place: Path, driver: Path, words: tuple[str, ...], gpus: str, visible: str | None, says: str
) -> None:
    done = grade(place, driver, *words, gpus=gpus, visible=visible)
    assert done.returncode in (2, 3)
    assert says in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr


def test_slices_are_looked_at_one_by_one(place: Path, driver: Path) -> None:
    slices = ";".join(f"NVIDIA H200 MIG {part}g.18gb" for part in (1, 1, 2))
    named = [uuid.replace("GPU", "MIG") for uuid in UUIDS]
    done = grade(place, driver, "--gpus", "2", gpus=slices, visible=",".join(named[:2]))
    assert done.returncode == 2
    known = ", ".join(f"{n}: NVIDIA H200 MIG 1g.18gb, {named[n]}" for n in (0, 1))
    assert f"({known})" in " ".join(done.stderr.split())


# --- what the benchmark of a class sees of a GPU that two submissions use at once


FIRST = Turn(
    student="ann",
    process=0,
    loaded=1,
    asked=1,
    context=(1, 2),
    cases=(2, 9),
    timing=(4, 7),
    timed=3,
    verified=4,
    ending=9,
    gone=10,
)
NEXT = msgspec.structs.replace(
    FIRST, student="ben", context=(7, 8), cases=(9, 16), timing=(11, 14), ending=16, gone=17
)


def test_turns_that_overlap_as_they_may() -> None:
    assert beside_timing([FIRST, NEXT]) == []


@pytest.mark.parametrize(("change", "says"), values(__file__, "beside_timing.txt"))
def test_what_may_not_be(change: dict[str, tuple[float, float]], says: str) -> None:
    assert beside_timing([FIRST, msgspec.structs.replace(NEXT, **change)]) == [says]
