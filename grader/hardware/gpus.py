"""GPUs by published figures, and how many blocks of a kernel fit on one multiprocessor.

Per compute capability: CUDA C++ Programming Guide, tables "Technical Specifications per Compute
Capability" and "Throughput of Native Arithmetic Instructions"; allocation units from the tables of
NVIDIA's occupancy calculator. Latencies: the least that microbenchmarks report, of the L2 for
Volta (193) and Turing (188; both Jia et al., "Dissecting the NVidia Turing T4 GPU via
Microbenchmarking", 2019), of the L2 (200) and DRAM (290) for Ampere (Abdelkhalik et al.,
"Demystifying the Nvidia Ampere Architecture through Microbenchmarking and Instruction-level
Analysis", 2022); Hopper's were measured on an H200 (2026-11-21, ``python -m
benchmarks.calibration.latencies_h200``: 253 and 512 with reading the clock). Per GPU:
multiprocessors, boost clock and DRAM bandwidth as NVIDIA publishes them (see ``_GPUS``). FP32
peaks are computed: multiprocessors × lanes × 2 × clock.
"""

from __future__ import annotations

import msgspec

from grader.model import Dim3, GpuInfo, Occupancy, Record

_WARP = 32
_REGISTERS_UNIT = 256  # a warp gets registers in multiples of this
_SCHEDULERS = 4  # of one multiprocessor, except on the GP100
_GIB, _MIB = 1 << 30, 1 << 20


class Multiprocessor(Record):
    """Capacity and throughput per cycle of one SM of a compute capability."""

    fp32_lanes: int  # fused multiply-adds per cycle
    warps: int = 64
    blocks: int = 32
    shared_kib: int = 96  # for all resident blocks
    block_shared_kib: int = 48  # the most that one block can have, including its static part
    shared_unit: int = 128  # bytes; a block's shared memory is rounded up to a multiple
    shared_reserved: int = 1024  # bytes that the system takes from every block
    registers: int = 65536
    integer_lanes: int = 64  # additions per cycle
    schedulers: int = _SCHEDULERS  # warp instructions issued per cycle
    l2_latency: int = 188  # the lowest latency of a load that hits the L2, in cycles
    dram_latency: int = 290  # the same for a load that no cache holds

    def fp32_tflops(self, multiprocessors: int, clock_mhz: float) -> float:
        """The peak of this many SMs: a fused multiply-add is two operations."""
        return multiprocessors * self.fp32_lanes * 2 * clock_mhz * 1e6 / 1e12


class Memory(Record):
    """A device's own figures of its memory."""

    bytes: int
    clock_mhz: int
    bus_bits: int
    l2_bytes: int


class Gpu(Record):
    """One model of GPU."""

    name: str
    matches: str  # every word of it occurs in the driver's name of the device
    capability: int  # 90 means 9.0
    multiprocessors: int
    clock_mhz: float  # boost
    dram_gb_s: float  # decimal gigabytes
    l2_bytes_per_clock: int | None = None  # reads of all SMs together; None: not published
    device: str | None = None  # the driver's name, for GPUs that represent their capability
    memory: Memory | None = None  # of the same GPU

    @property
    def multiprocessor(self) -> Multiprocessor:
        return MULTIPROCESSORS[self.capability]

    @property
    def fp32_tflops(self) -> float:
        return self.multiprocessor.fp32_tflops(self.multiprocessors, self.clock_mhz)


def _before_ampere(lanes: int, shared_kib: int, block_shared_kib: int = 48) -> Multiprocessor:
    return Multiprocessor(
        fp32_lanes=lanes,
        shared_kib=shared_kib,
        block_shared_kib=block_shared_kib,
        shared_unit=256,
        shared_reserved=0,
    )


def _ampere_or_later(
    lanes: int, shared_kib: int, warps: int = 64, blocks: int = 32, integer_lanes: int = 64
) -> Multiprocessor:
    """One block can have all shared memory except the KiB that the system takes."""
    return Multiprocessor(
        fp32_lanes=lanes,
        warps=warps,
        blocks=blocks,
        shared_kib=shared_kib,
        block_shared_kib=shared_kib - 1,
        integer_lanes=integer_lanes,
    )


MULTIPROCESSORS = {
    60: msgspec.structs.replace(_before_ampere(64, 64), schedulers=2),
    61: _before_ampere(128, 96),
    62: _before_ampere(128, 64),
    70: _before_ampere(64, 96, 96),
    72: _before_ampere(64, 96, 96),
    75: msgspec.structs.replace(_before_ampere(64, 64, 64), warps=32, blocks=16),
    80: _ampere_or_later(64, 164),
    86: _ampere_or_later(128, 100, warps=48, blocks=16),
    87: _ampere_or_later(128, 164, warps=48, blocks=16),
    89: _ampere_or_later(128, 100, warps=48, blocks=24),
    90: msgspec.structs.replace(_ampere_or_later(128, 228), l2_latency=250, dram_latency=480),
    100: _ampere_or_later(128, 228, integer_lanes=128),
    103: _ampere_or_later(128, 228, integer_lanes=128),
    110: _ampere_or_later(128, 228, warps=48, blocks=24, integer_lanes=128),
    120: _ampere_or_later(128, 100, warps=48, blocks=24, integer_lanes=128),
    121: _ampere_or_later(128, 100, warps=48, blocks=24, integer_lanes=128),
}

# More specific names come before more general ones.
_GPUS = (
    # HGX B200 data sheet: 75 TFLOPS FP32, 8 TB/s for each GPU.
    Gpu(
        name="B200",
        matches="B200",
        capability=100,
        multiprocessors=148,
        clock_mhz=1965,
        dram_gb_s=8000,
        device="NVIDIA B200",
        memory=Memory(bytes=178 * _GIB, clock_mhz=3996, bus_bits=8192, l2_bytes=126 * _MIB),
    ),
    # RTX Blackwell white paper, GeForce RTX 5090: 104.8 TFLOPS, 1792 GB/s.
    Gpu(
        name="RTX 5090",
        matches="RTX 5090",
        capability=120,
        multiprocessors=170,
        clock_mhz=2407,
        dram_gb_s=1792,
        device="NVIDIA GeForce RTX 5090",
        memory=Memory(bytes=32 * _GIB, clock_mhz=14001, bus_bits=512, l2_bytes=96 * _MIB),
    ),
    # Data sheet H200: 67 TFLOPS FP32, 4.8 TB/s. L2 as H100's.
    Gpu(
        name="H200",
        matches="H200",
        capability=90,
        multiprocessors=132,
        clock_mhz=1980,
        dram_gb_s=4800,
        l2_bytes_per_clock=5120,
        device="NVIDIA H200",
        memory=Memory(bytes=150109880320, clock_mhz=3201, bus_bits=6016, l2_bytes=60 * _MIB),
    ),
    # Data sheet H100: PCIe 51 TFLOPS, 2 TB/s; SXM 67 TFLOPS, 3.35 TB/s. The architecture's white
    # paper gives the L2's read bandwidth as A100's.
    Gpu(
        name="H100 PCIe",
        matches="H100 PCIe",
        capability=90,
        multiprocessors=114,
        clock_mhz=1755,
        dram_gb_s=2000,
        l2_bytes_per_clock=5120,
    ),
    Gpu(
        name="H100",
        matches="H100",
        capability=90,
        multiprocessors=132,
        clock_mhz=1980,
        dram_gb_s=3350,
        l2_bytes_per_clock=5120,
    ),
    # Data sheet A100: 19.5 TFLOPS; 40 GB 1555 GB/s, 80 GB PCIe 1935 GB/s, 80 GB SXM 2039 GB/s.
    # White paper: L2 read bandwidth 5120 bytes per clock, against V100's 2048.
    Gpu(
        name="A100 80GB PCIe",
        matches="A100 80GB PCIe",
        capability=80,
        multiprocessors=108,
        clock_mhz=1410,
        dram_gb_s=1935,
        l2_bytes_per_clock=5120,
        device="NVIDIA A100 80GB PCIe",
        memory=Memory(bytes=80 * _GIB, clock_mhz=1512, bus_bits=5120, l2_bytes=40 * _MIB),
    ),
    Gpu(
        name="A100 80GB",
        matches="A100 80GB",
        capability=80,
        multiprocessors=108,
        clock_mhz=1410,
        dram_gb_s=2039,
        l2_bytes_per_clock=5120,
    ),
    Gpu(
        name="A100 40GB",
        matches="A100",
        capability=80,
        multiprocessors=108,
        clock_mhz=1410,
        dram_gb_s=1555,
        l2_bytes_per_clock=5120,
    ),
    # Data sheet V100: SXM2 15.7 TFLOPS, PCIe 14 TFLOPS, 900 GB/s.
    Gpu(
        name="V100 PCIe",
        matches="V100 PCIE",
        capability=70,
        multiprocessors=80,
        clock_mhz=1380,
        dram_gb_s=900,
        l2_bytes_per_clock=2048,
        device="Tesla V100-PCIE-16GB",
        memory=Memory(bytes=16 * _GIB, clock_mhz=877, bus_bits=4096, l2_bytes=6 * _MIB),
    ),
    Gpu(
        name="V100",
        matches="V100",
        capability=70,
        multiprocessors=80,
        clock_mhz=1530,
        dram_gb_s=900,
        l2_bytes_per_clock=2048,
    ),
    # Data sheet L40S: 91.6 TFLOPS, 864 GB/s.
    Gpu(
        name="L40S",
        matches="L40S",
        capability=89,
        multiprocessors=142,
        clock_mhz=2520,
        dram_gb_s=864,
    ),
    # Ada white paper, GeForce RTX 4090: 82.6 TFLOPS, 1008 GB/s.
    Gpu(
        name="RTX 4090",
        matches="RTX 4090",
        capability=89,
        multiprocessors=128,
        clock_mhz=2520,
        dram_gb_s=1008,
        device="NVIDIA GeForce RTX 4090",
        memory=Memory(bytes=24 * _GIB, clock_mhz=10501, bus_bits=384, l2_bytes=72 * _MIB),
    ),
    # GA102 white paper: GeForce RTX 3090 35.6 TFLOPS, 936 GB/s; RTX A6000 38.7 TFLOPS, 768 GB/s.
    Gpu(
        name="RTX 3090",
        matches="RTX 3090",
        capability=86,
        multiprocessors=82,
        clock_mhz=1695,
        dram_gb_s=936,
        device="NVIDIA GeForce RTX 3090",
        memory=Memory(bytes=24 * _GIB, clock_mhz=9751, bus_bits=384, l2_bytes=6 * _MIB),
    ),
    Gpu(
        name="RTX A6000",
        matches="RTX A6000",
        capability=86,
        multiprocessors=84,
        clock_mhz=1800,
        dram_gb_s=768,
    ),
    # Turing white paper, GeForce RTX 2080 Ti, reference boost: 13.4 TFLOPS, 616 GB/s.
    Gpu(
        name="RTX 2080 Ti",
        matches="2080 Ti",
        capability=75,
        multiprocessors=68,
        clock_mhz=1545,
        dram_gb_s=616,
        device="NVIDIA GeForce RTX 2080 Ti",
        memory=Memory(bytes=11 * _GIB, clock_mhz=7000, bus_bits=352, l2_bytes=11 * _MIB // 2),
    ),
    # GeForce GTX 1070, product page: 1920 cores, boost 1683 MHz, 256 GB/s.
    Gpu(
        name="GTX 1070",
        matches="GTX 1070",
        capability=61,
        multiprocessors=15,
        clock_mhz=1683,
        dram_gb_s=256,
    ),
)
SHOWN = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")  # for the bounds in a result without a GPU


def known() -> tuple[Gpu, ...]:
    return _GPUS


def standing_for(arch: str) -> Gpu:
    """The GPU that host code sees when it is built for ``arch`` ("sm_80", "sm_90a").

    It has the newest capability in the table that is not newer than ``arch``.
    """
    capability = int("".join(filter(str.isdigit, arch)))
    cards = sorted((gpu for gpu in _GPUS if gpu.device), key=lambda gpu: gpu.capability)
    return next((gpu for gpu in reversed(cards) if gpu.capability <= capability), cards[0])


def find(name: str) -> Gpu | None:
    """The model that a device's name belongs to ("NVIDIA A100-SXM4-40GB"); None when unknown."""
    said = name.replace("-", " ").lower().split()
    for gpu in _GPUS:
        if all(any(word in part for part in said) for word in gpu.matches.lower().split()):
            return gpu
    return None


def of(info: GpuInfo) -> Gpu | None:
    """The GPU of a result: the driver's figures, and the rest from the table. None when too
    little is known about it."""
    model = find(info.name)
    capability = int(info.compute_capability.replace(".", ""))
    multiprocessors = info.multiprocessors or (model.multiprocessors if model else None)
    dram_gb_s = info.dram_gb_s or (model.dram_gb_s if model else None)
    if capability not in MULTIPROCESSORS or not multiprocessors or not dram_gb_s:
        return model
    return Gpu(
        name=model.name if model else info.name,
        matches=info.name,
        capability=capability,
        multiprocessors=multiprocessors,
        clock_mhz=info.sm_clock_mhz,
        dram_gb_s=dram_gb_s,
        l2_bytes_per_clock=model.l2_bytes_per_clock if model else None,
    )


def occupancy(
    sm: Multiprocessor, *, block: Dim3, registers: int, shared_bytes: int
) -> Occupancy | None:
    """How many blocks one multiprocessor holds at a time, and which limit stops the next one.

    registers: per thread. shared_bytes: static and dynamic, of one block. None when not even one
    block fits.
    """
    warps = -(-block[0] * block[1] * block[2] // _WARP)
    per_warp = -(-max(registers, 1) * _WARP // _REGISTERS_UNIT) * _REGISTERS_UNIT
    # Each scheduler has its own registers, which cannot serve another scheduler's warps.
    by_registers = sm.registers // sm.schedulers // per_warp * sm.schedulers
    # A block must fit four schedulers everywhere, even on the GP100, which has two.
    fits = warps <= sm.registers // _SCHEDULERS // per_warp * _SCHEDULERS
    shared = -(-shared_bytes // sm.shared_unit) * sm.shared_unit + sm.shared_reserved
    limits = {
        "blocks": sm.blocks,
        "warps": sm.warps // warps,
        "registers": by_registers // warps if fits else 0,
        "shared memory": sm.shared_kib * 1024 // shared if shared_bytes else sm.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    if not limits[limit]:
        return None
    blocks = limits[limit]
    return Occupancy(blocks=blocks, warps=blocks * warps, of_warps=sm.warps, limited_by=limit)
