"""Results of a GPU and of the simulator, made by hand, for the tests of what people look at."""

import io
from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console, RenderableType

from grader.base.gpus import GpuInfo
from grader.base.records import Verdict
from grader.report import terminal
from grader.results import HostLoop, HostRun, Ladder, find_rungs, make_ladder, standing
from grader.results.case import CaseResult, Run, Timing
from grader.results.result import Environment, LabRef, Result, Standing
from grader.results.rungs import Rung
from grader.results.score import Score
from ptxsim.findings import LineCount
from ptxsim.text import verbatim
from tests.support.files import beside
from tests.support.places import REFERENCE
from tests.support.product import GEMM
from tests.support.results import RIGHT, SHA, make_result

H200 = GpuInfo(
    name="NVIDIA H200",
    uuid="GPU-00000000-1111-2222-3333-444444444444",
    driver="580.95.05",
    sm_clock_mhz=1980,
    memory_bytes=150_000_000_000,
    compute_capability="9.0",
    multiprocessors=132,
    fp32_peak_tflops=66.9,
)
SOURCE = beside(__file__, "shown.cu")
LINES = tuple(
    LineCount(
        file="sgemm.cu",
        line=line,
        instructions=1000 * weight,
        flops=32_000 * weight,
        global_requests=100,
        global_sectors=400,
        global_bytes=12_800,
        shared_requests=200,
        shared_wavefronts=400,
        shared_bytes=25_600,
    )
    for line, weight in ((6, 1), (7, 20), (8, 1))
)


def drawn(shown: RenderableType, width: int = 120) -> str:
    """What a terminal of this width shows, without colours."""
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(shown)
    return file.getvalue()


def printed(
    result: Result,
    sources: Mapping[str, str] | None = None,
    width: int = 200,
    detail: terminal.Detail = "all",
) -> str:
    """What the terminal shows of a result."""
    lines = drawn(terminal.render(result, sources or {}, detail=detail), width).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def timed(edge: int, bench: float, cublas: float) -> CaseResult:
    """A timed, accepted case of edge³: three runs near these TFLOPS."""
    runs = tuple(
        Run(speed=bench * share, baseline_speed=cublas * share) for share in (0.997, 1.0, 0.995)
    )
    ratio = bench / cublas
    return msgspec.structs.replace(
        RIGHT,
        id=f"performance-{edge}",
        size={"m": edge, "n": edge, "k": edge},
        amount=2 * edge**3,
        timing=Timing(
            runs=runs,
            ratio=ratio,
            ratio_ci=(ratio * 0.999, ratio * 1.001),
            noise=0.0021,
            samples=48,
        ),
    )


def gpu_environment(gpu: GpuInfo = H200) -> Environment:
    return msgspec.structs.replace(make_result().environment, device="gpu", gpu=gpu)


def gpu_result(
    student: str = "alice", total: float | None = 86.07, gpu: GpuInfo = H200, **changes: object
) -> Result:
    """A result measured on a GPU; ``total`` None means not accepted."""
    accepted = total is not None
    bench = (total or 0) / 100 * 50.2
    given: dict[str, object] = {
        "environment": gpu_environment(gpu),
        "cases": (timed(8192, bench, 50.2), timed(4096, bench, 50.8)) if accepted else (RIGHT,),
        "score": Score(total=total or 0.0, max=100, policy="oj"),
        "verdict": Verdict.AC if accepted else Verdict.WA,
        **changes,
    }
    return make_result(student, **given)


# --- the reference ladder ---------------------------------------------------------------------

LADDER_SIZES = (1024, 2048, 4096, 8192)
SLOWEST = 2  # index of a rung that is too slow for the two largest sizes


def ladder_results(rungs: Sequence[Rung], gpu: GpuInfo | None = H200) -> dict[str, Result]:
    """Made-up figures that climb, and one rung that exceeds the time limit."""
    results = {}
    for index, rung in enumerate(rungs):
        share = 0.018 * (1.12 / 0.018) ** (index / max(1, len(rungs) - 1))
        share = 0.0002 if index == SLOWEST else share
        cases = tuple(
            timed(edge, share * top, top)
            for edge, top in zip(LADDER_SIZES, (36.2, 50.2, 50.9, 51.2), strict=True)
        )
        verdict = Verdict.AC
        if index == SLOWEST:
            verdict = Verdict.TLE
            slow = (verdict, verbatim("a launch did not end within 10 s"))
            ended = [
                msgspec.structs.replace(case, verdict=each, message=words, timing=None)
                for case, (each, words) in zip(
                    cases[2:], (slow, (None, verbatim("not run"))), strict=True
                )
            ]
            cases = (*cases[:2], *ended)
        where = {"environment": gpu_environment(gpu), "cases": cases} if gpu else {}
        results[rung.name] = make_result(rung.name, verdict=verdict, **where)
    return results


def sample_ladder(rungs: Sequence[Rung], gpu: GpuInfo | None = H200) -> Ladder:
    host = HostRun(
        cpu="Some CPU <2 cores>",
        n=512,
        loops=(HostLoop(name="plain", gflops=0.9), HostLoop(name="restrict", gflops=2.7)),
    )
    lab = LabRef(id="ladder", sha256=SHA)
    return make_ladder(
        rungs, ladder_results(rungs, gpu), lab, GEMM.info(), grader="0.1.0", host=host
    )


RUNGS = find_rungs(REFERENCE)


def standing_at(ratio: float) -> Standing | None:
    """Where a submission of this share of cuBLAS at 8192³ stands on the made-up ladder."""
    return standing([timed(8192, ratio * 51.2, 51.2)], H200, [sample_ladder(RUNGS)])
