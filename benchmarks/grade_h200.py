"""Where the seconds of one grade on a GPU go: `python -m benchmarks.grade_h200` on a GPU machine.

The whole command on submissions/alice as a fresh process, with the moment at which each line of
its progress appears; then the start of a GPU worker, step by step. Takes about half a minute.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import timeline
from benchmarks.measure import ALICE, GRADE, ROOT, gpus_here, machine, on_the_gpu, table
from grader.problems.gemm.gemm import Gemm
from grader.results import store

GOAL_S = 2.5
RUNS = 3
_SHOWN_S = 0.005  # what takes less is not listed
_WORKER = "--worker"


def graded(
    folder: Path, out: Path, environment: dict[str, str] | None = None
) -> tuple[float, list[tuple[float, str]]]:
    """Wall seconds of the command, and its lines with their moments. Raises SystemExit if it
    failed."""
    started = time.monotonic()
    words = [*GRADE, str(folder), "--device", "gpu", "--out", str(out)]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        lines = [(time.monotonic() - started, line.strip()) for line in process.stderr]
    if process.returncode != 0:
        raise SystemExit("\n".join(line for _, line in lines))
    return time.monotonic() - started, lines


def whole(place: Path) -> float:
    """Grades alice; the median of the repeated runs."""
    folder = Path(shutil.copytree(ALICE, place / "alice"))
    graded(folder, place / "warm")  # the grader's own programs, cuBLAS's choices
    with (folder / "sgemm.cu").open("a") as file:
        file.write("// edited\n")
    runs = [("an edited file", *graded(folder, place / "edited"))]
    runs += [("the same again", *graded(folder, place / f"{i}")) for i in range(RUNS)]
    (path,) = store.stored(place / "0")
    timed, verified = on_the_gpu(store.load(path))
    rows = [[what, f"{seconds:.2f}", f"{GOAL_S}"] for what, seconds, _ in runs]
    print(table(["grade submissions/alice", "seconds", "at most"], rows))
    print(f"\nof which on the GPU: timing {timed:.2f} s, verifying {verified:.2f} s\n")
    _, _, lines = runs[-1]
    said = [[f"{moment:.2f}", line] for moment, line in lines if line][:12]
    print(table(["second", "line of its progress"], said))
    print(f"\n{followed(folder, place)}")
    return sorted(seconds for _, seconds, _ in runs[1:])[RUNS // 2]


def followed(folder: Path, place: Path) -> str:
    """One more run of an edited file, with the moments of all its processes."""
    with (folder / "sgemm.cu").open("a") as file:
        file.write("// edited once more\n")
    moments = place / "moments"
    moments.mkdir()
    started = time.monotonic()
    graded(folder, place / "followed", timeline.environment(moments))
    found = timeline.happened(moments)
    names = {process: name for name, process in enumerate(dict.fromkeys(m.process for m in found))}
    rows = [
        [f"{m.begin - started:.3f}", f"{m.end - started:.3f}", str(names[m.process]), m.what]
        for m in found
        if m.end - m.begin >= _SHOWN_S or m.what == "process"
    ]
    return table(["begin", "end", "process", "edited once more, followed"], rows)


def worker() -> None:
    """The start of a GPU worker in this fresh process, each step timed."""
    rows: list[list[str]] = []

    def step(name: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        rows.append([name, f"{1e3 * (time.perf_counter() - began):.0f}"])

    def modules() -> None:
        from grader.run.gpu import gpu_worker as _  # noqa: F401

    step("import numpy", lambda: __import__("numpy"))
    step("import CuPy", lambda: __import__("cupy"))
    step("import the worker", modules)
    from grader.problems.gemm.cublas import WORKSPACE_BYTES, Cublas, types_for
    from grader.run.gpu import session
    from grader.run.gpu.calling import Caller
    from grader.run.gpu.memory import CHECKS, Arena, Kernels
    from grader.run.gpu.messages import checks_cubin
    from grader.run.gpu.session import describe
    from grader.run.gpu.watch import GpuWatch, Nvml
    from grader.run.probe import first_gpu_arch, first_gpu_uuid

    problem = Gemm()
    step("cuInit", first_gpu_arch)
    step("machine code of the checks", lambda: checks_cubin(first_gpu_arch() or "", CHECKS))
    step("load cuBLAS", lambda: [import_module(each) for each in problem.gpu_modules])
    step("NVML", lambda: Nvml(first_gpu_uuid()))
    nvml = Nvml(first_gpu_uuid())
    step("attributes", lambda: describe(nvml))
    step("the caller", Caller)
    ground = session.LoadedAhead(problem)
    step("other processes", lambda: GpuWatch(nvml))
    step("context", lambda: session.cupy.cuda.Stream.null.synchronize())
    stream = session.cupy.cuda.Stream(non_blocking=True)
    step("load the checks", lambda: Kernels(stream))
    kernels = Kernels(stream)
    step("first launch", lambda: (kernels.head_start(1), stream.synchronize()))
    room = session.cupy.empty(WORKSPACE_BYTES, dtype=session.cupy.uint8)
    fp32 = types_for("f32", "f32", "f32")
    step("cuBLAS's handles", lambda: Cublas(stream.ptr, int(room.data.ptr), fp32))
    step("addresses", Arena)
    step("all with a context again, as the worker does it", lambda: session.GpuSession(ground))
    print(table(["start of a GPU worker", "ms"], rows))
    print(f"{time.monotonic():.3f}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)  # as the grader ends it


def main() -> None:
    if _WORKER in sys.argv:
        worker()
        return
    names = gpus_here()
    print(f"{names[0]}; {machine()}\n")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every process compiles its modules
    with tempfile.TemporaryDirectory() as place:
        median = whole(Path(place))
    command = [sys.executable, "-m", "benchmarks.grade_h200", _WORKER]
    print("", flush=True)
    started = time.monotonic()
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout
    ended = time.monotonic()
    told, _, last = said.rstrip().rpartition("\n")
    print(told)
    print(f"\nthe worker's process, from start to end: {ended - started:.2f} s, ", end="")
    print(f"of which its end took {ended - float(last):.2f} s")
    if median > GOAL_S:
        raise SystemExit("the goal is missed")


if __name__ == "__main__":
    main()
