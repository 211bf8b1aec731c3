"""``grade profile``: a submission's counters in Nsight Compute beside the model's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.backends.gpu.gpu_messages import Watching
from grader.backends.probe import first_gpu_arch, gpu_names
from grader.cli import exit_status, options
from grader.errors import MachineError, UsageError
from grader.grading.preparing import Bench, explained, prepared
from grader.hardware import gpus
from grader.hardware.gpus import PEAK_UNIT
from grader.labs.lab import find_lab, load_lab
from grader.model import Explanation, KernelCounts, Size, size_text
from grader.model.names import kernel_name
from grader.performance.compare import compare, total
from grader.performance.profiler import Profile, find_ncu, profile
from grader.report.text import clean
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

_SECONDS = 300.0
_SIZE = 2048
_ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show a submission's counters in Nsight Compute beside the model's. Needs a GPU, "
        "ncu and the right to read the counters."
    )
    options.submission(parser)
    parser.add_argument(
        "--size",
        metavar="N",
        type=_size,
        default=_SIZE,
        help=f"each dimension (default: {_SIZE}); the profiler runs each kernel several times",
    )
    options.lab(parser)


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    here = first_gpu_arch()
    if here is None:
        raise MachineError("no NVIDIA GPU here to profile on; grade sass needs none")
    find_ncu()
    arch = lab.arch_on(here)
    bench = Bench(lab=lab, toolchain=find_toolchain(arch), sandbox=Sandbox.open("auto"))
    size = Size(dims={dim.name: chosen.size for dim in lab.problem.dims})
    ready = prepared(
        load_submission(chosen.submission, lab.problem.interface.main), [size], bench, arch
    )
    why = explained(ready, bench, gpus.find(gpu_names()[0]))
    if why.missing:
        raise MachineError(f"nothing to compare with: {why.missing}")
    names = [each.name for each in why.counts]
    job = Watching(problem=lab.problem_ref, cubin=str(ready.built.cubin), plan=ready.plans[0])
    seen = profile([job], names, seconds=_SECONDS)
    for counts in why.counts:
        own = [each for each in seen if each.kernel == counts.name]
        _show(counts, own, why, console)
    return exit_status.DONE


def _show(counts: KernelCounts, own: Sequence[Profile], why: Explanation, console: Console) -> None:
    name = clean(kernel_name(counts.name))
    console.print(Text(f"{name} at {size_text(why.size)}, {counts.times} launches", style="bold"))
    measured = total(own)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("model", "ncu", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in compare(counts, measured):
        theirs = "?" if each.theirs is None else f"{each.theirs:,.0f}"
        apart = "" if each.apart is None else f"{100 * each.apart:+.2f} %"
        table.add_row(each.quantity, f"{each.ours:,.0f}", theirs, apart)
    console.print(table)
    for line in _words(counts, measured, own, why):
        console.print(Text(line))
    console.print()


def _words(
    counts: KernelCounts,
    measured: dict[str, float],
    own: Sequence[Profile],
    why: Explanation,
) -> list[str]:
    words = []
    nanoseconds = measured.get("gpu__time_duration.sum")
    if nanoseconds:
        speed = counts.flops / nanoseconds / 1e3
        bound = why.bounds[0] if why.bounds else None
        limit = f"; the model expects about {bound.speed:.4g} ({bound.resource})" if bound else ""
        words.append(f"{speed:.4g} {PEAK_UNIT} under the profiler{limit}")
    active = [each.metrics[_ISSUE] for each in own if each.metrics.get(_ISSUE) is not None]
    if active:
        words.append(f"issue slots used: {sum(active) / len(active):.1f} %")
    return words


def _size(value: str) -> int:
    try:
        size = int(value)
    except ValueError:
        size = 0
    if not 1 <= size <= 16384:
        raise UsageError(f"--size {value}: a number from 1 to 16384")
    return size
