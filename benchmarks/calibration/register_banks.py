"""What registers cost: `python -m benchmarks.calibration.register_banks` on a GPU machine.

A loop of 256 FFMA whose operands are rewritten in the cubin: which registers, which of them the
reuse cache holds, and how many of the FFMA give way to a load from shared memory. Cycles of one
time round, for one warp and for two on each scheduler, beside those of this model:

    two banks, even and odd registers; each delivers one register of a warp per cycle, and an FFMA
    is issued when neither lags behind by more than one; an operand that the FFMA before left in
    the reuse cache, at the same place, is not read.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import cupy
import numpy as np

from benchmarks.measure import machine
from grader.build.toolchain import find_toolchain
from grader.run.probe import first_gpu_arch, gpu_names
from ptxsim.plan import Record

SLOTS, REST = 256, 4  # instructions of the loop: FFMA, others
ROUNDS = 400
SOURCE = """
extern "C" __global__ void __launch_bounds__(256) probe(float* out, long long* cycles, int rounds,
                                                        int pattern) {
  __shared__ __align__(128) float4 tile[64];
  const int lane = threadIdx.x % 32;
  tile[lane] = tile[lane + 32] = make_float4(1, 1, 1, 1);
  __syncthreads();
  const int quads[] = {0, lane, lane % 4, lane / 4, lane / 4 ^ lane % 4};
  int quad = 0;
  for (int i = 0; i < 5; ++i) quad = i == pattern ? quads[i] : quad;
  const unsigned address = unsigned(__cvta_generic_to_shared(tile + quad));
  float r[192], l[4];
  for (int i = 0; i < 192; ++i) r[i] = out[threadIdx.x + i];
  const long long begin = clock64();
#pragma unroll 1
  for (int it = 0; it < rounds; ++it) {
    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(l[0]), "=f"(l[1]), "=f"(l[2]), "=f"(l[3]) : "r"(address) : "memory");
#pragma unroll
    for (int t = 0; t < 256; ++t)
      asm volatile("fma.rn.f32 %0, %1, %2, %0;"
                   : "+f"(r[t % 160]) : "f"(r[160 + t % 16]), "f"(r[176 + t / 16 % 16]));
  }
  const long long end = clock64();
  if (lane == 0) cycles[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = end - begin;
  for (int i = 0; i < 192; ++i) out[threadIdx.x + i * 256] = r[i];
  for (int i = 0; i < 4; ++i) out[threadIdx.x + (192 + i) * 256] = l[i];
}
"""
ADDRESSES = (
    "all lanes one quad",
    "every lane its own",
    "lane % 4",
    "lane / 4",
    "lane / 4 ^ lane % 4",
)


class Ffma(Record):
    """sum += a · b."""

    sum: int  # registers
    a: int
    b: int
    keeps_a: bool = False  # for the next FFMA, in the reuse cache
    keeps_b: bool = False


class Registers:
    """Those that the loop's FFMA use, by bank."""

    def __init__(self, free: set[int]) -> None:
        banks = [sorted(number for number in free if number % 2 == bank) for bank in (0, 1)]
        self.sums = [bank[:64] for bank in banks]
        self.a = [bank[64:72] for bank in banks]
        self.b = [bank[72:80] for bank in banks]
        self.quads = [q for q in range(0, 256, 4) if {q, q + 1, q + 2, q + 3} <= free][-6:]


def runs_of(length: int, *, turns: bool, same: bool = False) -> Callable[[Registers], list[Ffma]]:
    """b stays for ``length`` FFMA. turns: the first of a run has the a of the last one before;
    same: a lies in the bank of the sum, which changes with every FFMA; else in the other one."""

    def make(registers: Registers) -> list[Ffma]:
        found: list[Ffma] = []
        for t in range(SLOTS):
            first, last = t % length == 0, t % length == length - 1
            bank = t % 2
            a = registers.a[bank if same else 1 - bank][t // 2 % 8]
            if turns and first and found:
                a = found[-1].a
            found.append(
                Ffma(
                    sum=registers.sums[bank][t // 2 % 64],
                    a=a,
                    b=registers.b[1 - t // length % 2][t // length % 8],
                    keeps_a=turns and last,
                    keeps_b=not last,
                )
            )
        return found

    return make


def banks_of(*banks: int) -> Callable[[Registers], list[Ffma]]:
    """Sum and a lie in these banks by turns; b stays for 16 FFMA."""
    return lambda registers: [
        Ffma(
            sum=registers.sums[banks[t % len(banks)]][t % 64],
            a=registers.a[banks[t % len(banks)]][t % 8],
            b=registers.b[1][t // 16 % 8],
            keeps_b=t % 16 != 15,
        )
        for t in range(SLOTS)
    ]


PATTERNS: dict[str, Callable[[Registers], list[Ffma]]] = {
    "two reads, sum and a in different banks; at a turn a stays": runs_of(16, turns=True),
    "the same in runs of 4": runs_of(4, turns=True),
    "runs of 16, a read again at the turn": runs_of(16, turns=False),
    "runs of 8": runs_of(8, turns=False),
    "runs of 4": runs_of(4, turns=False),
    "runs of 2": runs_of(2, turns=False),
    "three reads, nothing kept": runs_of(1, turns=False),
    "two reads of one bank, the banks by turns": banks_of(0, 1),
    "the same, two and two": banks_of(0, 0, 1, 1),
    "two reads, always of the even bank": banks_of(0),
}


def cycles(stream: list[Ffma]) -> int:
    """The model's, for one warp."""
    behind, kept, now = [0, 0], (-1, -1), 0
    for item in stream:
        behind = [max(0, each - 1) for each in behind]
        while max(behind) > 1:
            behind = [max(0, each - 1) for each in behind]
            now += 1
        for register in {item.sum, item.a, item.b} - set(kept):
            behind[register % 2] += 1
        kept = (item.a if item.keeps_a else -1, item.b if item.keeps_b else -1)
        now += 1
    return now


class Probe:
    """The compiled loop, to be rewritten."""

    FFMA, LDS = 0x223, 0x984  # opcodes: the lowest twelve bits

    def __init__(self, cubin: bytes) -> None:
        self.cubin = cubin
        words = [struct.unpack_from("<Q", cubin, at)[0] for at in range(0, len(cubin) - 15, 16)]
        self.slots = [16 * n for n, word in enumerate(words) if word & 0xFFF == self.FFMA]
        (load,) = [16 * n for n, word in enumerate(words) if word & 0xFFF == self.LDS]
        assert len(self.slots) == SLOTS, len(self.slots)
        self.load = struct.unpack_from("<QQ", cubin, load)
        used = {words[at // 16] >> shift & 0xFF for at in self.slots for shift in (16, 24, 32)}
        self.registers = Registers(used)

    def rewritten(self, stream: list[Ffma], loads: int) -> bytes:
        """With this stream; ``loads`` of its FFMA, evenly spread, are LDS.128."""
        code = bytearray(self.cubin)
        for t, (at, item) in enumerate(zip(self.slots, stream, strict=True)):
            low = self.FFMA | 7 << 12 | item.sum << 16 | item.a << 24 | item.b << 32
            control = 1 | 1 << 4 | 7 << 5 | 7 << 8 | item.keeps_a << 17 | item.keeps_b << 18
            high = item.sum | control << 41
            if loads and t % (SLOTS // loads) == 7:
                number = t // (SLOTS // loads)
                quad = self.registers.quads[number % len(self.registers.quads)]
                low = self.load[0] & ~(0xFF << 16) | quad << 16
                control = 1 | 1 << 4 | number % 6 << 5 | 7 << 8
                high = self.load[1] & ((1 << 41) - 1) | control << 41
            struct.pack_into("<QQ", code, at, low, high)
        return bytes(code)


def measured(folder: Path, code: bytes, pattern: int) -> tuple[float, float]:
    """Cycles of one time round and warp, with one and with two warps for each scheduler."""
    path = folder / f"{zlib.crc32(code):08x}.cubin"  # CuPy remembers modules by their path
    path.write_bytes(code)
    kernel = cupy.RawModule(path=str(path)).get_function("probe")
    out, spent = cupy.zeros(1 << 17, np.float32), cupy.zeros(8192, np.int64)
    found = []
    for threads in (128, 256):
        for _ in range(2):
            kernel((132,), (threads,), (out, spent, np.int32(ROUNDS), np.int32(pattern)))
        warps = 132 * threads // 32
        found.append(float(np.median(spent[:warps].get())) / ROUNDS / (threads // 128))
    return found[0], found[1]


def main() -> None:
    arch = first_gpu_arch()
    assert arch, "no GPU here"
    print(f"{gpu_names()[0]}, {machine()}\n")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "probe.cu").write_text(SOURCE)
        subprocess.run(
            [str(find_toolchain().nvcc), f"-arch={arch}", "-cubin", "-o", "out.cubin", "probe.cu"],
            cwd=folder,
            check=True,
        )
        probe = Probe((folder / "out.cubin").read_bytes())
        print(f"{SLOTS} FFMA and {REST} other instructions\n")
        print("| registers | model | 1 warp | 2 warps |\n| --- | --- | --- | --- |")
        for name, make in PATTERNS.items():
            stream = make(probe.registers)
            one, two = measured(folder, probe.rewritten(stream, 0), 0)
            print(f"| {name} | {cycles(stream) + REST} | {one:.1f} | {two:.1f} |")
        print("\nThe first, with LDS.128 in place of some FFMA:\n")
        print("| loads | addresses | 1 warp | 2 warps |\n| --- | --- | --- | --- |")
        stream = next(iter(PATTERNS.values()))(probe.registers)
        for loads in (12, 24):
            for pattern, name in enumerate(ADDRESSES):
                one, two = measured(folder, probe.rewritten(stream, loads), pattern)
                print(f"| {loads} | {name} | {one:.1f} | {two:.1f} |")


if __name__ == "__main__":
    main()
