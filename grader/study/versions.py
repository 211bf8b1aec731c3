"""One graded version of a kernel: what changed against the one before it, and what came of it.

Everything comes from the result document and the sources kept beside it, so versions can be
compared even after the file has changed.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from grader.base import Dims, Verdict
from grader.model import Advice, is_shown
from grader.report import kernel_rows
from grader.results import Result, Stored, StoreError, kept_sources, store
from ptxsim.findings import kernel_name
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

_LINES = 2_000  # of both versions; a diff of more may take minutes
_SHOWN = 200  # lines of a diff, with their surroundings


class VersionSpeed(Record):
    """Measured, or expected on a GPU where nothing was timed."""

    size: Dims
    value: float  # in the problem's unit
    ratio: float | None  # to the baseline; null: an estimate


class Diff(Record):
    """Between the sources of two versions."""

    added: int  # lines
    removed: int
    files: tuple[str, ...]  # that changed
    exact: bool  # false: too long for a diff; lines were counted regardless of their order
    lines: tuple[str, ...]  # the first of the diff, unified, each begun by "+", "-", " " or "@"
    more: int  # that follow them


class Version(Record):
    """One graded version."""

    number: int  # from 1
    sha256: str
    created: str
    verdict: Verdict
    points: float | None
    speed: VersionSpeed | None  # null: not timed, no explanation, or not accepted
    kernel: MainKernel | None
    kernels: tuple[str, ...]  # all of the build
    diff: Diff | None  # null: the first, or the sources of one were not kept
    changed: tuple[Message, ...]  # "registers 40 → 96"
    advice: tuple[Advice, ...]  # given for this version
    followed: tuple[Advice, ...]  # for the accepted version before; no longer given
    became: float | None  # how many times as fast as that one; null where they do not compare


class GradedVersion(Record):
    """A stored result and its sources."""

    result: Result
    sources: Mapping[str, str] | None  # null: not kept


def read_versions(documents: Iterable[Stored]) -> tuple[list[GradedVersion], list[Message]]:
    """These results with their sources, and one line for each that cannot be read any more."""
    found: list[GradedVersion] = []
    complaints: list[Message] = []
    for path, _ in documents:
        try:
            result = store.load(path)
        except StoreError as error:
            complaints.append(error.message)
            continue
        sources = kept_sources(path, result.submission.files)
        found.append(GradedVersion(result=result, sources=sources))
    return found, complaints


def make_version(
    each: GradedVersion, before: GradedVersion | None, earlier: Sequence[Version], card: str | None
) -> Version:
    result = each.result
    kernels = tuple(kernel_name(k.name) for k in result.build.kernels) if result.build else ()
    given = next((each for each in reversed(earlier) if each.verdict is Verdict.AC), None)
    kernel, speed = main_kernel(result), _speed(result, card)
    return Version(
        number=len(earlier) + 1,
        sha256=result.submission.sha256,
        created=result.created,
        verdict=result.verdict,
        points=result.score.total if result.score else None,
        speed=speed,
        kernel=kernel,
        kernels=kernels,
        diff=_diff(before.sources if before else None, each.sources),
        changed=tuple(_changes(earlier, kernel, kernels)),
        advice=result.explanation.advice if result.explanation else (),
        followed=_followed(result, given),
        became=_became(speed, given),
    )


def _speed(result: Result, card: str | None) -> VersionSpeed | None:
    if result.verdict is not Verdict.AC:
        return None
    timed = [(case, case.timing) for case in result.cases if case.timing]
    if timed:
        case, timing = max(timed, key=lambda pair: pair[0].amount)
        return VersionSpeed(size=case.size, value=timing.scored_speed, ratio=timing.scored_ratio)
    bounds = result.explanation.bounds if result.explanation else ()
    bound = next((bound for bound in bounds if bound.gpu == card), None)
    if bound is None:
        return None
    return VersionSpeed(size=bound.size, value=bound.speed, ratio=None)


def _changes(
    earlier: Sequence[Version], now: MainKernel | None, kernels: Sequence[str]
) -> Iterable[Message]:
    """Compare with the newest earlier version that compiled."""
    was = next((each.kernel for each in reversed(earlier) if each.kernel), None)
    if was is None or now is None:
        return
    if last := earlier[-1].kernels:
        names = [f"−{name}" for name in last if name not in kernels]
        names += [f"+{name}" for name in kernels if name not in last]
        if names:
            yield phrase("kernels {names}", names=", ".join(names))
    for what, before, after in (
        (phrase("tile {before} → {after}"), was.tile or "?", now.tile or "?"),
        (phrase("block {before} → {after}"), was.block or "?", now.block or "?"),
        (phrase("registers {before} → {after}"), was.registers, now.registers),
        (phrase("shared bytes {before} → {after}"), was.shared_bytes, now.shared_bytes),
        (phrase("spilled bytes {before} → {after}"), was.spill_bytes, now.spill_bytes),
    ):
        if before != after:
            yield what.given(before=before, after=after)


def _diff(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Diff | None:
    if before is None or after is None:
        return None
    added = removed = 0
    exact = True
    files = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    lines, shown = 0, list[str]()
    for name in files:
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        if (lines := lines + len(old) + len(new)) > _LINES:
            exact = False
            added += sum((Counter(new) - Counter(old)).values())
            removed += sum((Counter(old) - Counter(new)).values())
            continue
        rows = [*difflib.unified_diff(old, new, n=2, lineterm="")][2:]
        added += sum(row[0] == "+" for row in rows)
        removed += sum(row[0] == "-" for row in rows)
        shown += [f"@ {name}", *rows]
    counts = {"added": added, "removed": removed, "more": len(shown[_SHOWN:])}
    return Diff(**counts, files=tuple(files), exact=exact, lines=tuple(shown[:_SHOWN]))


def _followed(result: Result, given: Version | None) -> tuple[Advice, ...]:
    """List the advice for ``given`` that this accepted version does not need any more, as its
    machine code shows."""
    why = result.explanation
    if given is None or why is None or why.missing or result.verdict is not Verdict.AC:
        return ()
    if "advice" in why.withheld:
        return ()
    left = {(advice.rule, advice.idea) for advice in why.advice}
    gone = (advice for advice in given.advice if (advice.rule, advice.idea) not in left)
    return tuple(advice for advice in gone if is_shown(advice, why))


def _became(speed: VersionSpeed | None, given: Version | None) -> float | None:
    before = given.speed if given else None
    if not speed or not before or speed.size != before.size:
        return None
    return speed.value / before.value


# --- main kernel -------------------------------------------------------------------------------


class MainKernel(Record):
    name: str  # as the source writes it
    registers: int
    shared_bytes: int  # static and dynamic
    spill_bytes: int
    block: str  # "16×16"; "" when it is not known
    tile: str  # of the output for each block; "" when the grid does not show it
    resident: Message  # warps on a multiprocessor, and what limits them; empty: not known


def main_kernel(result: Result) -> MainKernel | None:
    rows = kernel_rows(result)
    why = result.explanation
    most = max(why.counts, key=lambda each: each.flops).name if why and why.counts else None
    # Without counts, the launched kernel with most registers stands for the work.
    launched = [row for row in rows if row.launch] or rows
    largest = max(launched, key=lambda row: row.kernel.registers, default=None)
    row = next((row for row in rows if row.kernel.name == most), largest)
    if row is None:
        return None
    tile = why.tile if why and most == row.kernel.name else None
    return MainKernel(
        name=kernel_name(row.kernel.name),
        registers=row.kernel.registers,
        shared_bytes=row.shared_bytes,
        spill_bytes=row.kernel.spill_bytes,
        block=row.block,
        tile=f"{tile.rows}×{tile.columns}" if tile and tile.rows and tile.columns else "",
        resident=row.resident,
    )
