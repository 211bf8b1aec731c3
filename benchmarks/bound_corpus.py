"""The kernels of ``benchmarks.bound_h200`` that are no rungs: patterns that tutorials teach.

``bound_patterns/patterns.txt`` names each with its source and parameters, which become macros. All
take sizes that are multiples of 128. ``prepared`` does what needs no GPU.

    python -m benchmarks.bound_corpus NAME…    what the model says of patterns at 4096³ on an H200
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import cubes, tools
from grader.base import gpus
from grader.base.errors import Rejected
from grader.base.explanation import Bound
from ptxsim.records import Plan, Record

FOLDER = Path(__file__).parent / "bound_patterns"


class Ready(Record):
    name: str
    corpus: bool
    cubin: str
    plan: Plan
    bound: Bound


class Pattern(Record):
    """One kernel of the corpus."""

    name: str
    source: str  # without ".cu"
    parameters: tuple[str, ...]  # "BM=64"

    def write(self, folder: Path) -> Path:
        """A submission folder with its source."""
        defines = "".join(f"#define {each.replace('=', ' ')}\n" for each in self.parameters)
        target = folder / self.name
        target.mkdir(parents=True, exist_ok=True)
        text = (FOLDER / f"{self.source}.cu").read_text()
        # The header comes first, so that no macro meets its names.
        (target / "sgemm.cu").write_text(f'#include "gemm.cuh"\n{defines}#line 1\n{text}')
        return target


def patterns() -> Iterator[Pattern]:
    """Raises ValueError with a line that is none."""
    for line in (FOLDER / "patterns.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        source, *parameters = rest.split() or [""]
        if not colon or not (FOLDER / f"{source}.cu").is_file():
            raise ValueError(f"not a pattern: {line}")
        yield Pattern(name=name.strip(), source=source, parameters=tuple(parameters))


def prepared(folder: Path, n: int, arch: str, card: gpus.Gpu, corpus: bool) -> Ready | None:
    """Built, recorded and bounded; None when it cannot be."""
    bench = tools()
    try:
        ready = cubes(folder, (n,), bench, arch)
    except Rejected:
        return None
    why = ready.explain(card)
    if not why.bounds:
        return None
    return Ready(
        name=folder.name,
        corpus=corpus,
        cubin=str(ready.built.cubin),
        plan=ready.plans[0],
        bound=why.bounds[0],
    )


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="sgemm-bounds-") as scratch:
        for each in patterns():
            if each.name not in names:
                continue
            folder = each.write(Path(scratch))
            card = gpus.find("H200")
            assert card
            ready = prepared(folder, 4096, "sm_90", card, corpus=True)
            if ready is None:
                print(f"{each.name}: it cannot be built or bounded here")
                continue
            most, about = ready.bound.most, ready.bound
            print(
                f"{each.name}: at most {most.speed:.2f} TFLOPS ({most.resource}), "
                f"about {about.speed:.2f} ({about.resource})"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
