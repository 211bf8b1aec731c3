"""The protocol that every problem keeps. All other rooms know a problem only by it.

A problem is a class below ``Problem``, made from the fields that a lab file gives it. What has a
default below is optional. ``xp`` is NumPy, or CuPy on a GPU: code that is written with it runs on
both. Arrays that a problem gets are flat, in the order of the memory; ``Operand.logical`` gives
them their shape. docs/new-lab.md makes a problem step by step.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from grader.base import ProblemInfo, convert, gpus
from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.operands import FLOAT, Element, Launcher, OnGpu, Operand, Scalar, Tools
from ptxsim.plan import Record, Size
from ptxsim.text import Message, phrase

if TYPE_CHECKING:  # NumPy takes a while to load, and commands that only read labs need none
    from grader.problems.inputs import Places, Source

_MOST_RECOMPUTED = 1 << 20  # elements of all inputs
FUNCTION = "run_custom"  # what every lab calls the host function, a template of the element's type

# The rules of grader/model/advice/, by kind and name, with what each relieves; and ideas, by what
# shows that a kernel follows them.
_TABLE = msgspec.toml.decode(Path(__file__).with_name("advice.toml").read_bytes())
RULES = convert(_TABLE, dict[str, dict[str, frozenset[str]]])
ADVICE = {**RULES["always"], **RULES["any"], **RULES["product"]}


class Dim(Record):
    """One dimension of a size: an ``int`` parameter of the host function."""

    name: str  # "m"
    most: int  # the largest that a lab file may ask for


class Interface(Record):
    """Function that the student implements. The host function takes the operands as
    ``thrust::device_vector<T>&``, in their order, then one ``int`` for each dimension, then the
    scalars."""

    main: str  # the file to hand in: "sgemm.cu"
    header: str  # the file that it includes: "gemm.cuh"
    text: str  # the header's contents; declares the function
    vectors: tuple[Element, ...]  # the operands' types
    dims: int  # how many dimensions
    scalars: tuple[Element, ...] = ()  # their types
    element: Element = FLOAT  # that the function is specialised for
    others: tuple[Element, ...] = ()  # of the same bits, that it may be specialised for instead

    @property
    def symbol(self) -> str:
        """The specialisation that the student defines: "run_custom<float>"."""
        return f"{FUNCTION}<{self.element.name}>"

    @property
    def symbols(self) -> str:
        """That one, or what may be defined instead, for a message."""
        return " or ".join(f"{FUNCTION}<{each.name}>" for each in (self.element, *self.others))

    def spellings(self, sources: bytes) -> tuple[Interface, ...]:
        """The interface by each type that the student's sources may specialise the function for,
        the likeliest first."""
        named, mentioned = [], []
        for other in self.others:
            word = re.escape(other.name.rpartition("::")[2].encode())
            if re.search(rb"\b%s\s*<[\w:\s]*\b%s\s*>" % (FUNCTION.encode(), word), sources):
                named.append(self._by(other))
            elif re.search(rb"\b%s\b" % word, sources):
                mentioned.append(self._by(other))
        return (*named, self, *mentioned)

    def _by(self, other: Element) -> Interface:
        vectors = tuple(other if each == self.element else each for each in self.vectors)
        rest = (each for each in self.others if each != other)
        return msgspec.structs.replace(
            self, element=other, vectors=vectors, others=(self.element, *rest)
        )

    @property
    def mangled(self) -> str:
        """How that symbol begins in an object file."""
        return f"_Z{len(FUNCTION)}{FUNCTION}I{self.element.mangled}E"


# NVIDIA's libraries of whole routines, whose functions and headers begin like them. No host code
# may call one: it would do the task.
_VENDORS = ("cuBLAS", "cuSPARSE", "cuSOLVER", "cuDNN", "cuTENSOR", "cuFFT", "NPP")


def vendor_library(name: str) -> str | None:
    """The library that a function or a header belongs to, as it writes its own name."""
    return next((own for own in _VENDORS if name.startswith(own.lower())), None)


class Unit(Record):
    """Unit in which speeds are reported."""

    name: str  # "TFLOPS"
    scale: float  # so many operations or bytes a second are 1
    of: Literal["operations", "bytes"]  # what is counted, and which peak of the GPU is asked about


TFLOPS = Unit(name="TFLOPS", scale=1e12, of="operations")
GB_S = Unit(name="GB/s", scale=1e9, of="bytes")


class Work(Record):
    """Operations and bytes of one size. Bounds, advice, the roofline and the times that are
    possible all follow from it."""

    size: Size
    operations: int  # floating-point; 0 where these do not count
    unavoidable: float  # the share of them that no algorithm saves
    bytes: int  # the fewest that must come from memory or go there
    read: int  # those that come from there
    elements: int  # of the outputs
    amount: int  # what the unit counts
    unit: Unit
    arithmetic: str = "f32"  # as of the problem

    def speed(self, seconds: float) -> float:
        """Return the speed in the unit."""
        return self.amount / seconds / self.unit.scale

    def least_ms(self, gpu: gpus.GpuInfo) -> float:
        """A lower bound on the time, whatever the algorithm; 0 when the GPU is not known."""
        operations = self.unavoidable * self.operations
        return gpus.least_ms(operations, self.read, gpu, self.arithmetic)

    def roofline(self, gpu: gpus.Gpu) -> float:
        """Return the speed, in the unit, that the GPU's peaks allow."""
        return self.speed(1e-3 * gpus.least_ms(self.operations, self.bytes, gpu, self.arithmetic))

    def peak(self, tflops: float, dram_gb_s: float) -> float:
        """Return a GPU's peak in the unit."""
        per_second = tflops * 1e12 if self.unit.of == "operations" else dram_gb_s * 1e9
        return per_second / self.unit.scale


class Problem(ABC):
    """One problem with the options of one lab."""

    name: ClassVar[str]  # in a lab file: "gemm"
    dims: ClassVar[tuple[Dim, ...]]
    # Words by which a lab file's size may ask for other inputs, as ``Size.inputs`` has them.
    kinds: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[Unit]
    baseline: ClassVar[str]  # what a speed is compared with: "cuBLAS"
    output: ClassVar[str]  # the operand that a report is about: "C"
    formula: ClassVar[str] = ""  # of the operations, for a report: "2·M·N·K"
    # Groups of inputs in each of which the outputs are linear while the other inputs are held; and
    # inputs whose values the outputs hold as they are, in other places.
    linear: ClassVar[tuple[tuple[str, ...], ...]] = ()
    moved: ClassVar[tuple[str, ...]] = ()
    # Along what a kernel's main loop runs, for advice: "K".
    depth: ClassVar[str] = "the input"
    # What may do the operations, and which peak is asked about: "f32", or tensor cores by types of
    # inputs and sums: "f16.f32"; "f16.f32/3" where each takes three products.
    arithmetic: str = "f32"
    unavoidable: ClassVar[float] = 1.0  # the share of the operations that no algorithm saves
    # The fields of the lab file that are this problem's own; the constructor gets them checked.
    Options: ClassVar[type[Record]] = Record

    def __init__(self, options: Record | None = None) -> None:
        self.options = self.Options() if options is None else options

    # --- the interface ---

    @property
    @abstractmethod
    def title(self) -> Message | str:
        """The task in a few words: "C = A·B in FP32, …"."""

    @property
    @abstractmethod
    def interface(self) -> Interface: ...

    @abstractmethod
    def operands(self, size: Size) -> tuple[Operand, ...]:
        """The vectors of the host function, in its order: the inputs, what is changed in place, the
        outputs. Below, inputs are what is given, outputs what is written: such a one is both."""

    def scalars(self, size: Size) -> tuple[Scalar, ...]:
        """The arguments behind the dimensions, in the interface's order."""
        return ()

    # --- right or wrong ---

    @abstractmethod
    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        """Compute the expected outputs in float64. A GPU's result is proved by NumPy's."""

    @abstractmethod
    def tolerance(self, size: Size) -> float:
        """The largest error that correct arithmetic may leave. Derive it where it is computed."""

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed | None:
        """The elements at ``places`` of each output's memory, computed on the host; None where that
        would take too long. Where inputs are many, compute from those alone that matter.

        Twice the tolerance: a GPU's reference may be off by one.
        """
        import numpy as np

        operands = self.operands(size)
        given = [each for each in operands if each.given]
        targets = [each for each in operands if each.written]
        if sum(each.count for each in given) > _MOST_RECOMPUTED:
            return None
        arrays = [
            each.element.packed(source.at(np.arange(each.count)))
            for each, source in zip(given, inputs, strict=True)
        ]
        outputs = []
        expected = self.reference(np, size, arrays)
        for target, whole, at in zip(targets, expected, places, strict=True):
            outputs.append(whole.at(target, at))
        return Recomputed(outputs=tuple(outputs), tolerance=2 * self.tolerance(size))

    def objection(self, size: Size) -> Message | None:
        """Why a GPU's results of this size could not be judged, or not compared with anything."""
        own = type(self)
        inputs = sum(each.count for each in self.operands(size) if each.given)
        if own.recomputed is Problem.recomputed and inputs > _MOST_RECOMPUTED:
            return phrase(
                "{size} has {count} inputs, and the host computes again from at most {most}: give "
                "{problem} a method recomputed, or ask for smaller sizes"
            ).given(size=str(size), count=inputs, most=_MOST_RECOMPUTED, problem=own.__name__)
        copies = own.baselines is Problem.baselines and own.on_gpu is Problem.on_gpu
        if copies and self.unit.of == "operations":
            return phrase(
                "{problem} counts operations, and its baseline only copies bytes: give it a method "
                "baselines that returns a function which computes the same",
                problem=own.__name__,
            )
        return None

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        """Likely mistakes, the simplest first. A message names the first that explains every
        element of a wrong result. NumPy only."""
        return iter(())

    # --- fast or slow ---

    def work(self, size: Size) -> int:
        """Floating-point operations that the task needs; 0 where these do not count."""
        return 0

    def traffic(self, size: Size) -> int:
        """The fewest bytes that must come from memory or go there: each operand once, and twice
        what is changed in place."""
        return sum(each.bytes * (each.given + each.written) for each in self.operands(size))

    def amount(self, size: Size) -> int:
        """Count the work of this size in ``unit``."""
        return self.work(size) if self.unit.of == "operations" else self.traffic(size)

    def speed(self, size: Size, milliseconds: float) -> float:
        """Return the speed in ``unit``."""
        return self.amount(size) / (milliseconds * 1e-3) / self.unit.scale

    def at(self, size: Size) -> Work:
        operands = self.operands(size)
        return Work(
            size=size,
            operations=self.work(size),
            unavoidable=self.unavoidable,
            bytes=self.traffic(size),
            read=sum(each.bytes for each in operands if each.given),
            elements=sum(each.count for each in operands if each.written),
            amount=self.amount(size),
            unit=self.unit,
            arithmetic=self.arithmetic,
        )

    def from_a_library(
        self, names: Collection[str], files: Collection[str]
    ) -> Message | str | None:
        """Why a kernel counts as a library's, which a lab may forbid: "its code comes from …".

        names: the identifiers in its mangled name. files: where its code comes from.
        """
        return None

    def baselines(
        self, xp: Any, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launcher]:
        """Return the baselines by name: each computes ``outputs`` on CuPy's current stream.

        The fastest is taken. The default copies as many bytes as the task must move.
        """
        half = self.traffic(size) // 2
        source, target = xp.zeros(half, dtype=xp.uint8), xp.empty(half, dtype=xp.uint8)

        def copy() -> None:
            target[:] = source

        return {"copy": copy}

    @property
    def key(self) -> str:
        """The problem with its options, as a key of caches."""
        return f"{self.name} {msgspec.json.encode(self.options).decode()}"

    # Modules that these methods import; a simulator does so first, since it opens no file later.
    modules: ClassVar[tuple[str, ...]] = ()
    # CUDA C++ and, for ``Tools.library``, host functions that ``on_gpu`` will ask for, and modules
    # that it will import: they are compiled and loaded while the submission is compiled.
    gpu_sources: ClassVar[tuple[Path, ...]] = ()
    gpu_libraries: tuple[Path, ...] = ()
    gpu_modules: ClassVar[tuple[str, ...]] = ()

    def on_gpu(self, tools: Tools) -> OnGpu | None:
        """How this problem works on a GPU; None: by the methods above. A problem with its own way
        imports CuPy here."""
        return None

    # --- the report ---

    def info(self) -> ProblemInfo:
        """Describe the problem for a result document."""
        return ProblemInfo(
            name=self.name,
            title=str(self.title),
            unit=self.unit.name,
            scale=self.unit.scale,
            counts=self.unit.of,
            baseline=self.baseline,
            main=self.interface.main,
            dims=tuple(dim.name for dim in self.dims),
            output=self.output,
            formula=self.formula,
            questions=self.questions,
            arithmetic=self.arithmetic,
        )

    # What grade profile runs: the extent of each dimension, the smallest first.
    profiled: ClassVar[tuple[int, ...]] = (1024, 8192)
    # Names of the questions that a report answers (report/why.py) and of
    # the pieces of advice that apply (advice.toml), beside those for every problem.
    questions: tuple[str, ...] = ("peak", "limits", "loop", "traffic")
    advice: tuple[str, ...] = ()
