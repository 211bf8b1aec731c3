"""What an H200, or another GPU here, makes of programs that mean to please the model alone:

    python -m benchmarks.model_cheats

Each cheat of tests/model/cheats is graded by itself, at the size at which it is explained.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from benchmarks.measure import ROOT, gpus_here, machine, on_gpu, table
from grader.labs.lab import Case
from grader.run.protocol import quietly
from grader.study import grade_and_explain
from ptxsim.plan import Size

FOLDER = ROOT / "tests" / "model" / "cheats"


def names(folder: Path = FOLDER) -> tuple[str, ...]:
    """The cheats in the order in which sgemm.cu lists them."""
    return tuple(re.findall(r"^ +(\w+)::run,$", (folder / "sgemm.cu").read_text(), re.MULTILINE))


def size_of(place: int, edge: int = 1024, deep: int = 1024) -> Size:
    """That of the cheat at this place, from 0 on."""
    return Size.of(m=edge, n=edge, k=deep + 32 * (place + 1))


def main() -> None:
    print(f"{gpus_here()[0]}, {machine()}\n", flush=True)
    shared, rows = on_gpu(), []
    for place, name in enumerate(names()):
        lab = msgspec.structs.replace(
            shared.lab,
            correctness=(Case(id="small", size=size_of(place, 256, 0)),),
            performance=(Case(id="timed", size=size_of(place)),),
        )
        context = msgspec.structs.replace(shared, lab=lab)
        result = grade_and_explain(FOLDER, context, quietly).result
        why = result.explanation
        bound = next(iter(why.bounds), None) if why else None
        timings = [each.timing for each in result.cases if each.timing]
        measured = f"{timings[-1].scored_speed:.4g}" if timings else "-"
        rows.append([name, str(result.verdict.value), measured])
        if bound:
            low, high = bound.expected
            most = f"{bound.most.speed:.4g} {bound.most.resource}" if bound.most else ""
            rows[-1] += [f"{low:.4g} to {high:.4g}", bound.resource, most]
        else:
            said = result.error or (why.missing if why else None)
            rows[-1] += [str(said or "")[:60], "", ""]
        print(*rows[-1], sep=" | ", flush=True)
    head = ["cheat", "verdict", "measured, TFLOPS", "expected", "limit", "at most"]
    print("\n" + table(head, rows))


if __name__ == "__main__":
    main()
