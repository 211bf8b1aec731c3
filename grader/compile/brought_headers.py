"""The headers that the real ``thrust/device_vector.h`` or the lab's own ``gemm.cuh`` brings.

Code written against those headers may use ``uint32_t``, ``std::vector`` or ``__half`` without an
``#include`` of its own. Our light ``device_vector.h`` includes what costs nvcc nothing; what costs
more than a few percent of a build is included here, ahead of the submission, where a word in its
sources may need it. A word in a comment costs a little compile time and nothing else.
"""

from __future__ import annotations

import re

from grader.model import Submission
from grader.toolchain.discovery import Toolchain

# The type; many a variable is called half, and some may be global.
_HALF = r"(?:half2?(?= +\w|>|\(|\s*[*&]\s*\w+\s*[,)=;])|(?<=\()half2?(?=\)\s*\w))"
_WORDS = {
    "atomic": r"atomic(_\w+)?|memory_order\w*",
    "chrono": r"chrono",
    "iostream": r"cout|cerr|clog|cin|endl|ostream|istream",
    "memory": r"unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|allocator(_traits)?",
    "optional": r"optional|nullopt",
    "iterator": r"[io]stream_iterator",
    "shared_mutex": r"shared_mutex|shared_lock",
    "stdexcept": r"\w+_error|invalid_argument|out_of_range",
    "string": r"w?string|to_string|sto[ifld]",
    "string_view": r"string_view",
    "cooperative_groups.h": r"cooperative_groups",
    "cuda_bf16.h": r"(__)?nv_bfloat16\w*|__\w*bfloat16\w*",
    "cuda_fp16.h": rf"{_HALF}|__\w*half\w*",
    "cuda_pipeline.h": r"__pipeline_\w+|nvcuda::experimental",
    "cuda/std/cmath": r"cuda::std",
    "cuda/std/complex": r"cuda::std",
    "cuda/std/limits": r"cuda::std",
    "cuda/std/tuple": r"cuda::std",
    "cuda/std/type_traits": r"cuda::std",
    "cuda/std/utility": r"cuda::std",
    "cute/tensor.hpp": r"cute::\w+|namespace +cute *;",
}
_NEEDED = {header: re.compile(rf"\b(?:{words})(?!\w)".encode()) for header, words in _WORDS.items()}


def with_brought_headers(entry: str, submission: Submission, toolchain: Toolchain) -> str:
    """``entry``, which includes the submission, with the headers that this needs before it.

    A submission that includes a part of a library itself, such as <cute/layout.hpp>, knows what it
    needs of it.
    """
    text = b"\n".join(submission.contents.values())
    headers = (
        header
        for header, needed in _NEEDED.items()
        if needed.search(text)
        and not _includes(text, header)
        and not _is_own(text, header)
        and (toolchain.cutlass_include is not None or not header.startswith("cute/"))
    )
    return "".join(f"#include <{header}>\n" for header in headers) + entry


def _includes(text: bytes, header: str) -> bool:
    library, slash, _ = header.partition("/")
    name = re.escape((library + slash).encode())
    return re.search(rb"#\s*include\s*[<\"]" + name, text) is not None


def _is_own(text: bytes, header: str) -> bool:
    """Whether the submission has a namespace of the library's name itself."""
    library, slash, _ = header.partition("/")
    return (
        bool(slash) and re.search(rb"namespace\s+" + library.encode() + rb"\s*\{", text) is not None
    )
