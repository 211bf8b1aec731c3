"""Time many variants of a rung in one short run on a GPU.

    python -m benchmarks.research.variants.sweep RUNG VARIANTS --sizes 512,1024,4096 [--repeats 7]

VARIANTS is a file as in ``variants.py``. All are compiled and recorded at once, then every size's
variants are timed as the judge times, alternating with cuBLAS's fastest, on fresh inputs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from benchmarks.judge_h200 import Kernel
from benchmarks.measure import on_gpu
from benchmarks.research.variants.variants import parse
from grader.base.errors import GraderError
from grader.problems.gemm.gemm import Gemm
from grader.run.gpu.session import GpuSession, LoadedAhead


def measure(bench: GpuSession, kernel: Kernel, n: int, repeats: int) -> str:
    """Microseconds, TFLOPS and the ratio to cuBLAS's fastest; or what is wrong with the product."""
    case = kernel.case(bench, n)
    name, baseline = next(iter(case.rivals().items()))
    keys = case.fresh()
    case.launch()
    case.reference()
    outcome = case.check(keys, 0.0)
    if outcome.findings or outcome.error is None or outcome.error.wrong:
        return f"WRONG: {outcome.message} {outcome.findings}"
    mine, theirs = [], []
    for turn in range(repeats):
        case.fresh()
        order = [(mine, case.launch), (theirs, baseline)]
        for times, launch in order if turn % 2 else reversed(order):
            times.append(bench.time(launch))
    ms, ratio = statistics.median(mine), statistics.median(theirs) / statistics.median(mine)
    tflops = 2e-9 * n**3 / ms
    return f"{1e3 * ms:9.1f} us {tflops:6.2f} TFLOPS  {ratio:.3f} of {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung", type=Path)
    parser.add_argument("variants", type=Path)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    tools = on_gpu()
    sizes = tuple(int(size) for size in arguments.sizes.split(","))
    variants = list(parse(arguments.variants.read_text()))

    def made(folder: Path) -> Kernel | str:
        try:
            return Kernel(folder, tools, sizes)
        except GraderError as error:
            return str(error)

    # Everything that starts processes comes before CUDA is touched: a context does not fork.
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        folders = [variant.write(arguments.rung, Path(scratch)) for variant in variants]
        kernels = list(pool.map(made, folders))
    bench = GpuSession(LoadedAhead(Gemm()))
    print(
        f"{bench.gpu.name}, driver {bench.gpu.driver}, {date.today()}, {arguments.rung}", flush=True
    )
    with bench.stream:
        for n in sizes:
            for variant, kernel in zip(variants, kernels, strict=True):
                if variant.sizes and n not in variant.sizes:
                    continue
                line = (
                    kernel
                    if isinstance(kernel, str)
                    else measure(bench, kernel, n, arguments.repeats)
                )
                print(f"{n:6} {variant.name:16} {line}", flush=True)


if __name__ == "__main__":
    main()
