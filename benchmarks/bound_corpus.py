"""The kernels of ``benchmarks.estimates``, in families named after their labs.

``bound_patterns/FAMILY/patterns.txt`` names our own, one line for a kernel or several:

    name: source PARAMETER=VALUE…      a template beside the table; parameters become macros
    name: 05_cp_async STAGES=3         a rung of reference/FAMILY with other constants or macros
    t{T}_p{P}: tiled T=16,32 PAD:P=0,1   every combination; {X} is a parameter's value

They take sizes that are multiples of 128 (reductions: of 4096), and ``BF16`` asks for bfloat16. The
rest are the ladders' rungs and some fixtures. On those of ``TUNED`` families the model was tuned
from the beginning: they belong to the half "fit". Of all others a digest of the name chooses "fit"
or "test", so no one who changes the model chooses what it is tested on.

Kernels of others are not kept here: ``sources`` takes a folder of them, FAMILY/NAME with the main
file, and in a file LAB the name of the lab file in labs/ that takes it, whose timed sizes count.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from benchmarks.measure import ALICE, ROOT, tools
from grader.judge.program import GradingContext
from ptxsim.plan import Record, Size

FOLDER = Path(__file__).parent / "bound_patterns"
Half = Literal["fit", "test"]
TUNED = ("sgemm", "hgemm", "reduction")
FAMILIES = (*TUNED, "saxpy", "transpose", "stencil", "scan", "histogram", "softmax")
_MAIN = {family: f"{family}.cu" for family in FAMILIES}
_FIXTURES = (
    *("naive_swapped", "tiled_template", "register_tile", "float4_vectorised", "double_buffer"),
    *("warp_tile", "warp_shuffle", "cp_async_ptx", "cp_async_intrinsic", "split_k_atomic"),
    *("dynamic_shared", "work_per_thread", "odd_blocks", "noinline_function", "split_k_workspace"),
)
_OTHERS = {
    "sgemm": (ALICE, *(ROOT / "tests" / "fixtures" / "correct" / name for name in _FIXTURES)),
    "hgemm": (ROOT / "starters" / "hgemm", ROOT / "tests" / "fixtures" / "hgemm" / "by_cutes_type"),
    "reduction": (ROOT / "starters" / "reduction", ROOT / "examples" / "reduction" / "alice"),
    **{family: (ROOT / "starters" / family,) for family in FAMILIES[len(TUNED) :]},
}


def product(m: int, n: int, k: int) -> Size:
    return Size.of(m=m, n=n, k=k)


# The first is what a report shows most often: large, and at its resource's limit.
SIZES = {
    "sgemm": (product(4096, 4096, 4096), product(1024, 1024, 1024), product(4096, 128, 4096)),
    "hgemm": (product(4096, 4096, 4096), product(2048, 2048, 2048)),
    "reduction": (Size.of(n=1 << 28), Size.of(n=1 << 25)),
    "saxpy": (Size.of(n=1 << 28), Size.of(n=1 << 24)),
    "transpose": (Size.of(rows=8192, columns=8192), Size.of(rows=4096, columns=2048)),
    "stencil": (
        Size.of(nx=8192, ny=8192, nz=1, steps=1),
        Size.of(nx=512, ny=512, nz=512, steps=2),
    ),
    "scan": (Size.of(n=1 << 26), Size.of(n=1 << 22)),
    "histogram": (Size.of(n=1 << 28), Size.of(n=1 << 24)),
    "softmax": (Size.of(rows=65536, columns=1024), Size.of(rows=4096, columns=32768)),
}
# At which a pattern is graded in the simulator; its verdict holds for all sizes.
SMALL = {
    "sgemm": product(256, 128, 128),
    "hgemm": product(256, 256, 256),
    "reduction": Size.of(n=1 << 17),
}


class Source(Record):
    """One kernel of the corpus."""

    name: str
    family: str
    code: Path  # a template, or the folder of a submission
    parameters: Mapping[str, str] = {}
    own: bool = False  # written for the corpus
    lab: Path | None = None  # of somebody else's kernel

    @property
    def half(self) -> Half:
        digest = hashlib.sha256(f"{self.family}/{self.name}".encode()).digest()
        drawn = self.own or self.lab or self.family not in TUNED
        return "test" if drawn and digest[0] % 2 else "fit"

    def sizes(self, context: GradingContext) -> tuple[Size, ...]:
        """At which it is measured. context: as ``context`` has it."""
        timed = tuple(case.size for case in context.lab.performance)
        return timed if self.lab else SIZES[self.family]

    def context(self) -> GradingContext:
        """The lab that takes it."""
        if self.lab:
            return tools(str(self.lab))
        bf16 = "BF16" in self.parameters
        return tools(str(FOLDER / self.family / "bf16.yaml") if bf16 else self.family)

    def write(self, folder: Path) -> Path:
        """A submission folder with its source."""
        if not self.own:
            return self.code
        target = folder / self.family / self.name
        if self.code.is_dir():
            shutil.copytree(self.code, target, dirs_exist_ok=True)
            text = (self.code / _MAIN[self.family]).read_text()
        else:
            target.mkdir(parents=True, exist_ok=True)
            text = self.code.read_text()
        defines = ""
        for name, value in self.parameters.items():
            text, changed = re.subn(rf"\b{name} = [\w.]+(?=[,;])", f"{name} = {value}", text)
            defines += "" if changed else f"#define {name} {value}\n"
        # The headers come first, so that no macro meets their names.
        first = "reduction.cuh" if self.family == "reduction" else "gemm.cuh"
        text = f'#include "{first}"\n{defines}#line 1\n{text}'
        (target / _MAIN[self.family]).write_text(text)
        return target


def patterns(family: str) -> Iterator[Source]:
    """Our own kernels. Raises ValueError with a line that names none."""
    for line in (FOLDER / family / "patterns.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, rest = line.partition(": ")
        source, *words = rest.split() or [""]
        template, rung = FOLDER / family / f"{source}.cu", ROOT / "reference" / family / source
        code = template if template.is_file() else rung
        if not colon or not source or not code.exists():
            raise ValueError(f"not a pattern: {line}")
        options = [word.partition("=") for word in words]
        for values in itertools.product(*(each.split(",") for _, _, each in options)):
            given = dict(zip((key for key, _, _ in options), values, strict=True))
            yield Source(
                name=name.format(**given), family=family, code=code, parameters=given, own=True
            )


def sources(family: str, folder: Path | None = None) -> tuple[Source, ...]:
    """All kernels of a family, or those of a folder."""
    if folder:
        return tuple(_foreign(family, lab) for lab in sorted((folder / family).glob("*/LAB")))
    rungs = sorted(path.parent for path in ROOT.glob(f"reference/{family}/*/{_MAIN[family]}"))
    given = (Source(name=each.name, family=family, code=each) for each in rungs)
    others = (Source(name=each.name, family=family, code=each) for each in _OTHERS[family])
    return (*given, *others, *(patterns(family) if family in TUNED else ()))


def _foreign(family: str, lab: Path) -> Source:
    labs, code = lab.parents[2] / "labs", lab.parent
    path = labs / f"{lab.read_text().strip()}.yaml"
    return Source(name=code.name, family=family, code=code, lab=path)
