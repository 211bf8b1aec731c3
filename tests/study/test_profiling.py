"""What is said of a profile, from counters that ncu recorded on an H200."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base.errors import MachineError
from grader.base.profile import Profile, ProfileDocument, ProfiledSide
from grader.explain.profiler import ProfiledJob, dealt_out, read
from grader.judge.program import Program
from grader.labs.submission import load_submission
from grader.problems.questions import redundancy
from grader.report import html
from grader.report.why import answers
from grader.results import store
from grader.results.entries import profile_path, stored_profile
from grader.run.gpu.messages import Watching
from grader.study.profiling import WatchedKernel, figures, make_document
from ptxsim.frontend.interface import Interface
from ptxsim.records import Launch, Plan, Size
from tests.support.bench import bench
from tests.support.explained import built, explained
from tests.support.places import ALICE, ROOT
from tests.support.product import GEMM_REF, MAIN
from tests.support.results import make_result

EDGE = 1024


class _Row(msgspec.Struct):
    folder: str
    launches: tuple[Profile, ...]


class _Recorded(msgspec.Struct):
    profiled: tuple[_Row, ...]


@cache
def recorded(folder: str) -> tuple[Profile, ...]:
    """As ncu counted it at 1024³."""
    path = ROOT / "docs" / "measurements" / "2026-11-21-h200-counters.json"
    rows = msgspec.json.decode(path.read_bytes(), type=_Recorded).profiled
    return next(row.launches for row in rows if row.folder == folder)


def table(launches: tuple[Profile, ...]) -> str:
    """In the form of ``ncu --csv --page raw``."""
    names = list(launches[0].metrics)
    quoted = [
        ['"ID"', '"Kernel Name"', *(f'"{name}"' for name in names)],
        ['""'] * (2 + len(names)),
    ]
    for i, each in enumerate(launches):
        values = (f'"{each.metrics[name]:,.2f}"' for name in names)
        quoted.append([f'"{i}"', f'"{each.kernel}"', *values])
    return "==PROF== Disconnected\n" + "\n".join(map(",".join, quoted))


def job(*kernels: str, baseline: bool) -> Watching:
    one: dict[str, Any] = {"grid": (1, 1, 1), "block": (1, 1, 1), "shared_bytes": 0}
    launches = tuple(Launch(kernel=name, params=b"", pointers=(), **one) for name in kernels)
    size = Size.of(m=EDGE, n=EDGE, k=EDGE)
    plan = Plan(size=size, allocations=(), operations=launches)
    return Watching(problem=GEMM_REF, cubin="/some/cubin", plan=plan, baseline=baseline)


def document() -> ProfileDocument:
    """alice beside a rung that stands for the baseline, and the naive rung."""
    own, base, naive = (
        recorded(f)
        for f in ("submissions/alice", "reference/sgemm/24_rasterised", "reference/sgemm/01_naive")
    )
    plan = job(baseline=False).plan
    submission = load_submission(ALICE, MAIN)
    ready = Program(
        submission=submission,
        context=bench(),
        built=built(ALICE, "sm_90"),
        declared=Interface(entries={}, symbols={}),
        plans=(plan,),
    )
    names = ("alice", "01_naive")
    watched = [WatchedKernel(ready=ready, name=n, first=n == "01_naive") for n in names]
    seen = [
        ProfiledJob(own=own, baseline=base, variant="cublasLt 2"),
        ProfiledJob(own=naive, baseline=(), variant=""),
    ]
    return make_document(watched, seen, bench(), "NVIDIA H200", "x.ncu-rep")


def test_ncus_launches_are_dealt_out_to_jobs_and_baselines() -> None:
    own, naive = recorded("submissions/alice"), recorded("reference/sgemm/01_naive")
    cublas = tuple(
        Profile(kernel=name, metrics=own[0].metrics) for name in ("cutlass_split", "cutlass_sum")
    )
    launches = read(table((*own, *cublas, *naive)))
    jobs = [job(own[0].kernel, baseline=True), job(naive[0].kernel, baseline=False)]

    first, second = dealt_out(jobs, launches, ["cublasLt 3"])

    assert [each.kernel for each in first.baseline] == ["cutlass_split", "cutlass_sum"]
    assert first.variant == "cublasLt 3" and second.baseline == ()
    assert first.own == own and second.own == naive
    with pytest.raises(MachineError, match="did not profile the baseline"):
        dealt_out(jobs, (*own, *naive), ["cublasLt 3"])
    with pytest.raises(MachineError, match="did not profile the launches"):
        dealt_out(jobs, launches[1:], ["cublasLt 3"])
    with pytest.raises(MachineError, match="2 launches that nobody made"):
        dealt_out([job(own[0].kernel, baseline=False)], launches[:3], [])


def test_the_naive_kernels_traffic_is_redundant_for_the_caches_and_not_for_dram() -> None:
    (size,) = document().sizes
    naive = size.side("first")
    assert naive is not None
    said = str(redundancy(size, naive))

    assert "01_naive asks for 19.33 GB, 2304 times its inputs (0.008389 GB)" in said
    assert "0.008401 GB come from DRAM, 1 times the inputs" in said
    assert "not its traffic with DRAM" in said
    again = {**naive.launches[0].metrics, "dram__bytes_read.sum": 5 * size.inputs}
    greedy = ProfiledSide(role="own", name="x", launches=(Profile(kernel="k", metrics=again),))
    assert "redundant even once the caches are counted" in str(redundancy(size, greedy))
    blind = ProfiledSide(role="own", name="x", launches=(Profile(kernel="k", metrics={}),))
    assert not redundancy(size, blind)


def test_the_figures_of_all_sides_stand_beside_each_other() -> None:
    found = document()
    rows = {str(name): values for name, values in figures(found.sizes[0], found, "sm_90")}

    # alice reads shared memory with half of its wavefronts lost: see the recorded counters.
    assert rows["wavefronts by bank conflicts"][0] == "4,194,304 (40 %)"
    assert rows["FFMA of the instructions"][0] == "86.5 %"
    assert [side.role for side in found.sizes[0].sides] == ["own", "baseline", "first"]
    assert rows["read from DRAM, GB"][2] == "0.008401"


def test_a_stored_profile_reaches_the_questions_and_the_page(tmp_path: Path) -> None:
    why = explained(ALICE)
    result = make_result(explanation=why)
    path = store.save(tmp_path, result)
    store.write_document(profile_path(path), document())

    found = stored_profile(path)
    assert found == document() and list(store.stored(tmp_path)) == [path]
    said = {str(each.question): str(each.answer) for each in answers(result, {}, found)}
    naive = said["Is the naive kernel's global traffic redundant, once caches are counted?"]
    assert naive.startswith("At 1024×1024×1024: 01_naive asks for") and "This kernel asks" in naive
    assert "01_naive asks for 19.33 GB" in html.render(result, {}, profile=found)
