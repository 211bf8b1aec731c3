"""The tables of ``benchmarks.bound_h200``, from what its ``--raw FILE`` kept. Needs no GPU:
`python -m benchmarks.bound_report FILE`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.measure import table
from ptxsim.records import Record


class Measured(Record):
    """One kernel at one size."""

    name: str
    corpus: bool
    n: int
    speed: float
    about: float
    most: float
    resource: str  # of the estimate

    @property
    def share(self) -> float:
        return self.speed / self.about


class Raw(Record):
    where: str
    rows: tuple[Measured, ...]


def report(raw: Raw) -> None:
    print(f"{raw.where}\n")
    rows = [
        [
            *(each.name, str(each.n), f"{each.speed:.4g}", f"{each.most:.4g}"),
            *(f"{each.about:.4g}", each.resource, f"{100 * each.share:.1f} %"),
        ]
        for each in raw.rows
    ]
    heads = ["kernel", "N", "TFLOPS", "at most", "about", "limit", "of the estimate"]
    print(table(heads, rows))
    for title, part in (
        ("all kernels", raw.rows),
        ("the corpus alone", [each for each in raw.rows if each.corpus]),
    ):
        if len(part) > 1:
            print(f"\n{title}: {len(part)} measurements")
            summarise(part)


def summarise(rows: Sequence[Measured]) -> None:
    clock, about, most = (
        np.array([getattr(row, name) for row in rows]) for name in ("speed", "about", "most")
    )
    print(f"rank correlation (Spearman) with the estimate {spearman(clock, about):.4f}")
    print(f"rank correlation (Spearman) with the bound {spearman(clock, most):.4f}")
    print(f"median share of the estimate {np.median(clock / about):.3f}")
    for title, limit in (("bound", most), ("estimate", about)):
        over = [
            f"{row.name} {row.n} ({row.speed:.4g} of {value:.4g})"
            for row, value in zip(rows, limit, strict=True)
            if row.speed > value
        ]
        print(f"exceed their {title}: {', '.join(over) or 'none'}")


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


if __name__ == "__main__":
    report(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Raw))
