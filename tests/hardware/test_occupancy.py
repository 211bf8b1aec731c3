"""Occupancy against the calculator that comes with the toolkit (``cuda_occupancy.h``)."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from grader.hardware.gpus import MULTIPROCESSORS, occupancy
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import compile_native

SOURCE = Path(__file__).with_name("occupancy_header.cpp")
CONFIGURATIONS = 4000


@pytest.fixture(scope="module")
def calculator() -> Path:
    flags = ("-O1", f"-I{find_toolchain().include}")
    return compile_native("occupancy", [SOURCE], shared=False, flags=flags)


def test_occupancy_is_the_calculators(calculator: Path) -> None:
    draw = random.Random(2026)
    # The calculator knows no capability between 9.0 and 10.0 and follows the major version.
    capabilities = sorted(MULTIPROCESSORS)
    asked: list[tuple[int, int, int, int]] = [
        (80, 32, 255, 0),
        (80, 96, 168, 0),
        (75, 256, 32, 4992),
    ]
    while len(asked) < CONFIGURATIONS:
        capability = draw.choice(capabilities)
        most = MULTIPROCESSORS[capability].block_shared_kib * 1024
        shared = draw.choice((0, draw.randint(1, 8192), draw.randint(1, most)))
        asked.append((capability, draw.randint(1, 1024), draw.randint(1, 255), shared))
    lines = []
    for capability, threads, registers, shared in asked:
        sm = MULTIPROCESSORS[capability]
        device = (capability // 10, capability % 10, sm.warps * 32, sm.registers)
        memory = (sm.shared_kib << 10, sm.block_shared_kib << 10, sm.shared_reserved)
        lines.append(" ".join(map(str, (*device, *memory, threads, registers, shared))))
    done = subprocess.run(
        [calculator], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = [int(word) for word in done.stdout.split()]
    assert len(answers) == len(asked)
    for (capability, threads, registers, shared), blocks in zip(asked, answers, strict=True):
        found = occupancy(
            MULTIPROCESSORS[capability],
            block=(threads, 1, 1),
            registers=registers,
            shared_bytes=shared,
        )
        ours = found.blocks if found else 0
        assert ours == blocks, (capability, threads, registers, shared)
