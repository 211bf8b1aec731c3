"""``grade profile``: a submission in Nsight Compute, beside the baseline and beside the model."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.base import MachineError, UsageError, gpus, size_text
from grader.build import find_toolchain
from grader.cli.bench import check_place, ready
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, make_size, with_plans
from grader.cli.console import DONE, say, spoken
from grader.cli.options import OptionGroup, option
from grader.cli.shared_options import SUBMISSION, results_folder
from grader.judge import GradingContext, prepare
from grader.labs import Lab, load_submission
from grader.report import clean, redundancy, table
from grader.results import (
    ProfileDocument,
    ProfiledSize,
    alike,
    find_reference,
    find_rungs,
    profile_path,
    store,
)
from grader.run import Watching, checks_cubin, first_gpu_arch, gpu_names
from grader.sandbox import Sandbox
from grader.study import (
    WatchedKernel,
    compare,
    explain_program,
    figures,
    find_ncu,
    make_document,
    profile_into,
    side_name,
    total,
)
from ptxsim.findings import kernel_name
from ptxsim.plan import Size
from ptxsim.text import NOTHING, counted, phrase, verbatim

_SECONDS = 900.0


class ProfileOptions(OptionGroup):
    """Profile a submission, the baseline on the same inputs, and the ladder's first rung with
    Nsight Compute; keep the report for its window; say whether the traffic is redundant, and where
    the model's counts differ. Needs a GPU, ncu and the right to read the counters."""

    submission: Path = SUBMISSION
    size: tuple[int, ...] = option(
        "each dimension; may be repeated (default: the lab's two sizes, such as 1024 and "
        "8192); the profiler runs each kernel some forty times",
        "N",
    )
    lab: LabName = LAB
    out: Path = results_folder(
        phrase("where the results are; the report is kept there (default: {default}/)")
    )


def run(chosen: ProfileOptions, console: Console) -> int:
    lab = with_plans(chosen_lab(chosen.lab))
    check_place(chosen.submission, lab, chosen.out)
    here = first_gpu_arch()
    if here is None:
        raise MachineError.saying("no NVIDIA GPU here to profile on; grade sass needs none")
    find_ncu()
    arch = lab.arch_on(here)
    context = GradingContext(lab=lab, toolchain=find_toolchain(arch), sandbox=Sandbox.open("auto"))
    ready(context, "auto")
    extents = sorted(set(chosen.size or lab.problem.profiled))
    sizes = [make_size([each] * len(lab.problem.dims), f"--size {each}", lab) for each in extents]
    own = load_submission(chosen.submission, lab.problem.interface.main)
    watched = [
        WatchedKernel(ready=prepare(own, sizes, context, arch), name=own.student, first=False),
        *_first_rung(lab, sizes[0], context, arch),
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
    found = make_document(watched, seen, context, gpu_names()[0], report.name)
    store.write_document(profile_path(document), found)
    for size in found.sizes:
        _show(size, found, arch, console)
    _beside_the_model(watched[0], found, console)
    say(console, phrase("for Nsight Compute: {command}", command=f"ncu-ui {report}"))
    return DONE


def _first_rung(lab: Lab, size: Size, context: GradingContext, arch: str) -> list[WatchedKernel]:
    """Nothing where the lab has no ladder."""
    try:
        reference = find_reference(None, lab.id, *alike(lab))
    except UsageError:
        return []
    name = find_rungs(reference)[0].name
    submission = load_submission(reference / name, lab.problem.interface.main)
    return [WatchedKernel(ready=prepare(submission, [size], context, arch), name=name, first=True)]


def _show(size: ProfiledSize, document: ProfileDocument, arch: str, console: Console) -> None:
    language = spoken(console)
    head = phrase("{size} on {gpu}", size=size_text(size.size), gpu=document.gpu)
    console.print(Text(f"\n{language(head)}", style="bold"))
    header = ["", *(clean(side_name(side, document)) for side in size.sides)]
    rows = ((language(name), *values) for name, values in figures(size, document, arch))
    console.print(table(header, rows, words=(0,)))
    for side in size.sides:
        if side.role != "baseline":
            console.print(Text(clean(language(redundancy(size, side)))))


def _beside_the_model(own: WatchedKernel, document: ProfileDocument, console: Console) -> None:
    why = explain_program(own.ready, gpus.find(gpu_names()[0]))
    if why.missing:
        say(console, phrase("no counts of the model to compare with: {why}", why=why.missing))
        return
    size = next(each for each in document.sizes if each.size == why.size)
    side, language = size.side("own"), spoken(console)
    assert side is not None
    for counts in why.counts:
        launches = counted("{count} launch", "{count} launches", counts.times)
        head = phrase("{kernel} at {size}, {launches}", size=size_text(why.size), launches=launches)
        name = clean(kernel_name(counts.name))
        console.print(Text(f"\n{language(head.given(kernel=name))}", style="bold"))
        launched = [each for each in side.launches if each.kernel == counts.name]
        rows = []
        for each in compare(counts, total(launched)):
            theirs = "?" if each.theirs is None else f"{each.theirs:,.0f}"
            apart = "" if each.apart is None else f"{100 * each.apart:+.2f} %"
            rows.append((language(each.quantity), f"{each.ours:,.0f}", theirs, apart))
        header = (NOTHING, phrase("model"), verbatim("ncu"), phrase("difference"))
        console.print(table(map(language, header), rows, words=(0,)))
