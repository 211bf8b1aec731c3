"""Products on tensor cores: mma, wmma, wgmma."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.fragments.kind import FRAGMENTS, Arguments, Kind, Words

_VALUES = ("normal", "wide", "cancelling", "subnormal")
# Kernel: 32-bit words of A, B and C (and D) of one fragment, type of A, halves in C.
_WARP_KERNELS = {
    "mma_m16n8k16_f32_f16": (128, 64, 128, "f16", False),
    "mma_m16n8k16_f16_f16": (128, 64, 64, "f16", True),
    "mma_m16n8k16_f32_bf16": (128, 64, 128, "bf16", False),
    "mma_m16n8k8_f32_f16": (64, 32, 128, "f16", False),
    "mma_m16n8k8_f16_f16": (64, 32, 64, "f16", True),
    "mma_m16n8k8_f32_bf16": (64, 32, 128, "bf16", False),
    "mma_m8n8k4_f32_f16": (64, 64, 256, "f16", False),
    "wmma_m16n16k16_f32_f16": (128, 128, 256, "f16", False),
    "wmma_m16n16k16_f16_f16": (128, 128, 128, "f16", True),
    "wmma_m32n8k16_f32_bf16": (256, 64, 256, "bf16", False),
    "wmma_m8n32k16_f32_bf16": (64, 256, 256, "bf16", False),
}


def elements(rng: np.random.Generator, count: int, kind: str, values: str) -> Words:
    """Bits of ``count`` pairs of 16-bit elements."""
    numbers = rng.standard_normal(2 * count)
    if values == "wide":
        numbers = np.ldexp(numbers, rng.integers(-6, 7, 2 * count))
    elif values == "cancelling":
        numbers[1::2] = -numbers[::2]
    elif values == "subnormal":
        numbers = np.ldexp(numbers, -14 if kind == "f16" else -60)
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint32)
    bits = numbers.astype(np.float32).view(np.uint32) >> 16
    return bits.astype(np.uint16).view(np.uint32)


def start(rng: np.random.Generator, count: int, values: str, *, halves: bool) -> Words:
    """Bits of the accumulators that the instruction begins with."""
    if halves:
        return elements(rng, count, "f16", "normal" if values == "subnormal" else values)
    numbers = rng.standard_normal(count).astype(np.float32)
    if values == "wide":
        numbers = np.ldexp(numbers, rng.integers(-12, 13, count)).astype(np.float32)
    return numbers.view(np.uint32)


def _of_warps(kernel: str, values: str, rng: np.random.Generator) -> Arguments:
    of_a, of_b, of_c, kind, halves = _WARP_KERNELS[kernel]
    return [
        elements(rng, FRAGMENTS * of_a, kind, values),
        elements(rng, FRAGMENTS * of_b, kind, values),
        start(rng, FRAGMENTS * of_c, values, halves=halves),
        np.zeros((FRAGMENTS, of_c), np.uint32),
    ]


# --- wgmma

_K = 16
_WORDS, _STARTS = 48 << 8, 1 << 15  # as in wgmma.cu
_SPANS = {0: 16, 3: 32, 2: 64, 1: 128}  # swizzle in a descriptor: bytes of a row of its pattern


@dataclass(frozen=True)
class Form:
    """A form of the instruction, and how its tiles lie in shared memory."""

    n: int = 64
    types: str = "f32.f16.f16"
    registers: bool = False  # that hold A
    transposes: tuple[int, int] = (0, 0)  # A, B
    swizzle: int = 1
    whole: bool = True  # tiles and strides at multiples of the swizzle's pattern

    @property
    def kernel(self) -> str:
        place = "rs" if self.registers else "ss"
        turned = "".join(m for m, t in zip("ab", self.transposes, strict=True) if t)
        return f"wgmma_n{self.n}_{self.types.replace('.', '_')}_{place}" + f"_t{turned}" * (
            turned != ""
        )

    @property
    def count(self) -> int:
        """Registers of the sums."""
        return self.n // (4 if self.types.startswith("f16") else 2)

    def source(self) -> str:
        """The kernel, for wgmma.cu."""
        names = [f"%{i}" for i in range(self.count + 5)]
        a = f"{{{', '.join(names[self.count : -1])}}}" if self.registers else names[self.count]
        b = names[-1] if self.registers else names[self.count + 1]
        transposes = self.transposes[self.registers :]
        text = (
            f"wgmma.mma_async.sync.aligned.m64n{self.n}k16.{self.types} "
            f"{{{', '.join(names[: self.count])}}}, {a}, {b}, "
            f"{', '.join(map(str, (1, 1, 1, *transposes)))};"
        )
        place = "REGISTERS" if self.registers else "SHARED"
        sums = ", ".join(f'"+r"(c[{i}])' for i in range(self.count))
        return f'WGMMA({self.kernel}, {self.count}, "{text}", {place}, {sums})\n'


def descriptor(rng: np.random.Generator, form: Form, mn: int, transposed: int) -> int:
    """A random one of a tile of ``mn`` rows or columns that lies in shared memory."""
    span = _SPANS[form.swizzle]
    pattern = 8 * span
    groups = _K // 8, -(-mn // (span // 2))  # along the stride and the leading dimension
    if not transposed:
        groups = mn // 8, _K // 8 if form.swizzle == 0 else 1
    elif form.swizzle == 0:
        groups = mn // 8, _K // 8
    room, unit = 4 * _WORDS - 2 * pattern, pattern if form.whole else 16
    offsets = []
    for count in groups:
        most = room // max(count - 1, 1)
        offsets.append(int(rng.integers(min(most, 0x3FFF0) // unit + 1)) * unit)
        room -= (count - 1) * offsets[-1]
    at = int(rng.integers(room // unit + 1)) * unit
    if form.whole and not transposed and form.swizzle:  # a later K of the pattern's rows
        at += int(rng.integers(span // 32)) * 32
    stride, leading = offsets
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | form.swizzle << 62


def _of_groups(form: Form, values: str, rng: np.random.Generator) -> Arguments:
    kind = form.types.rpartition(".")[2]
    descriptors = [
        (
            descriptor(rng, form, 64, form.transposes[0]),
            descriptor(rng, form, form.n, form.transposes[1]),
        )
        for _ in range(FRAGMENTS)
    ]
    return [
        elements(rng, _WORDS, kind, values),
        np.array(descriptors, np.uint64),
        start(rng, _STARTS, values, halves=form.types.startswith("f16")),
        np.zeros((FRAGMENTS, form.count, 128), np.uint32),
    ]


_FORMS = [
    *(Form(8, types) for types in ("f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16")),
    *(Form(n) for n in (16, 24, 128, 256)),
    *(Form(swizzle=s, transposes=(a, b)) for s in _SPANS for a in (0, 1) for b in (0, 1)),
    *(Form(swizzle=s, registers=True, transposes=(0, b)) for s in _SPANS for b in (0, 1)),
    Form(128, "f32.bf16.bf16", registers=True),
    Form(types="f16.f16.f16", registers=True),
    *(Form(swizzle=s, transposes=(t, t), whole=False) for s in _SPANS for t in (0, 1)),
]


def forms_header() -> str:
    """A kernel for each form, for wgmma.cu."""
    return "".join({form.kernel: form.source() for form in _FORMS}.values())


def _named(form: Form) -> str:
    swizzle = f" {_SPANS[form.swizzle]}B" if form.swizzle else ""
    return form.kernel + swizzle + " anywhere" * (not form.whole)


KINDS = [
    *(
        Kind(f"{kernel} {values}", "products.cu", kernel, 32, partial(_of_warps, kernel, values))
        for kernel in _WARP_KERNELS
        for values in _VALUES
    ),
    *(
        Kind(
            f"{_named(form)} {values}",
            "wgmma.cu",
            form.kernel,
            128,
            partial(_of_groups, form, values),
        )
        for form in _FORMS
        for values in (_VALUES if form.n == 8 else _VALUES[:1])
    ),
]
