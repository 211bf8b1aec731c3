"""The GPUs we know, the properties that host code sees, and the fastest that each can be."""

import re
from math import prod
from pathlib import Path
from typing import Protocol

import msgspec

from grader.base.errors import UsageError, one_line
from grader.base.records import KernelInfo, decode
from ptxsim.plan import MAX_REGISTERS, REGISTER_UNIT, Dim3, Record
from ptxsim.text import phrase

_WARP = 32
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


class Multiprocessor(Record):
    """Capacity and throughput per cycle of one SM of a compute capability."""

    fp32_lanes: int  # fused multiply-adds per cycle
    warps: int = 64
    blocks: int = 32
    shared_kib: int = 96  # for all resident blocks
    block_shared_kib: int = 48  # the most that one block can have, including its static part
    shared_unit: int = 128  # bytes; a block's shared memory is rounded up to a multiple
    shared_reserved: int = 1024  # bytes that the system takes from every block
    registers: int = MAX_REGISTERS
    integer_lanes: int = 64  # additions per cycle
    fp64_lanes: int | None = None  # fused multiply-adds of FP64 per cycle; None: not known
    schedulers: int = _SCHEDULERS  # warp instructions issued per cycle
    l2_latency: int = 188  # the lowest latency of a load that hits the L2, in cycles
    dram_latency: int = 290  # the same for a load that no cache holds
    tensor: TensorCores | None = None  # None: there are none, or nothing is known of them

    @property
    def threads(self) -> int:
        return self.warps * _WARP


class Memory(Record):
    bytes: int
    clock_mhz: int
    bus_bits: int
    l2_bytes: int


class Gpu(Record):
    name: str
    matches: str  # every word of it is a word of the driver's name of the device
    capability: int  # 90 means 9.0
    multiprocessors: int
    clock_mhz: float  # boost
    dram_gb_s: float  # decimal gigabytes
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
        return fp32_tflops(self.multiprocessors * self.multiprocessor.fp32_lanes, self.clock_mhz)

    def tensor_rate(self, kind: str, sums: str, *, by_warps: bool = False) -> float:
        """Fused multiply-adds per cycle of one SM. kind, sums: types of the inputs and of the sums:
        "f16", "bf16", "tf32"; "f16", "f32". 0: there are none of this kind."""
        cores = self.tensor or self.multiprocessor.tensor
        if cores is None:
            return 0.0
        rate = {"f16": cores.f16, "bf16": cores.bf16, "tf32": cores.tf32}[kind]
        slower = 2 if self.half_rate_sums and sums == "f32" else 1
        return rate * (cores.by_warps if by_warps else 1) / slower

    def peak_tflops(self, arithmetic: str) -> float:
        """Return the peak of an arithmetic as problems name it: "f32", "f16.f32", "f16.f32/3".
        Without tensor cores for it, the FP32 peak."""
        types, products = split_arithmetic(arithmetic)
        kind, _, sums = types.partition(".")
        tensor = self.tensor_tflops(kind, sums) if sums else None
        return tensor / products if tensor else self.fp32_tflops

    def tensor_tflops(self, kind: str, sums: str) -> float | None:
        """The peak of the tensor cores at the boost clock. Data sheets of Hopper give it at a lower
        clock than the FP32 peak. None: they do not take this type, or nothing is known of them."""
        rate = self.tensor_rate(kind, sums)
        return 2 * rate * self.multiprocessors * self.clock_mhz * 1e6 / 1e12 if rate else None

    @property
    def memory_bytes(self) -> int:
        """The memory of a GPU that represents its capability."""
        assert self.memory is not None
        return self.memory.bytes

    def host_figures(self) -> tuple[int, ...]:
        """The figures of a GPU that represents its capability behind cudaGetDeviceProperties and
        the occupancy functions, in the order in which the recorder's main.cpp reads them."""
        sm, memory = self.multiprocessor, self.memory
        assert memory is not None
        return (
            *(*divmod(self.capability, 10), self.multiprocessors, sm.threads, sm.blocks),
            *(sm.registers, memory.l2_bytes, round(self.clock_mhz * 1000)),
            *(memory.clock_mhz * 1000, memory.bus_bits, sm.shared_kib << 10),
            *(sm.block_shared_kib << 10, sm.shared_reserved, memory.bytes),
        )


class TensorPeak(Record):
    """Peak of a GPU's tensor cores with one pair of types."""

    arithmetic: str  # types of the inputs and of the sums: "f16.f32"
    tflops: float


class GpuInfo(Record):
    name: str
    uuid: str
    driver: str
    sm_clock_mhz: int  # the highest it may boost to
    memory_bytes: int
    compute_capability: str
    multiprocessors: int | None = None
    fp32_peak_tflops: float | None = None  # at sm_clock_mhz, without tensor cores
    dram_gb_s: float | None = None  # peak of the memory: clock × bus width
    tensor_peaks: tuple[TensorPeak, ...] = ()  # at sm_clock_mhz

    def peak_tflops(self, arithmetic: str) -> float | None:
        """Return the peak of an arithmetic as problems name it; None if not known."""
        if arithmetic == "f32":
            return self.fp32_peak_tflops
        types, products = split_arithmetic(arithmetic)
        found = (each.tflops for each in self.tensor_peaks if each.arithmetic == types)
        return next((tflops / products for tflops in found), None)


class Launched(Protocol):
    """A launch as it was recorded, counted or stored."""

    @property
    def block(self) -> Dim3: ...

    @property
    def shared_bytes(self) -> int: ...  # dynamic


class Occupancy(Record):
    """How much of a kernel one multiprocessor holds at a time."""

    blocks: int
    warps: int
    of_warps: int  # the most that the multiprocessor holds
    limited_by: str  # "registers", "shared memory", "warps" or "blocks"


class _Table(Record):
    """gpus.json. A more specific name comes before a more general one."""

    multiprocessors: dict[int, Multiprocessor]  # by compute capability
    gpus: tuple[Gpu, ...]


_TABLE = decode(Path(__file__).with_name("gpus.json").read_bytes(), _Table)
MULTIPROCESSORS = _TABLE.multiprocessors
SHOWN = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")  # for the bounds in a result without a GPU


def split_arithmetic(name: str) -> tuple[str, int]:
    """Return the types, and how many products on tensor cores stand for one: "f16.f32/3"."""
    types, _, products = name.partition("/")
    return types, int(products or 1)


def fp32_tflops(lanes: int, clock_mhz: float) -> float:
    """The peak of this many FP32 lanes: a fused multiply-add is two operations."""
    return 2 * lanes * clock_mhz * 1e6 / 1e12


def known() -> tuple[Gpu, ...]:
    return _TABLE.gpus


def capability_of(arch: str) -> int:
    """90 of "sm_90" and of "sm_90a"."""
    return int("".join(filter(str.isdigit, arch)))


def multiprocessor_of(arch: str | None) -> Multiprocessor | None:
    """Return the multiprocessor of "sm_90" or "sm_90a"; None where the table has none."""
    plain = arch.rstrip("af") if arch else ""
    return next((sm for number, sm in MULTIPROCESSORS.items() if plain == f"sm_{number}"), None)


def standing_for(arch: str) -> Gpu:
    """The GPU that host code sees when it is built for ``arch`` ("sm_80", "sm_90a").

    It has the newest capability in the table that is not newer than ``arch``.
    """
    capability = capability_of(arch)
    cards = sorted((gpu for gpu in known() if gpu.device), key=lambda gpu: gpu.capability)
    return next((gpu for gpu in reversed(cards) if gpu.capability <= capability), cards[0])


def shown(arch: str) -> tuple[Gpu, ...]:
    """The GPUs that a result without one has bounds for: first the one that stands for ``arch``,
    which every command speaks of."""
    others = (gpu for gpu in known() if gpu.name in SHOWN)
    return tuple(dict.fromkeys((standing_for(arch), *others)))


def named(words: str) -> Gpu:
    """The model that has this name, or a name with this in it. Raises UsageError."""
    within = (gpu for gpu in known() if words.lower() in gpu.name.lower())
    if found := find(words) or next(within, None):
        return found
    unknown = phrase("--gpu {wanted}: no such GPU; known are {names}", wanted=one_line(words))
    raise UsageError(unknown.given(names=", ".join(gpu.name for gpu in known())))


def find(name: str) -> Gpu | None:
    """The model that a device's name belongs to ("NVIDIA A100-SXM4-40GB"); None when unknown.

    A MIG slice ("NVIDIA A100-SXM4-40GB MIG 1g.5gb") is none: it has a part of the card's figures.
    """
    said = set(name.replace("-", " ").lower().split())
    if "mig" in said:
        return None
    return next((gpu for gpu in known() if said.issuperset(gpu.matches.lower().split())), None)


def arch_of_type(name: str) -> str | None:
    """The architecture of a GPU type as batch systems write it ("2080ti", "a100", "rtx_2080_ti");
    None if no model of the table, or several kinds of them, go by that name."""
    said = set(re.findall(r"[a-z]+|\d+", name.lower()))
    models = ((gpu, set(re.findall(r"[a-z]+|\d+", gpu.matches.lower()))) for gpu in known())
    found = {gpu.capability for gpu, words in models if said and (said <= words or words <= said)}
    return f"sm_{found.pop()}" if len(found) == 1 else None


def of(info: GpuInfo) -> Gpu | None:
    """The GPU of a result: the driver's figures, and the rest from the table. None when too
    little is known about it. A MIG slice has the driver's figures only."""
    model = find(info.name)
    multiprocessors = info.multiprocessors or (model.multiprocessors if model else None)
    dram_gb_s = info.dram_gb_s or (model.dram_gb_s if model else None)
    if _capability(info) not in MULTIPROCESSORS or not multiprocessors or not dram_gb_s:
        return model
    return _at_hand(info, model, multiprocessors, dram_gb_s)


def _capability(info: GpuInfo) -> int:
    return int(info.compute_capability.replace(".", ""))


def _at_hand(info: GpuInfo, model: Gpu | None, multiprocessors: int, dram_gb_s: float) -> Gpu:
    """model: what the table knows of such a card."""
    return Gpu(
        name=model.name if model else info.name,
        matches=info.name,
        capability=_capability(info),
        multiprocessors=multiprocessors,
        clock_mhz=info.sm_clock_mhz,
        dram_gb_s=dram_gb_s,
        tensor=model.tensor if model else None,
        half_rate_sums=model.half_rate_sums if model else False,
    )


def occupancy(sm: Multiprocessor, kernel: KernelInfo, launch: Launched) -> Occupancy | None:
    """How many blocks one multiprocessor holds at a time, and which limit stops the next one. None
    when not even one block fits."""
    warps = -(-prod(launch.block) // _WARP)
    shared_bytes = kernel.shared_bytes + launch.shared_bytes
    per_warp = -(-max(kernel.registers, 1) * _WARP // REGISTER_UNIT) * REGISTER_UNIT
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
    limit = min(limits, key=limits.__getitem__)
    blocks = limits[limit]
    if not blocks:
        return None
    return Occupancy(blocks=blocks, warps=blocks * warps, of_warps=sm.warps, limited_by=limit)


def with_peaks(cuda: GpuInfo, *, cores: int | None, shared_dram_gb_s: float | None) -> GpuInfo:
    """The GPU of a result, from what CUDA reports of it, or of a MIG slice of it.

    cores: FP32 lanes of the whole card, by NVML, for a card that is newer than our table.
    shared_dram_gb_s: of a slice, its part of the card's bandwidth, by NVML. Without it a slice has
    no known bandwidth: CUDA's figure may be the card's.
    """
    is_slice = cuda.uuid.startswith("MIG-")
    peak: float | None = None
    tensor_peaks: tuple[TensorPeak, ...] = ()
    if _capability(cuda) in MULTIPROCESSORS:
        gpu = _at_hand(cuda, find(cuda.name), cuda.multiprocessors or 0, 0.0)
        peak = gpu.fp32_tflops
        peaks = ((f"{kind}.{sums}", gpu.tensor_tflops(kind, sums)) for kind, sums in PRODUCTS)
        tensor_peaks = tuple(TensorPeak(arithmetic=name, tflops=of) for name, of in peaks if of)
    elif cores is not None and not is_slice:
        peak = fp32_tflops(cores, cuda.sm_clock_mhz)
    return msgspec.structs.replace(
        cuda,
        fp32_peak_tflops=peak,
        dram_gb_s=shared_dram_gb_s if is_slice else cuda.dram_gb_s,
        tensor_peaks=tensor_peaks,
    )


def least_ms(
    operations: float, dram_bytes: float, gpu: Gpu | GpuInfo, arithmetic: str = "f32"
) -> float:
    """A lower bound on the time of so many operations of an arithmetic ("f32", "f16.f32") and
    bytes from or to DRAM (the L2 was flushed); 0 when the GPU is not known."""
    peak = gpu.peak_tflops(arithmetic)
    computing = operations / (peak * 1e12) if peak else 0.0
    moving = dram_bytes / (gpu.dram_gb_s * 1e9) if gpu.dram_gb_s else 0.0
    return 1e3 * max(computing, moving)
