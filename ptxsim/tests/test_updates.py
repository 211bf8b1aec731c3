"""Statements such as ``bins[x]++`` by several threads: the advice is one that helps."""

from pathlib import Path

import numpy as np
import pytest

from harness import compiled, engine, sentence
from ptxsim import Module
from ptxsim.findings.finding import Severity

SOURCE = (Path(__file__).parent / "kernels" / "updates.cu").read_text()
LOST = "several threads read, change and write the same element"


@pytest.mark.parametrize(
    ("kernel", "blocks", "says"),
    [
        ("histogram", 1, f"{LOST}: thread"),
        ("histogram", 1, "a barrier does not help: use atomicAdd"),
        ("total_of_warps", 1, "a barrier helps only if no two threads change an element between"),
        ("total_of_blocks", 2, f"between blocks: {LOST}: block"),
        ("total_of_blocks", 2, "no barrier helps: use atomicAdd"),
        ("tree", 1, "with no __syncthreads() (or, within a warp, __syncwarp()) between them"),
    ],
)
def test_the_advice_fits(kernel: str, blocks: int, says: str) -> None:
    numbers, out = np.arange(64, dtype=np.int32), np.zeros(16, np.int32)
    module = Module(compiled(SOURCE, "sm_80")[0], engine=engine())
    found = module.kernel(kernel)[blocks, 64](numbers, out).findings
    errors = [sentence(each) for each in found if each.severity is Severity.ERROR]
    assert any(says in each for each in errors), errors
