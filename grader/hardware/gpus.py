"""GPUs by published figures, and how many blocks of a kernel fit on one multiprocessor.

The figures are in ``gpus.json``. Per compute capability: CUDA C++ Programming Guide, tables
"Technical Specifications per Compute Capability" and "Throughput of Native Arithmetic
Instructions"; allocation units from the tables of NVIDIA's occupancy calculator. Latencies: the
least that microbenchmarks report, of the L2 for Volta (193) and Turing (188; both Jia et al.,
"Dissecting the NVidia Turing T4 GPU via Microbenchmarking", 2019), of the L2 (200) and DRAM (290)
for Ampere (Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture through
Microbenchmarking and Instruction-level Analysis", 2022); Hopper's were measured on an H200
(2026-11-21, ``python -m benchmarks.calibration.latencies_h200``: 253 and 512 with reading the
clock). Per GPU: multiprocessors, boost clock and DRAM bandwidth as NVIDIA publishes them, with the
source beside them. FP32 peaks are computed: multiprocessors × lanes × 2 × clock.

Tensor cores: the rates per cycle follow from the white papers' peaks, without sparsity (V100 125,
RTX 2080 Ti 107.6, A100 312, H100 989 TFLOPS at 1830 MHz, B200 2250). mma.sync does not reach the
rate of wgmma on Hopper: 62.9 % of the peak on average, the most common shape 65 % (Luo et al.,
"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024);
``by_warps`` is above both, so that no bound is too low.
"""

from __future__ import annotations

from pathlib import Path

from grader.model import Dim3, GpuInfo, Occupancy, Record
from grader.model.decoding import decode

_WARP = 32
_REGISTERS_UNIT = 256  # a warp gets registers in multiples of this
_SCHEDULERS = 4  # of one multiprocessor, except on the GP100

PEAK_UNIT = "TFLOPS"  # of fp32_tflops, as data sheets have it
# Types of the inputs and of the sums of products on tensor cores.
PRODUCTS = (("f16", "f16"), ("f16", "f32"), ("bf16", "f32"), ("tf32", "f32"))


class TensorCores(Record):
    """Fused multiply-adds per cycle of one SM's tensor cores, by the type of the inputs, without
    sparsity. 0: they do not take this type."""

    f16: int
    bf16: int = 0
    tf32: int = 0
    by_warps: float = 1.0  # the share that mma.sync can reach; wgmma reaches all

    def rate(self, kind: str, *, by_warps: bool) -> float:
        """Of inputs of ``kind``: "f16", "bf16", "tf32"."""
        full = {"f16": self.f16, "bf16": self.bf16, "tf32": self.tf32}[kind]
        return full * self.by_warps if by_warps else full


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
    tensor: TensorCores | None = None  # None: there are none, or nothing is known of them

    def fp32_tflops(self, multiprocessors: int, clock_mhz: float) -> float:
        """The peak of this many SMs."""
        return fp32_tflops(multiprocessors * self.fp32_lanes, clock_mhz)


class Memory(Record):
    """A device's own figures of its memory."""

    bytes: int
    clock_mhz: int
    bus_bits: int
    l2_bytes: int


class Gpu(Record):
    """One model of GPU."""

    name: str
    matches: str  # every word of it is a word of the driver's name of the device
    capability: int  # 90 means 9.0
    multiprocessors: int
    clock_mhz: float  # boost
    dram_gb_s: float  # decimal gigabytes
    l2_bytes_per_clock: int | None = None  # reads of all SMs together; None: not published
    device: str | None = None  # the driver's name, for GPUs that represent their capability
    memory: Memory | None = None  # of the same GPU
    source: str = ""  # of the figures; "" when the driver gave them
    tensor: TensorCores | None = None  # where they differ from others of the capability
    half_rate_sums: bool = False  # GeForce: tensor cores take twice as long for sums in FP32

    @property
    def multiprocessor(self) -> Multiprocessor:
        return MULTIPROCESSORS[self.capability]

    @property
    def fp32_tflops(self) -> float:
        return self.multiprocessor.fp32_tflops(self.multiprocessors, self.clock_mhz)

    def tensor_rate(self, kind: str, sums: str, *, by_warps: bool = False) -> float:
        """Fused multiply-adds per cycle of one SM. kind, sums: types of the inputs and of the sums:
        "f16", "bf16", "tf32"; "f16", "f32". 0: there are none of this kind."""
        cores = self.tensor or self.multiprocessor.tensor
        if cores is None:
            return 0.0
        rate = cores.rate(kind, by_warps=by_warps)
        return rate / 2 if self.half_rate_sums and sums == "f32" else rate

    def peak_tflops(self, arithmetic: str) -> float:
        """Of an arithmetic as problems name it: "f32", "f16.f32". Without tensor cores for it, the
        FP32 peak."""
        kind, _, sums = arithmetic.partition(".")
        tensor = self.tensor_tflops(kind, sums) if sums else None
        return tensor or self.fp32_tflops

    def tensor_tflops(self, kind: str, sums: str) -> float | None:
        """The peak of the tensor cores at the boost clock. Data sheets of Hopper give it at a lower
        clock than the FP32 peak. None: they do not take this type, or nothing is known of them."""
        rate = self.tensor_rate(kind, sums)
        return 2 * rate * self.multiprocessors * self.clock_mhz * 1e6 / 1e12 if rate else None


class _Table(Record):
    """gpus.json. A more specific name comes before a more general one."""

    multiprocessors: dict[int, Multiprocessor]  # by compute capability
    gpus: tuple[Gpu, ...]


_TABLE = decode(Path(__file__).with_name("gpus.json").read_bytes(), _Table)
MULTIPROCESSORS = _TABLE.multiprocessors
SHOWN = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")  # for the bounds in a result without a GPU


def fp32_tflops(lanes: int, clock_mhz: float) -> float:
    """The peak of this many FP32 lanes: a fused multiply-add is two operations."""
    return 2 * lanes * clock_mhz * 1e6 / 1e12


def known() -> tuple[Gpu, ...]:
    return _TABLE.gpus


def capability_of(arch: str) -> int:
    """90 of "sm_90" and of "sm_90a"."""
    return int("".join(filter(str.isdigit, arch)))


def standing_for(arch: str) -> Gpu:
    """The GPU that host code sees when it is built for ``arch`` ("sm_80", "sm_90a").

    It has the newest capability in the table that is not newer than ``arch``.
    """
    capability = capability_of(arch)
    cards = sorted((gpu for gpu in known() if gpu.device), key=lambda gpu: gpu.capability)
    return next((gpu for gpu in reversed(cards) if gpu.capability <= capability), cards[0])


def find(name: str) -> Gpu | None:
    """The model that a device's name belongs to ("NVIDIA A100-SXM4-40GB"); None when unknown.

    A MIG slice ("NVIDIA A100-SXM4-40GB MIG 1g.5gb") is none: it has a part of the card's figures.
    """
    said = set(name.replace("-", " ").lower().split())
    if "mig" in said:
        return None
    return next((gpu for gpu in known() if said.issuperset(gpu.matches.lower().split())), None)


def of(info: GpuInfo) -> Gpu | None:
    """The GPU of a result: the driver's figures, and the rest from the table. None when too
    little is known about it. A MIG slice has the driver's figures only."""
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
        tensor=model.tensor if model else None,
        half_rate_sums=model.half_rate_sums if model else False,
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
