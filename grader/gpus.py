"""GPUs by the figures of their makers, and how many blocks of a kernel fit on one multiprocessor.

Per compute capability: CUDA C++ Programming Guide, tables "Technical Specifications per Compute
Capability" and "Throughput of Native Arithmetic Instructions"; allocation units from the tables of
NVIDIA's occupancy calculator. Latencies: the least that microbenchmarks report, of the L2 for
Volta (193) and Turing (188; both Jia et al., "Dissecting the NVidia Turing T4 GPU via
Microbenchmarking", 2019), of the L2 (200) and DRAM (290) for Ampere (Abdelkhalik et al.,
"Demystifying the Nvidia Ampere Architecture through Microbenchmarking and Instruction-level
Analysis", 2022); Hopper's were measured on an H200 (2026-11-21, ``python -m
benchmarks.latencies_h200``: 253 and 512 with reading the clock). Per GPU: multiprocessors, boost
clock and DRAM bandwidth as NVIDIA publishes them (see ``_GPUS``). FP32 peaks are computed:
multiprocessors × lanes × 2 × clock.
"""

from __future__ import annotations

from grader.model import Dim3, GpuInfo, Occupancy, Record

_WARP = 32
_REGISTERS_UNIT = 256  # registers are handed to a warp in units of this many
_WARPS_UNIT = 4  # one warp scheduler's registers cannot serve another's warps


class Multiprocessor(Record):
    """What one SM of a compute capability holds and does in a clock cycle."""

    fp32_lanes: int  # fused multiply-adds for each cycle
    warps: int = 64
    blocks: int = 32
    shared_kib: int = 96  # for all resident blocks
    shared_unit: int = 128  # bytes; a block's shared memory is rounded up to a multiple
    shared_reserved: int = 1024  # bytes of every block that the system takes
    registers: int = 65536
    integer_lanes: int = 64  # additions for each cycle
    schedulers: int = 4  # warp instructions issued in each cycle
    l2_latency: int = 188  # cycles, at least, of a load that hits the L2
    dram_latency: int = 290  # the same of what no cache holds


class Gpu(Record):
    """One model of GPU."""

    name: str
    matches: str  # every word of it stands in the driver's name of the device
    capability: int  # 90 means 9.0
    multiprocessors: int
    clock_mhz: float  # boost
    dram_gb_s: float  # decimal gigabytes
    l2_bytes_per_clock: int | None = None  # reads of all SMs together; None: not published

    @property
    def multiprocessor(self) -> Multiprocessor:
        return MULTIPROCESSORS[self.capability]

    @property
    def fp32_tflops(self) -> float:
        lanes = self.multiprocessors * self.multiprocessor.fp32_lanes
        return lanes * 2 * self.clock_mhz * 1e6 / 1e12


MULTIPROCESSORS = {
    60: Multiprocessor(fp32_lanes=64, shared_kib=64, shared_unit=256, shared_reserved=0),
    61: Multiprocessor(fp32_lanes=128, shared_unit=256, shared_reserved=0),
    62: Multiprocessor(fp32_lanes=128, shared_kib=64, shared_unit=256, shared_reserved=0),
    70: Multiprocessor(fp32_lanes=64, shared_unit=256, shared_reserved=0),
    72: Multiprocessor(fp32_lanes=64, shared_unit=256, shared_reserved=0),
    75: Multiprocessor(
        fp32_lanes=64, warps=32, blocks=16, shared_kib=64, shared_unit=256, shared_reserved=0
    ),
    80: Multiprocessor(fp32_lanes=64, shared_kib=164),
    86: Multiprocessor(fp32_lanes=128, warps=48, blocks=16, shared_kib=100),
    87: Multiprocessor(fp32_lanes=128, warps=48, blocks=16, shared_kib=164),
    89: Multiprocessor(fp32_lanes=128, warps=48, blocks=24, shared_kib=100),
    90: Multiprocessor(fp32_lanes=128, shared_kib=228, l2_latency=250, dram_latency=480),
    100: Multiprocessor(fp32_lanes=128, integer_lanes=128, shared_kib=228),
    103: Multiprocessor(fp32_lanes=128, integer_lanes=128, shared_kib=228),
    110: Multiprocessor(fp32_lanes=128, integer_lanes=128, warps=48, blocks=24, shared_kib=228),
    120: Multiprocessor(fp32_lanes=128, integer_lanes=128, warps=48, blocks=24, shared_kib=100),
    121: Multiprocessor(fp32_lanes=128, integer_lanes=128, warps=48, blocks=24, shared_kib=100),
}

# A more special name stands before a more general one.
_GPUS = (
    # Data sheet H200: 67 TFLOPS FP32, 4.8 TB/s. L2 as H100's.
    Gpu(
        name="H200",
        matches="H200",
        capability=90,
        multiprocessors=132,
        clock_mhz=1980,
        dram_gb_s=4800,
        l2_bytes_per_clock=5120,
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
    ),
    # GA102 white paper: GeForce RTX 3090 35.6 TFLOPS, 936 GB/s; RTX A6000 38.7 TFLOPS, 768 GB/s.
    Gpu(
        name="RTX 3090",
        matches="RTX 3090",
        capability=86,
        multiprocessors=82,
        clock_mhz=1695,
        dram_gb_s=936,
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
SHOWN = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")  # what a result without a GPU is compared with


def known() -> tuple[Gpu, ...]:
    return _GPUS


def find(name: str) -> Gpu | None:
    """The model that a device's name belongs to ("NVIDIA A100-SXM4-40GB"); None when unknown."""
    said = name.replace("-", " ").lower().split()
    for gpu in _GPUS:
        if all(any(word in part for part in said) for word in gpu.matches.lower().split()):
            return gpu
    return None


def of(info: GpuInfo) -> Gpu | None:
    """The GPU of a result: what its driver said, the rest from the table. None when too little is
    known to say what it can do."""
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
    """How many blocks one multiprocessor holds at a time, and what stops the next one.

    registers: per thread. shared_bytes: static and dynamic, of one block. None when not even one
    block fits.
    """
    warps = -(-block[0] * block[1] * block[2] // _WARP)
    per_warp = -(-max(registers, 1) * _WARP // _REGISTERS_UNIT) * _REGISTERS_UNIT
    by_registers = sm.registers // per_warp // _WARPS_UNIT * _WARPS_UNIT
    shared = -(-shared_bytes // sm.shared_unit) * sm.shared_unit + sm.shared_reserved
    limits = {
        "blocks": sm.blocks,
        "warps": sm.warps // warps,
        "registers": by_registers // warps,
        "shared memory": sm.shared_kib * 1024 // shared if shared_bytes else sm.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    if not limits[limit]:
        return None
    blocks = limits[limit]
    return Occupancy(blocks=blocks, warps=blocks * warps, of_warps=sm.warps, limited_by=limit)
