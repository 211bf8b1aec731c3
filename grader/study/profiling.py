"""A kernel under Nsight Compute, with the baseline and the ladder's first rung beside it."""

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Literal

from grader import base
from grader.judge import GradingContext, Program
from grader.results import (
    PROFILE_SCHEMA,
    PROFILE_VERSION,
    LabRef,
    ProfileDocument,
    ProfiledSide,
    ProfiledSize,
)
from grader.study.profiler import ProfiledJob
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

Role = Literal["own", "first"]


class WatchedKernel(Record):
    """One kernel to profile at some sizes."""

    ready: Program
    name: str
    first: bool  # the ladder's first rung, and not the submission


def make_document(
    watched: Sequence[WatchedKernel],
    seen: Sequence[ProfiledJob],
    context: GradingContext,
    gpu: str,
    report: str,
) -> ProfileDocument:
    """seen: of every plan of every kernel, in this order."""
    left = list(seen)
    sizes: dict[str, ProfiledSize] = {}
    for kernel in watched:
        for plan in kernel.ready.plans:
            found = left.pop(0)
            role: Role = "first" if kernel.first else "own"
            sides = [ProfiledSide(role=role, name=kernel.name, launches=found.own)]
            if found.baseline:
                launches = found.baseline
                sides.append(ProfiledSide(role="baseline", name=found.variant, launches=launches))
            known = sizes.get(str(plan.size))
            operands = context.lab.problem.operands(plan.size)
            sizes[str(plan.size)] = ProfiledSize(
                size=plan.size.dims,
                amount=context.lab.problem.amount(plan.size),
                inputs=sum(each.bytes for each in operands if each.given),
                sides=(*(known.sides if known else ()), *sides),
            )
    own = next(each for each in watched if not each.first).ready.submission
    return ProfileDocument(
        schema=PROFILE_SCHEMA,
        version=PROFILE_VERSION,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        student=own.student,
        sha256=own.sha256,
        lab=LabRef(id=context.lab.id, sha256=context.lab.sha256),
        problem=context.lab.problem.info(),
        gpu=gpu,
        report=report,
        sizes=tuple(sizes.values()),
    )


# --- what it says -----------------------------------------------------------------------------


def figures(
    size: ProfiledSize, document: ProfileDocument, arch: str
) -> list[tuple[Message, tuple[str, ...]]]:
    """Rows: a quantity, and its value for each side."""
    sm, problem = base.gpus.multiprocessor_of(arch), document.problem

    def speed(side: ProfiledSide) -> str:
        return _(problem.speed(size.amount, side.milliseconds) if side.milliseconds else None)

    def occupancy(side: ProfiledSide) -> str:
        if side.warps is None:
            return "?"
        return f"{side.warps:.1f}" + (f" of {sm.warps}" if sm else "")

    def conflicts(side: ProfiledSide) -> str:
        if side.conflicts is None or side.wavefronts is None:
            return "?"
        share = f" ({100 * side.conflicts / side.wavefronts:.0f} %)" if side.wavefronts else ""
        return f"{side.conflicts:,.0f}{share}"

    rows = (
        (phrase("{unit} under the profiler", unit=problem.unit), speed),
        (phrase("asked of the L1 by global loads, GB"), lambda side: _giga(side.asked)),
        (phrase("read from L2, GB"), lambda side: _giga(side.from_l2)),
        (phrase("read from DRAM, GB"), lambda side: _giga(side.from_dram)),
        (phrase("FFMA of the instructions"), lambda side: _percent(side.ffma_share)),
        (phrase("issue slots used"), lambda side: _percent(side.issue_active, 1)),
        (phrase("wavefronts by bank conflicts"), conflicts),
        (phrase("resident warps on an SM"), occupancy),
    )
    return [(name, tuple(value(side) for side in size.sides)) for name, value in rows]


def _(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _giga(value: float | None) -> str:
    return _(None if value is None else value / 1e9)


def _percent(value: float | None, scale: float = 100) -> str:
    return "?" if value is None else f"{scale * value:.1f} %"


def side_name(side: ProfiledSide, document: ProfileDocument) -> str:
    if side.role == "baseline":
        return f"{document.problem.baseline} ({side.name})"
    return side.name
