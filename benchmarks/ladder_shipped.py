r"""The ladders that the package ships, and the tours' tables of them, from what was measured.

    python -m benchmarks.ladder_shipped [results/ladder/<GPU>.json …] \
        [--counted results/ladder/simulator.json]

Takes newly measured documents, one for each lab and GPU model, else those that are shipped; a tour
has the table of the last one. The texts of the rungs follow their headers; a rung that was not
measured stays without figures.
``--counted`` takes the bounds of its lab's rungs from ``grade ladder --device cpu --bounds``. A
figure that is older than its rung's source stays: the document has the hash of what was measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from benchmarks.measure import ROOT, table
from grader.report import size_name
from grader.results import store
from grader.results.ladders import SCHEMA_VERSION, Ladder, LadderStep, load_ladder
from grader.results.rungs import Rung, find_rungs
from grader.study.ladder_render import bound, three_digits

REFERENCE = ROOT / "reference"
SHIPPED = ROOT / "grader" / "results" / "ladders"
BEGIN, END = "<!-- python -m benchmarks.ladder_shipped -->\n", "<!-- end -->"
NOT_MEASURED = "not measured"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path, nargs="*")
    parser.add_argument("--counted", type=Path)
    options = parser.parse_args()
    counted = load_ladder(options.counted) if options.counted else None
    for measured in map(load_ladder, options.measured or sorted(SHIPPED.glob("*.json"))):
        assert measured.gpu, "not measured on a GPU"
        lab = measured.lab.id
        reference = REFERENCE / lab
        bounds = counted if counted and counted.lab.id == lab else None
        ladder = following(measured, find_rungs(reference), bounds)
        model = measured.gpu.name.lower().replace(" ", "-")
        store.write_document(SHIPPED / f"{lab}-{model}.json", ladder)
        tour = reference / "README.md"
        if tour.exists():
            tour.write_text(with_table(tour.read_text(), ladder))


def following(measured: Ladder, rungs: tuple[Rung, ...], counted: Ladder | None) -> Ladder:
    """The document with today's rungs. A rung is known by its idea: its number may move."""
    then = {idea(step.rung): step for step in measured.steps}
    now = {idea(step.rung): step for step in counted.steps} if counted else {}
    blank = LadderStep(rung=rungs[0], sha256=None, verdict=None, message="", speeds=())
    steps = []
    for rung in rungs:
        step = then.get(idea(rung), blank)
        step = msgspec.structs.replace(step, rung=rung)
        if (counts := now.get(idea(rung))) and counts.ceilings:
            step = msgspec.structs.replace(step, ceilings=counts.ceilings)
        steps.append(step)
    return msgspec.structs.replace(measured, version=SCHEMA_VERSION, steps=tuple(steps))


def idea(rung: Rung) -> str:
    return rung.name.partition("_")[2]


def with_table(tour: str, ladder: Ladder) -> str:
    """The tour with this document's tables: of the lesson, then of the other rungs. Unchanged
    where it asks for none."""
    if BEGIN not in tour:
        return tour
    before, _, rest = tour.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}{measured_table(ladder)}\n{END}{after}"


def measured_table(ladder: Ladder) -> str:
    sizes = [size_name(size) for size in ladder.sizes]
    header = ("rung", *sizes, *(f"≤ {gpu}" for gpu in ladder.untimed))
    lesson, *others = ([row(step, ladder) for step in steps] for steps in ladder.groups)
    rates = [f"{ladder.baseline(size) or 0:.1f}" for size in ladder.sizes]
    lesson.append([ladder.problem.baseline, *rates, *("" for _ in ladder.untimed)])
    tables = [table(header, lesson), *(table(header, rows) for rows in others)]
    return "\n\nDetours and research:\n\n".join(tables)


def row(step: LadderStep, ladder: Ladder) -> list[str]:
    marks = (" ●" if step.one_kernel else "") + (" *" if step.rung.trap else "")
    name = f"{step.rung.number} {idea(step.rung)}{marks}"
    cells = []
    for size in ladder.sizes:
        speed = step.at(size)
        nothing = "–" if step.verdict else NOT_MEASURED
        cells.append(f"{three_digits(speed.rate)} ({100 * speed.ratio:.1f})" if speed else nothing)
    return [name, *cells, *(bound(step, gpu) for gpu in ladder.untimed)]


if __name__ == "__main__":
    main()
