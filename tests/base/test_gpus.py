"""The table of GPUs against what NVIDIA prints, and occupancy against the occupancy calculator."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import msgspec
import pytest

from grader.base import gpus
from grader.base.gpus import MULTIPROCESSORS, arch_of_type, occupancy
from grader.base.native import compile_native
from grader.build.toolchain import find_toolchain
from tests.support.files import table
from tests.support.pages import H200


@pytest.mark.parametrize(("device", "model", "speed"), table(__file__, "gpus.txt"))
def test_models_are_found_by_the_drivers_name_and_peak_as_published(
    device: str, model: str, speed: str
) -> None:
    found = gpus.find(device)

    assert found is not None and found.name == model
    assert found.fp32_tflops == pytest.approx(float(speed), rel=0.01)
    assert found.source


@pytest.mark.parametrize(("model", "kind", "sums", "published"), table(__file__, "peaks.txt"))
def test_peaks_of_tensor_cores_are_those_published(
    model: str, kind: str, sums: str, published: str
) -> None:
    found = next(each for each in gpus.known() if each.name == model)

    assert found.tensor_tflops(kind, sums) == pytest.approx(float(published), rel=0.015)
    assert found.peak_tflops(f"{kind}.{sums}") == found.tensor_tflops(kind, sums)
    assert found.peak_tflops("f32") == found.fp32_tflops


def test_types_that_tensor_cores_do_not_take_have_no_peak() -> None:
    turing, pascal = gpus.find("RTX 2080 Ti"), gpus.find("GTX 1070")

    assert turing is not None and turing.tensor_tflops("bf16", "f32") is None
    assert pascal is not None and pascal.tensor_tflops("f16", "f32") is None
    assert pascal.peak_tflops("f16.f32") == pascal.fp32_tflops


def test_an_unknown_card_is_known_by_what_its_driver_says() -> None:
    info = msgspec.structs.replace(
        H200,
        name="NVIDIA GeForce RTX 9999",
        sm_clock_mhz=2000,
        compute_capability="8.9",
        multiprocessors=100,
        dram_gb_s=500,
    )
    found = gpus.of(info)

    assert gpus.find(info.name) is None
    assert found is not None and found.fp32_tflops == pytest.approx(51.2)


@pytest.mark.parametrize(
    ("capability", "block", "registers", "shared", "blocks", "limit"),
    [
        (80, (256, 1, 1), 128, 33 * 1024, 2, "registers"),  # 16 warps of 4096 registers
        (80, (256, 1, 1), 32, 40 * 1024, 4, "shared memory"),  # 164 KiB / 41 KiB
        (80, (1024, 1, 1), 32, 8448, 2, "warps"),
        (75, (1024, 1, 1), 32, 8448, 1, "warps"),
        (80, (32, 1, 1), 16, 0, 32, "blocks"),
        (86, (256, 1, 1), 42, 0, 5, "registers"),
        (90, (128, 1, 1), 255, 34 * 1024, 2, "registers"),
        (90, (256, 1, 1), 0, 0, 8, "warps"),
    ],
)
def test_occupancy(
    capability: int,
    block: tuple[int, int, int],
    registers: int,
    shared: int,
    blocks: int,
    limit: str,
) -> None:
    sm = MULTIPROCESSORS[capability]
    found = occupancy(sm, block=block, registers=registers, shared_bytes=shared)
    assert found is not None
    assert (found.blocks, found.limited_by) == (blocks, limit)
    assert found.warps == blocks * -(-block[0] // 32) <= found.of_warps


@pytest.fixture(scope="module")
def calculator() -> Path:
    flags = ("-O1", f"-I{find_toolchain().include}")
    return compile_native(
        "occupancy", [Path(__file__).with_name("occupancy_header.cpp")], shared=False, flags=flags
    )


def test_occupancy_is_the_calculators(calculator: Path) -> None:
    """The one that comes with the toolkit (``cuda_occupancy.h``)."""
    draw = random.Random(2026)
    # The calculator knows no capability between 9.0 and 10.0 and follows the major version.
    capabilities = sorted(MULTIPROCESSORS)
    asked = [(80, 32, 255, 0), (80, 96, 168, 0), (75, 256, 32, 4992)]
    while len(asked) < 4000:
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
        sm = MULTIPROCESSORS[capability]
        found = occupancy(sm, block=(threads, 1, 1), registers=registers, shared_bytes=shared)
        ours = found.blocks if found else 0
        assert ours == blocks, (capability, threads, registers, shared)


def test_a_block_that_does_not_fit_has_no_occupancy() -> None:
    sm = MULTIPROCESSORS[75]

    assert occupancy(sm, block=(32, 1, 1), registers=32, shared_bytes=65 * 1024) is None
    assert occupancy(sm, block=(1024, 1, 1), registers=128, shared_bytes=0) is None


@pytest.mark.parametrize(
    ("arch", "capability"), [("sm_60", 61), ("sm_61", 61), ("sm_70", 70), ("sm_90a", 90)]
)
def test_host_code_sees_a_gpu_of_its_own_generation(arch: str, capability: int) -> None:
    gpu = gpus.standing_for(arch)
    assert gpu.capability == capability
    assert gpu.memory is not None
    doubled = 2 * gpu.memory.clock_mhz * gpu.memory.bus_bits / 8 / 1000
    assert doubled == pytest.approx(gpu.dram_gb_s, rel=0.1)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        *(("2080ti", "sm_75"), ("rtx_2080_ti", "sm_75"), ("a100", "sm_80"), ("h200", "sm_90")),
        *(("A100-SXM4-80GB", "sm_80"), ("v100", "sm_70"), ("nvidia_geforce_rtx_4090", "sm_89")),
        *(("a10", None), ("rtx", None), ("1g.5gb", None), ("", None)),
    ],
)
def test_a_type_as_batch_systems_write_it_has_an_architecture(name: str, arch: str | None) -> None:
    assert arch_of_type(name) == arch
