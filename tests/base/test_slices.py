"""GPUs and MIG slices by what CUDA and a stand-in NVML say of them."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base import KernelInfo, gpus
from grader.base.gpus import (
    MULTIPROCESSORS,
    GpuInfo,
    arch_of_type,
    occupancy,
    with_peaks,
)
from grader.base.native import Native
from grader.build.toolchain import find_toolchain
from grader.report.measurement import measurements, sentence
from grader.results import LaunchKind
from grader.results.case import Watched
from grader.run.gpu.watch import GpuWatch, Nvml
from grader.run.probe import gpu_uuid, gpus_of_host
from ptxsim.plan import Dim3, Size
from ptxsim.text import verbatim
from tests.support.files import beside, table, values
from tests.support.pages import H200, gpu_result, timed
from tests.support.places import ROOT
from tests.support.product import GEMM

CARD, SLICE = "GPU-1", "MIG-2"
A100, ONE_OF_SEVEN = json.loads(beside(__file__, "nvml.json")).values()


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the stand-in know these devices; returns what NVML says of one of them."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "support" / "standin"))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)

    def ask(uuid: str | None, **devices: dict[str, Any]) -> Nvml:
        known = {CARD: A100, **devices}
        monkeypatch.setenv("STANDIN_NVML", json.dumps(known))
        return Nvml(uuid)

    yield ask
    sys.modules.pop("pynvml", None)


def described(nvml: Nvml, **changes: Any) -> GpuInfo:
    """A slice with 14 of 108 multiprocessors, unless the changes say otherwise."""
    given: dict[str, Any] = {
        "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "uuid": SLICE,
        "driver": "580",
        "memory_bytes": 4864 << 20,
        "compute_capability": "8.0",
        "multiprocessors": 14,
        "sm_clock_mhz": 1410,
        "dram_gb_s": 1555.2,  # the whole card's
        **changes,
    }
    cuda = GpuInfo(**given)
    return with_peaks(cuda, cores=nvml.cores(), shared_dram_gb_s=nvml.dram_gb_s())


def test_a_slices_uuid_is_told_from_a_cards() -> None:
    raw = bytes(range(16))
    assert gpu_uuid(raw, "NVIDIA A100-SXM4-40GB").startswith("GPU-00010203-0405-")
    assert gpu_uuid(raw, "NVIDIA A100-SXM4-40GB MIG 1g.5gb").startswith("MIG-00010203-0405-")


def test_a_slice_has_its_own_peaks(nvml: Any) -> None:
    info = described(nvml(SLICE, **{SLICE: ONE_OF_SEVEN}))
    card = gpus.of(info)

    assert info.fp32_peak_tflops == pytest.approx(14 * 64 * 2 * 1.41e-3)
    assert info.dram_gb_s == pytest.approx(1555.2 / 8)
    assert card is not None
    assert (card.multiprocessors, card.dram_gb_s) == (14, info.dram_gb_s)
    assert gpus.find(info.name) is None
    product, slab = Size.of(m=4096, n=4096, k=4096), Size.of(m=1, n=65536, k=1024)
    assert GEMM.at(product).least_ms(info) == pytest.approx(
        2 / 3 * GEMM.work(product) / 2.527e12 * 1e3, rel=1e-3
    )
    assert GEMM.at(slab).least_ms(info) == pytest.approx(4 * 65537 * 1024 / 194.4e9 * 1e3)


@pytest.mark.parametrize(
    ("own", "whole", "eighths"),
    [(9984, 40960, 2), (20096, 40960, 4), (40320, 40960, 8), (9856, 81559, 1), (33280, 143771, 2)],
)
def test_a_slice_has_whole_eighths_of_the_bandwidth(
    nvml: Any, own: int, whole: int, eighths: int
) -> None:
    card, part = {**A100, "MemoryInfo": whole << 20}, {**ONE_OF_SEVEN, "MemoryInfo": own << 20}
    said = nvml(SLICE, **{CARD: card, SLICE: part})
    assert said.dram_gb_s() == pytest.approx(1555.2 * eighths / 8)


@pytest.mark.parametrize("devices", [{}, {SLICE: {"ComputeRunningProcesses": []}}], ids=str)
def test_a_slice_whose_share_nobody_tells_has_no_known_bandwidth(
    nvml: Any, devices: dict[str, Any]
) -> None:
    info = described(nvml(SLICE, **devices))
    assert info.dram_gb_s is None
    assert gpus.of(info) is None
    assert info.fp32_peak_tflops is not None
    assert GEMM.at(Size.of(m=1, n=65536, k=1024)).least_ms(info) < 0.1


def test_a_card_newer_than_the_table_has_its_peak_by_its_cores(nvml: Any) -> None:
    newer = {"name": "NVIDIA Z900", "uuid": CARD, "compute_capability": "13.0"}
    info = described(nvml(CARD), **newer)
    assert info.fp32_peak_tflops == pytest.approx(6912 * 2 * 1.41e-3)
    assert info.dram_gb_s == 1555.2
    assert described(nvml(None), **newer).fp32_peak_tflops is None


def test_a_card_is_watched_whole(nvml: Any) -> None:
    watch = GpuWatch(nvml(CARD))
    watch.begin()
    sight = watch.look()
    assert sight is not None
    assert (sight.clock_mhz, [str(each) for each in sight.slowed]) == (1410, ["power cap"])
    assert sight.disturbance is None
    assert sight.unseen == ()


def test_a_slice_is_watched_as_far_as_nvml_lets_us(nvml: Any) -> None:
    hot = {"ClockInfo.SM": 1200, "CurrentClocksThrottleReasons": 0x20}
    sight = GpuWatch(nvml(SLICE, **{CARD: hot, SLICE: ONE_OF_SEVEN})).look()
    assert sight is not None  # clock and heat are those of the card
    assert (sight.clock_mhz, str(sight.disturbance)) == (1200, "slowed by temperature")

    mine = {**ONE_OF_SEVEN, "ComputeRunningProcesses": [os.getpid(), 4711]}
    watch = GpuWatch(nvml(SLICE, **{CARD: {}, SLICE: ONE_OF_SEVEN}))
    nvml(SLICE, **{CARD: {}, SLICE: mine})
    watch.begin()  # both have appeared since: a real NVML shows ours alone
    nvml(SLICE, **{CARD: {}, SLICE: {**mine, "ComputeRunningProcesses": [os.getpid(), 815]}})
    sight = watch.look()
    assert sight is not None
    assert sight.clock_mhz is None
    unseen = [str(each) for each in sight.unseen]
    assert unseen == ["the SM clock", "what slows the clock down"]
    assert "815" in str(sight.disturbance)


@pytest.mark.parametrize("uuid", [None, "GPU-of-another", SLICE])
def test_what_nvml_does_not_know_is_not_watched(nvml: Any, uuid: str | None) -> None:
    watch = GpuWatch(nvml(uuid))
    watch.begin()
    assert watch.look() is None


def test_the_report_says_what_was_not_watched() -> None:
    case = timed(1024, 10, 20)
    assert case.timing
    watched = Watched(sm_clock_mhz=None, slowed=(), unseen=(verbatim("the SM clock"),))
    timing = msgspec.structs.replace(case.timing, watched=watched)
    result = gpu_result(cases=(msgspec.structs.replace(case, timing=timing),))
    (measured,) = measurements(result)
    words = str(sentence(measured, GEMM.info(), result.environment.gpu))
    assert words.endswith("not watched, as NVML does not tell: the SM clock")


def test_nothing_in_the_working_directory_runs_when_slices_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"{SLICE},MIG-3")
    gpus_of_host()
    assert not (tmp_path / "ran").exists()


# --- the table of GPUs and occupancy


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


def held(capability: int, block: Dim3, registers: int, shared: int) -> gpus.Occupancy | None:
    kernel = KernelInfo(name="k", registers=registers, shared_bytes=shared, spill_bytes=0)
    launch = LaunchKind(kernel="k", grid=(1, 1, 1), block=block, shared_bytes=0, times=1)
    return occupancy(MULTIPROCESSORS[capability], kernel, launch)


@pytest.mark.parametrize(
    ("capability", "block", "registers", "shared", "blocks", "limit"),
    values(__file__, "occupancy.txt"),
)
def test_occupancy(
    capability: int,
    block: tuple[int, int, int],
    registers: int,
    shared: int,
    blocks: int,
    limit: str,
) -> None:
    found = held(capability, block, registers, shared)
    assert found is not None
    assert (found.blocks, found.limited_by) == (blocks, limit)
    assert found.warps == blocks * -(-block[0] // 32) <= found.of_warps


@pytest.fixture(scope="module")
def calculator() -> Path:
    flags = ("-O1", f"-I{find_toolchain().include}")
    source = Path(__file__).with_name("occupancy_header.cpp")
    return Native(name="occupancy", sources=(source,), shared=False, flags=flags).compiled()


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
        found = held(capability, (threads, 1, 1), registers, shared)
        ours = found.blocks if found else 0
        assert ours == blocks, (capability, threads, registers, shared)


def test_a_block_that_does_not_fit_has_no_occupancy() -> None:
    assert held(75, (32, 1, 1), 32, 65 * 1024) is None
    assert held(75, (1024, 1, 1), 128, 0) is None


@pytest.mark.parametrize(
    ("arch", "capability"), [("sm_60", 61), ("sm_61", 61), ("sm_70", 70), ("sm_90a", 90)]
)
def test_host_code_sees_a_gpu_of_its_own_generation(arch: str, capability: int) -> None:
    gpu = gpus.standing_for(arch)
    assert gpu.capability == capability
    assert gpu.memory is not None
    doubled = 2 * gpu.memory.clock_mhz * gpu.memory.bus_bits / 8 / 1000
    assert doubled == pytest.approx(gpu.dram_gb_s, rel=0.1)


@pytest.mark.parametrize(("name", "arch"), values(__file__, "types.txt"))
def test_a_type_as_batch_systems_write_it_has_an_architecture(name: str, arch: str | None) -> None:
    assert arch_of_type(name) == arch
