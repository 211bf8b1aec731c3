"""``grade profile``: a submission in Nsight Compute, beside the baseline and beside the model."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.backends.gpu.checks import checks_cubin
from grader.backends.gpu.gpu_messages import Watching
from grader.backends.probe import first_gpu_arch, gpu_names
from grader.cli import exit_status, options
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.cli.readiness import ready
from grader.cli.speaking import spoken
from grader.errors import MachineError, UsageError
from grader.grading.preparing import Bench, explained, prepared
from grader.hardware import gpus
from grader.labs.lab import Lab, find_lab, load_lab
from grader.ladder.rungs import alike, find_reference, find_rungs
from grader.model import (
    Explanation,
    KernelCounts,
    ProfileDocument,
    ProfiledSize,
    Size,
    counted,
    phrase,
    size_text,
    verbatim,
)
from grader.model.names import kernel_name
from grader.performance.compare import compare, total
from grader.performance.profiler import find_ncu, profile_into
from grader.problems.questions import redundancy
from grader.report.text import clean
from grader.results import store
from grader.results.profiles import profile_path
from grader.sandbox.running import Sandbox
from grader.study.profiling import (
    Watched,
    figures,
    make_document,
    side_name,
)
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

_SECONDS = 900.0


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase(
            "Profile a submission, the baseline on the same inputs, and the ladder's first rung "
            "with Nsight Compute; keep the report for its window; say whether the traffic is "
            "redundant, and where the model's counts differ. Needs a GPU, ncu and the right to "
            "read the counters."
        )
    )
    options.submission(parser)
    parser.add_argument(
        "--size",
        metavar="N",
        type=_extent,
        action="append",
        help=phrase(
            "each dimension; may be repeated (default: the lab's two sizes, such as 1024 and "
            "8192); the profiler runs each kernel some forty times"
        ),
    )
    options.lab(parser)
    options.out(parser, phrase("where the results are; the report is kept there"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    here = first_gpu_arch()
    if here is None:
        raise MachineError(phrase("no NVIDIA GPU here to profile on; grade sass needs none"))
    find_ncu()
    arch = lab.arch_on(here)
    bench = Bench(lab=lab, toolchain=find_toolchain(arch), sandbox=Sandbox.open("auto"))
    ready(bench, "auto")
    sizes = [_size(lab, extent) for extent in sorted(set(chosen.size or lab.problem.profiled))]
    own = load_submission(chosen.submission, lab.problem.interface.main)
    watched = [
        Watched(ready=prepared(own, sizes, bench, arch), name=own.student, first=False),
        *_first_rung(lab, sizes[0], bench, arch),
    ]
    for source in lab.problem.gpu_sources:  # compiled here, not under the profiler
        checks_cubin(arch, source)
    jobs = [
        Watching(
            problem=lab.problem_ref,
            cubin=str(each.ready.built.cubin),
            plan=plan,
            baseline=not each.first,
        )
        for each in watched
        for plan in each.ready.plans
    ]
    document = store.document_path(chosen.out, lab.id, own.student, own.sha256, "gpu")
    report = document.with_name(f"{own.sha256[:12]}.ncu-rep")
    seen = profile_into(report, jobs, own.folder, seconds=_SECONDS)
    found = make_document(watched, seen, bench, gpu_names()[0], report.name)
    store.write_document(profile_path(document), found)
    for size in found.sizes:
        _show(size, found, arch, console)
    why = explained(watched[0].ready, bench, gpus.find(gpu_names()[0]))
    _beside_the_model(why, found, console)
    say(console, phrase("for Nsight Compute: {command}", command=f"ncu-ui {report}"))
    return exit_status.DONE


def _first_rung(lab: Lab, size: Size, bench: Bench, arch: str) -> list[Watched]:
    """Nothing where the lab has no ladder."""
    try:
        reference = find_reference(None, lab.id, *alike(lab))
    except UsageError:
        return []
    name = find_rungs(reference)[0].name
    submission = load_submission(reference / name, lab.problem.interface.main)
    return [Watched(ready=prepared(submission, [size], bench, arch), name=name, first=True)]


def _show(size: ProfiledSize, document: ProfileDocument, arch: str, console: Console) -> None:
    language = spoken(console)
    head = phrase("{size} on {gpu}", size=size_text(size.size), gpu=document.gpu)
    console.print(Text(f"\n{language(head)}", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for side in size.sides:
        table.add_column(clean(side_name(side, document)), justify="right")
    for name, values in figures(size, document, arch):
        table.add_row(language(name), *values)
    console.print(table)
    for side in size.sides:
        if side.role != "baseline":
            console.print(Text(clean(language(redundancy(size, side)))))


def _beside_the_model(why: Explanation, document: ProfileDocument, console: Console) -> None:
    if why.missing:
        say(console, phrase("no counts of the model to compare with: {why}", why=why.missing))
        return
    size = next(each for each in document.sizes if each.size == why.size)
    side = size.side("own")
    assert side is not None
    for counts in why.counts:
        own = [each for each in side.launches if each.kernel == counts.name]
        _compared(counts, total(own), why, console)


def _compared(
    counts: KernelCounts, measured: dict[str, float], why: Explanation, console: Console
) -> None:
    name = clean(kernel_name(counts.name))
    language = spoken(console)
    launches = counted("{count} launch", "{count} launches", counts.times)
    head = phrase(
        "{kernel} at {size}, {launches}", kernel=name, size=size_text(why.size), launches=launches
    )
    console.print(Text(f"\n{language(head)}", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for heading in (phrase("model"), verbatim("ncu"), phrase("difference")):
        table.add_column(language(heading), justify="right", no_wrap=True)
    for each in compare(counts, measured):
        theirs = "?" if each.theirs is None else f"{each.theirs:,.0f}"
        apart = "" if each.apart is None else f"{100 * each.apart:+.2f} %"
        table.add_row(language(each.quantity), f"{each.ours:,.0f}", theirs, apart)
    console.print(table)


def _extent(value: str) -> int:
    if not value.isascii() or not value.isdecimal() or not 1 <= int(value[:12]) <= 1 << 28:
        raise UsageError(phrase("--size {value}: expected a number ≥ 1", value=value))
    return int(value)


def _size(lab: Lab, extent: int) -> Size:
    for dim in lab.problem.dims:
        if extent > dim.most:
            raise UsageError(phrase("--size {value}: at most {most}", value=extent, most=dim.most))
    if extent % lab.multiple_of:
        raise UsageError(
            phrase(
                "--size {value}: no multiple of {step}, as the lab asks",
                value=extent,
                step=lab.multiple_of,
            )
        )
    return Size(dims={dim.name: extent for dim in lab.problem.dims})
