"""GPUs and MIG slices by what CUDA and a stand-in NVML say of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base import gpus
from grader.base.gpus import least_ms, with_peaks
from grader.base.result import GpuInfo, Watched
from grader.report.measurement import measurements, sentence
from grader.run.gpu.watch import GpuWatch, Nvml
from grader.run.probe import gpu_uuid, gpus_of_host
from ptxsim.message import verbatim
from ptxsim.records import Size
from tests.support.pages import gpu_result, timed
from tests.support.places import ROOT
from tests.support.product import GEMM

CARD, SLICE = "GPU-1", "MIG-2"
A100 = {
    "ClockInfo.SM": 1410,
    "CurrentClocksThrottleReasons": 0x4,
    "ComputeRunningProcesses": [],
    "NumGpuCores": 6912,
    "MaxClockInfo.MEM": 1215,
    "MemoryBusWidth": 5120,
    "MemoryInfo": 40960 << 20,
}
ONE_OF_SEVEN = {
    "DeviceHandleFromMigDeviceHandle": CARD,
    "ComputeRunningProcesses": [],
    "MemoryInfo": 4864 << 20,
}


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
    assert card is not None and card.l2_bytes_per_clock is None
    assert (card.multiprocessors, card.dram_gb_s) == (14, info.dram_gb_s)
    assert gpus.find(info.name) is None
    product, slab = Size.of(m=4096, n=4096, k=4096), Size.of(m=1, n=65536, k=1024)
    assert least_ms(*GEMM.least(product), info) == pytest.approx(
        2 / 3 * GEMM.work(product) / 2.527e12 * 1e3, rel=1e-3
    )
    assert least_ms(*GEMM.least(slab), info) == pytest.approx(4 * 65537 * 1024 / 194.4e9 * 1e3)


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
    assert least_ms(*GEMM.least(Size.of(m=1, n=65536, k=1024)), info) < 0.1


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
