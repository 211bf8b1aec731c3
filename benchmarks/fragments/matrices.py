"""Rows of matrices at random addresses: ldmatrix, stmatrix."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.fragments.kind import FRAGMENTS, Arguments, Kind

_WORDS = 1024  # as in matrices.cu
_ROWS = _WORDS // 4


def _arguments(store: bool, rng: np.random.Generator) -> Arguments:
    """What is stored lies apart: which of two rows in one place wins is open."""
    rows = [
        rng.permutation(_ROWS)[:32] if store else rng.integers(_ROWS, size=32)
        for _ in range(FRAGMENTS)
    ]
    return [
        rng.integers(1 << 32, size=(FRAGMENTS, _WORDS), dtype=np.uint32),
        np.array(rows, np.uint32),
        np.zeros((FRAGMENTS, _WORDS if store else 128), np.uint32),
    ]


KINDS = [
    Kind(f"{way}matrix {form}", "matrices.cu", f"{kernel}_{form}", 32, partial(_arguments, store))
    for way, kernel, store in (("ld", "load", False), ("st", "store", True))
    for form in ("x1", "x1_trans", "x2", "x2_trans", "x4", "x4_trans")
]
