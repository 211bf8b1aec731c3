"""Advice is such that it helps: for statements such as ``bins[x]++`` by several threads, barriers
that are missing, loops that wait."""

import re
from pathlib import Path

import numpy as np
import pytest

from harness import compiled, engine, sentence
from ptxsim import Module
from ptxsim.adapters import TRITON_WORDS
from ptxsim.findings.event_table import SENTENCES
from ptxsim.findings.finding import Severity
from ptxsim.outcome import SimLimits

SOURCE = (Path(__file__).parent / "kernels" / "updates.cu").read_text()
LINES = SOURCE.splitlines()
LOST = "several threads read, change and write the same element"


@pytest.mark.parametrize(
    ("kernel", "blocks", "says"),
    [
        ("histogram", 1, f"{LOST}: thread"),
        ("histogram", 1, "a barrier does not help: use atomicAdd"),
        ("total_of_warps", 1, "a barrier helps only if no two threads change an element between"),
        ("total_of_blocks", 2, f"between blocks: {LOST}: block"),
        ("total_of_blocks", 2, "no barrier helps: use atomicAdd"),
        ("reads_too_early", 1, "; one is missing after line {STORED}, before line {LOADED}"),
        (
            "overwrites_too_early",
            1,
            "missing after line {LAST}, before the next iteration comes to line {NEXT}",
        ),
        ("within_a_branch", 1, "between them (block (0,0,0))\n"),
        ("spins_on_a_plain_load", 2, "read it through a volatile pointer"),
        ("never_ends", 1, "does this loop end?"),
        ("tree", 1, "with no __syncthreads() (or, within a warp, __syncwarp()) between them"),
    ],
)
def test_the_advice_fits(kernel: str, blocks: int, says: str) -> None:
    lines = {line.split("// ")[-1]: str(number) for number, line in enumerate(LINES, 1)}
    says = re.sub(r"{(.*?)}", lambda mark: lines[mark[1]], says)
    errors = "".join(f"{each}\n" for each in said(kernel, blocks))
    assert says in errors, errors


@pytest.mark.parametrize(
    ("kernel", "blocks"), [("waits_twice", 1), ("spins_on_a_volatile_load", 2)]
)
def test_nothing_is_said_of_right_ones(kernel: str, blocks: int) -> None:
    assert not said(kernel, blocks)


# Triton's compiler makes no such code.
NOT_OF_TRITON = {
    "TRAP",
    "STACK_OVERFLOW",
    "BAD_TEXTURE",
    "BAD_SURFACE",
    "OUT_OF_SURFACE",
    "BEFORE_GRID_WAIT",
}
NOT_OF_TRITON |= {"COPY_NOT_COMMITTED", "MBARRIER_NOT_FENCED", "MISALIGNED", "EXTERN_ARRAYS_MEET"}


def test_triton_hears_its_own_words() -> None:
    for event, texts in SENTENCES.items():
        for text in texts.values() if isinstance(texts, dict) else [texts]:
            for cuda, own in TRITON_WORDS.items():
                text = text.replace(cuda, own)
            named = re.search(r"__\w|cuda|atomic[A-Z]|grid\.sync|thread_scope", text)
            assert event in NOT_OF_TRITON or "extern __shared__" in text or not named, text
    module = Module(compiled(SOURCE, "sm_80")[0], engine=engine(), words=TRITON_WORDS)
    numbers, out = np.arange(64, dtype=np.int32), np.zeros(16, np.int32)
    assert "; no barrier helps: use tl.atomic_add" in str(
        module.kernel("total_of_blocks")[2, 64](numbers, out)
    )


def said(kernel: str, blocks: int) -> list[str]:
    numbers, out = np.arange(64, dtype=np.int32), np.zeros(16, np.int32)
    launched = Module(compiled(SOURCE, "sm_80")[0], engine=engine()).kernel(kernel)[blocks, 64]
    found = launched(numbers, out, limits=SimLimits(seconds=0.5, steps=1 << 20)).findings
    return [sentence(each) for each in found if each.severity is Severity.ERROR]
