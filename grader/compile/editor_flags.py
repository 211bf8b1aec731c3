"""``compile_flags.txt``: how clangd and clang-tidy are to read a submission.

clangd looks for it beside the source (https://clangd.llvm.org/installation, read 2026-11-22). The
paths in it are this machine's.
"""

from __future__ import annotations

from pathlib import Path

from grader.compile.entry import INCLUDE
from grader.toolchain.discovery import Toolchain

FILE = "compile_flags.txt"
_EDITOR = Path(__file__).parent / "editor"


def editor_flags(toolchain: Toolchain) -> str:
    """The file's content, one flag to a line."""
    flags = [
        "-xcuda",
        "-std=c++17",
        f"--cuda-path={toolchain.nvcc.parent.parent}",
        "--cuda-host-only",  # one pass; kernels are read in it too
        "-nocudalib",  # only code generation needs it
        "-Wno-unknown-cuda-version",
        f"-I{INCLUDE}",
        f"-isystem{toolchain.include}",
        f"-isystem{_EDITOR}",
    ]
    if toolchain.cutlass_include is not None:
        flags.append(f"-isystem{toolchain.cutlass_include}")
    return "".join(f"{flag}\n" for flag in flags)
