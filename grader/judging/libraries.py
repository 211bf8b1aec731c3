"""Library GEMMs: which of the launched kernels are CUTLASS's, and by what evidence.

A kernel counts when

- its code comes from the library's own files that implement a GEMM, as the compiler's line table
  says (``cutlass/gemm/threadblock/mma_pipelined.h``), or
- its mangled name instantiates several of CUTLASS's GEMM classes, which shows copies of the library
  among the submitted files, too.

A namespace called cutlass is no evidence, and neither are CuTe and the parts of CUTLASS that CuTe
builds on. Calls of cuBLAS never get here: the recorder refuses them by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from grader.errors import Rejected
from grader.labs.lab import Rules
from grader.model import BuildInfo, Finding, Kind, Launch, Plan, Severity, Verdict
from ptxsim.findings.names import identifiers, kernel_name
from ptxsim.frontend.interface import Interface

_OWN_FILE = re.compile(
    r"(?:cutlass/(?:gemm|conv)/[a-z_]+/[a-z0-9_]*(?:mma|gemm|gemv)[a-z0-9_]*\.h(?:pp)?"
    r"|cublasdx/[a-z0-9_/]+\.hpp)$"
)
_OWN_CLASS = re.compile(
    r"Gemm(?:Universal|Batched|Array|SplitKParallel)?(?:Adapter|Streamk)?|GemmShape"
    r"|Mma(?:Pipelined|Multistage|SingleStage|Policy|Simt|SimtPolicy|TensorOp|TensorOpPolicy)"
    r"|Gemm(?:Identity|Horizontal|SplitK\w*)ThreadblockSwizzle"
    r"|Collective(?:Mma|Epilogue)|MainloopSm\d+\w*|LinearCombination"
)
_ENOUGH = 4  # distinct classes; nobody calls four classes of his own so by chance
_SHOWN = 2  # pieces of evidence in the message


def library_kernels(plans: Iterable[Plan], declared: Interface) -> tuple[Finding, ...]:
    """A note for each kernel of a library that ``plans`` launch."""
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    launched = {each.kernel for each in operations if isinstance(each, Launch)}
    found = []
    for kernel in sorted(launched):
        evidence = _evidence(kernel, declared.origins.get(kernel, ()))
        if evidence is not None:
            message = f"{kernel_name(kernel)} is a library's GEMM: {evidence}"
            found.append(Finding(kind=Kind.LIBRARY, severity=Severity.NOTE, message=message))
    return tuple(found)


def refusal(notes: tuple[Finding, ...], rules: Rules, build: BuildInfo) -> Rejected | None:
    """What the lab's rules make of ``notes``: RF, or nothing."""
    if not notes or rules.libraries == "allow":
        return None
    words = f"{notes[0].message}; this lab asks for a kernel of your own (CuTe is allowed)"
    return Rejected(Verdict.RF, words, notes, build)


def _evidence(kernel: str, origins: Iterable[str]) -> str | None:
    files = sorted({match[0] for name in origins if (match := _OWN_FILE.search(name))})
    if files:
        return f"its code comes from {_some(files)}"
    names = identifiers(kernel)
    classes = sorted({name for name in names if _OWN_CLASS.fullmatch(name)})
    if "cutlass" in names and len(classes) >= _ENOUGH:
        return f"its name instantiates cutlass's {_some(classes)}"
    return None


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
