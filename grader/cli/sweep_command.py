"""``grade sweep SUBMISSION``: one kernel over many sizes, and over values of its macros."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from grader.base import UsageError, gpus, one_line
from grader.cli import console as progress
from grader.cli.bench import check_place, open_bench
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, make_size, with_plans
from grader.cli.console import DONE, NOT_ACCEPTED, say, spoken, to_stdout
from grader.cli.options import OptionGroup, flag, option
from grader.cli.pictures import Pictures
from grader.cli.shared_options import CARD, DEVICE, OUT, SANDBOX, SUBMISSION, Device
from grader.judge import GradingContext
from grader.labs import Lab, Submission, load_submission
from grader.report import size_name
from grader.results import store
from grader.run import first_gpu_uuid
from grader.sandbox import Mode
from grader.study import Point, Sweep, run_sweep, sweepable, variants_of
from grader.study import sweep_render as render
from ptxsim.plan import Size
from ptxsim.text import phrase

_MOST_POINTS = 1024
_DEFINE = re.compile(r"([A-Za-z_]\w{0,63})=(.+)", re.ASCII)
_VALUE = re.compile(r"-?[A-Za-z0-9_.]{1,32}", re.ASCII)  # a number, a name, true


class SweepOptions(OptionGroup):
    """Build, check and time one kernel at many sizes, and for every combination of values of its
    macros. Without a GPU it shows bounds, registers, occupancy and spills in place of times. A
    sweep that was interrupted resumes."""

    submission: Path = SUBMISSION
    sizes: str | None = option(
        "each dimension: 512,1000 or FIRST:LAST:STEP, such as 1024:8192:1024; or MxNxK "
        "(default: the lab's largest timed size)",
        "LIST",
    )
    define: tuple[str, ...] = option(
        "values of a macro that the source lets -D set (#ifndef NAME); may be repeated: every "
        "combination is tried",
        "NAME=V1,V2",
    )
    lab: LabName = LAB
    device: Device = DEVICE
    out: Path = OUT
    sandbox: Mode = SANDBOX
    force: bool = flag("measure again what is stored")
    gpu: gpus.Gpu | None = CARD
    markdown: bool = flag("print the table as Markdown on stdout")
    pictures: Pictures


def run(chosen: SweepOptions, console: Console) -> int:
    lab = sweepable(with_plans(chosen_lab(chosen.lab)))
    sizes = _sizes(chosen.sizes, lab)
    check_place(chosen.submission, lab, chosen.out)
    submission = load_submission(chosen.submission, lab.problem.interface.main)
    values = dict(_macro(each, submission) for each in chosen.define)
    if len(values) < len(chosen.define):
        twice = phrase("--define: a name appears twice; list its values: --define BM=64,128")
        raise UsageError(twice)
    sweep = Sweep(submission=submission, variants=variants_of(values), sizes=sizes)
    if (points := len(sweep.variants) * len(sizes)) > _MOST_POINTS:
        many = phrase("{points} points; at most {most}: leave out values or sizes")
        raise UsageError(many.given(points=points, most=_MOST_POINTS))
    context = open_bench(lab, chosen.device, chosen.sandbox, console, card=chosen.gpu)
    uuid = first_gpu_uuid() if context.gpu_arch else None
    tell = partial(_tell, console=console)
    with progress.stages(submission.student, console) as told:
        found = run_sweep(sweep, context, chosen.out, uuid, told, force=chosen.force, found=tell)
    _show(found, sweep, context, chosen, console)
    return NOT_ACCEPTED if all(point.dropped for point in found) else DONE


def _tell(point: Point, stored: bool, console: Console) -> None:
    name = " ".join(filter(None, (render.defines_name(point), size_name(point.size))))
    new = phrase("dropped") if point.dropped else phrase("done")
    what = phrase("stored") if stored else new
    say(console, phrase("{place}: {what}", place=one_line(name), what=what))


def _show(
    points: Sequence[Point],
    sweep: Sweep,
    context: GradingContext,
    chosen: SweepOptions,
    console: Console,
) -> None:
    estimated = (each.gpu for point in points for each in point.estimates)
    shown = render.SweepFacts(
        student=sweep.submission.student,
        problem=context.lab.problem.info(),
        arch=context.gpu_arch or context.lab.architectures[0],
        card=next(estimated, None),
    )
    language = spoken(console)
    picture = render.picture(points, shown, language)
    if chosen.markdown:
        file = chosen.pictures.shown if picture else None
        to_stdout(render.markdown(points, shown, file.name if file else None, language))
    else:
        console.print(render.terminal(points, shown, language))
    device, sha256 = "gpu" if context.gpu_arch else "cpu", sweep.submission.sha256
    document = store.document_path(chosen.out, context.lab.id, shown.student, sha256, device)
    target = document.with_name(f"{document.stem}-sweep-{sweep.name}.html")
    store.write(target, render.html(points, shown, language).encode())
    say(console, phrase("page: {file}", file=str(target)))
    if picture is not None:
        chosen.pictures.write(picture, console)
    elif chosen.pictures.shown and not all(point.dropped for point in points):
        say(console, phrase("no picture: it takes two sizes, or a macro"))


# --- what the options say ---------------------------------------------------------------------


def _macro(asked: str, submission: Submission) -> tuple[str, tuple[str, ...]]:
    """``BM=64,128`` → the name and its values. Raises UsageError."""
    match = _DEFINE.fullmatch(asked)
    values = tuple(dict.fromkeys(match[2].split(","))) if match else ()
    if not match or not all(map(_VALUE.fullmatch, values)):
        odd = phrase("--define {asked}: expected NAME=VALUE,VALUE, such as BM=64,128")
        raise UsageError(odd.given(asked=one_line(asked)))
    name, encoded = match[1], match[1].encode()
    lines = f"#ifndef {name} / #define {name} {values[0]} / #endif"
    texts = b"\n".join(submission.contents.values())
    if not re.search(rb"\b%s\b" % encoded, texts):
        unknown = phrase(
            "--define {name}: no source file mentions {name}; write in {main}: {lines}"
        )
        raise UsageError(unknown.given(name=name, main=submission.main, lines=lines))
    asks = re.search(rb"#[ \t]*(ifn?def|if|elif)\b[^\n]{0,400}\b%s\b" % encoded, texts)
    sets = rb"#[ \t]*define[ \t]+%s\b|\bconst\w*\s[^;{}]{0,400}\b%s\s*=" % (encoded, encoded)
    if not asks and re.search(sets, texts):
        fixed = phrase(
            "--define {name}: the source sets {name} itself, so that -D cannot; write: {lines}"
        )
        raise UsageError(fixed.given(name=name, lines=lines))
    return name, values


def _sizes(words: str | None, lab: Lab) -> tuple[Size, ...]:
    """``1024:8192:1024,512,100x200x300`` → sizes, as listed. Raises UsageError."""
    if words is None:
        return (max((case.size for case in lab.performance), key=lab.problem.amount),)
    found = (size for part in words.split(",") for size in _some_sizes(part.strip(), lab))
    return tuple(dict.fromkeys(found))


def _some_sizes(part: str, lab: Lab) -> list[Size]:
    dims = lab.problem.dims
    numbers = re.split(r"[:x]", part)
    many = ":" in part
    if (
        not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in numbers)
        or ("x" in part and (many or len(numbers) != len(dims)))
        or len(numbers) not in ((2, 3) if many else (1, len(dims)))
    ):
        shape = "x".join(dim.name.upper() for dim in dims)
        odd = phrase(
            "--sizes {asked}: expected a size such as 1024, a range such as 1024:8192:1024, "
            "or {shape}"
        )
        raise UsageError(odd.given(asked=one_line(part), shape=shape))
    values = [int(each) for each in numbers]
    found = [values * len(dims) if len(values) == 1 else values]
    if many:
        first, last, *step = values
        by = step[0] if step else first
        if by < 1 or last < first or (last - first) // by >= _MOST_POINTS:
            wrong = phrase(
                "--sizes {asked}: expected FIRST:LAST:STEP with FIRST ≤ LAST, and at most {most} "
                "sizes"
            )
            raise UsageError(wrong.given(asked=part, most=_MOST_POINTS))
        found = [[n] * len(dims) for n in range(first, last + 1, by)]
    return [make_size(extents, f"--sizes {part}", lab) for extents in found]
