"""Which kernels are a library's product of matrices: CUTLASS's or cuBLASDx's, and the evidence.

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
from collections.abc import Collection

from grader.model import Message, phrase, verbatim

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


def evidence(names: Collection[str], files: Collection[str]) -> Message | None:
    """names: the identifiers in the kernel's mangled name. files: where its code comes from."""
    own = sorted({match[0] for name in files if (match := _OWN_FILE.search(name))})
    if own:
        return phrase("its code comes from {files}", files=_some(own))
    classes = sorted({name for name in names if _OWN_CLASS.fullmatch(name)})
    if "cutlass" in names and len(classes) >= _ENOUGH:
        return phrase("its name instantiates cutlass's {classes}", classes=_some(classes))
    return None


def _some(names: list[str]) -> Message:
    more = len(names) - _SHOWN
    shown = verbatim(", ".join(names[:_SHOWN]))
    return phrase("{names} and {more} more", names=shown, more=more) if more > 0 else shown
