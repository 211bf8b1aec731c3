"""Our own sources in a build: the file that includes the student's, and a trial program."""

import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

import msgspec

from grader.build.toolchain import Toolchain
from grader.labs import Submission
from grader.problems import Interface

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
WRAPPER = _HERE / "gcc_wrapper.sh"
_ENTRY, _TRIAL = (Template((_HERE / f"{name}.cu.in").read_text()) for name in ("entry", "trial"))
ENTRY = "sgemm_grader_entry.cu"  # what nvcc is called with


def alone(interface: Interface, defines: Sequence[str] = ()) -> str:
    """The student's file, without our entry point. defines: macros for it, "BM=64", which stand
    after the lab's header: the toolkit's own headers use names such as T and N."""
    macros = "".join(f"#define {' '.join(each.split('=', 1))}\n" for each in defines)
    header = f'#include "{interface.header}"\n' if macros else ""
    return f'{header}{macros}#include "{interface.main}"\n'


def entry_source(interface: Interface, defines: Sequence[str] = ()) -> str:
    """The student's file, and the function by which the recorder calls theirs: with the operands'
    addresses and lengths, the size's dimensions, and the scalars' addresses."""
    vectors = "".join(
        f"  ::thrust::device_vector<{element.name}> sgemm_grader_v{i}(sgemm_grader_view,\n"
        f"      static_cast<{element.name}*>(sgemm_grader_at[{i}]), sgemm_grader_counts[{i}]);\n"
        for i, element in enumerate(interface.vectors)
    )
    arguments = [
        *(f"sgemm_grader_v{i}" for i in range(len(interface.vectors))),
        *(f"sgemm_grader_dims[{i}]" for i in range(interface.dims)),
        *(
            f"*static_cast<const {element.name}*>(sgemm_grader_scalars[{i}])"
            for i, element in enumerate(interface.scalars)
        ),
    ]
    words = {"symbol": interface.symbol, "arguments": ", ".join(arguments)}
    return _ENTRY.substitute(student=alone(interface, defines), vectors=vectors, **words)


def trial(interface: Interface) -> str:
    """A submission that does nothing, and compiles."""
    parameters = [f"thrust::device_vector<{element.name}>&" for element in interface.vectors]
    parameters += ["const int"] * interface.dims
    parameters += [f"const {element.name}" for element in interface.scalars]
    words = {"symbol": interface.symbol, "parameters": ", ".join(parameters)}
    return _TRIAL.substitute(header=interface.header, **words)


# --- brought headers ---------------------------------------------------------------------------

_TABLE = msgspec.toml.decode((_HERE / "brought_headers.toml").read_bytes())
# Either may lack its end: a search that fails there would begin again at every later quote.
_COMMENT_OR_STRING = re.compile(rb'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_NEEDED = {name: re.compile(rf"\b(?:{words})(?!\w)".encode()) for name, words in _TABLE.items()}


def with_brought_headers(entry: str, submission: Submission, toolchain: Toolchain) -> str:
    """``entry``, which includes the submission, with the headers that this needs before it. Who
    includes a part of a library, such as <cute/layout.hpp>, knows what is needed of it."""
    code = strip_comments(submission)
    headers = (
        header
        for header, needed in _NEEDED.items()
        if needed.search(code)
        and not _has(code, header)
        and (toolchain.cutlass_include is not None or not header.startswith("cute/"))
    )
    return "".join(f"#include <{header}>\n" for header in headers) + entry


def strip_comments(submission: Submission) -> bytes:
    """The sources; words may have a comment between them. A string that looks like the beginning of
    one stays."""
    text = b"\n".join(submission.contents.values())
    return _COMMENT_OR_STRING.sub(lambda found: found[1] or b" ", text)


def _has(text: bytes, header: str) -> bool:
    """Whether a submission includes the library, or has a namespace of its name itself."""
    library, slash, _ = header.partition("/")
    found = re.search(rb"#\s*include\s*[<\"]" + re.escape((library + slash).encode()), text)
    own = slash and re.search(rb"namespace\s+" + library.encode() + rb"\s*\{", text)
    return bool(found or own)


FILE = "compile_flags.txt"
_EDITOR = _HERE / "editor"


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
