"""The corpus of benchmarks.bound_h200: every pattern is right, so its speed means something."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.bound_corpus import Pattern, patterns
from grader.grading.pipeline import grade
from grader.labs.lab import Case
from grader.model import Size, Verdict
from tests.support.bench import bench

PATTERNS = tuple(patterns())
QUICK = ("tile16_m_major", "split_8", "copied_wide_small", "m_major_small")


def test_there_are_thirty_patterns_of_different_names() -> None:
    assert len({each.name for each in PATTERNS}) == len(PATTERNS) >= 30


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.slow])
        for each in PATTERNS
    ],
)
def test_a_pattern_is_right_at_multiples_of_128(pattern: Pattern, tmp_path: Path) -> None:
    if pattern.source.startswith("cute") and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    case = Case(id="cpu-1", size=Size.of(m=256, n=128, k=128))
    lab = msgspec.structs.replace(bench().lab, cpu=(case,))
    graded = grade(
        pattern.write(tmp_path), msgspec.structs.replace(bench(), lab=lab), lambda _s, _d: None
    )

    said = [str(graded.result.error), *(str(each.message) for each in graded.result.findings)]
    assert graded.result.verdict is Verdict.AC, said
