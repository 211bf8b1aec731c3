"""Our own sources in a build: the file that includes the student's, and a trial program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.problems.problem import Interface

INCLUDE = Path(__file__).parent / "include"
WRAPPER = Path(__file__).parent / "part.sh"
ENTRY = "sgemm_grader_entry.cu"  # what nvcc is called with


def alone(interface: Interface, defines: Sequence[str] = ()) -> str:
    """The student's file, without our entry point.

    defines: macros for it, "BM=64". They stand after the lab's header and not on the command line:
    the toolkit's own headers use names such as T and N.
    """
    macros = "".join(f"#define {' '.join(each.split('=', 1))}\n" for each in defines)
    header = f'#include "{interface.header}"\n' if macros else ""
    return f'{header}{macros}#include "{interface.main}"\n'


def entry_source(interface: Interface, defines: Sequence[str] = ()) -> str:
    """The student's file, and the function by which the recorder calls theirs: with the operands'
    addresses and lengths, and the size's dimensions."""
    vectors = "".join(
        f"  ::thrust::device_vector<{element.name}> sgemm_grader_v{i}(sgemm_grader_view,\n"
        f"      static_cast<{element.name}*>(sgemm_grader_at[{i}]), sgemm_grader_counts[{i}]);\n"
        for i, element in enumerate(interface.vectors)
    )
    arguments = [
        *(f"sgemm_grader_v{i}" for i in range(len(interface.vectors))),
        *(f"sgemm_grader_dims[{i}]" for i in range(interface.dims)),
    ]
    return f"""{alone(interface, defines)}\
extern "C" void sgemm_grader_entry(void* const* sgemm_grader_at,
                                   const std::size_t* sgemm_grader_counts,
                                   const int* sgemm_grader_dims) {{
  const ::thrust::sgemm_grader::view sgemm_grader_view;
{vectors}\
  {interface.symbol}({", ".join(arguments)});
}}
"""


def trial(interface: Interface) -> str:
    """A submission that does nothing, and compiles."""
    parameters = [f"thrust::device_vector<{element.name}>&" for element in interface.vectors]
    parameters += ["const int"] * interface.dims
    return f"""\
#include "{interface.header}"
__global__ void trial() {{}}
template <>
void {interface.symbol}({", ".join(parameters)}) {{
  trial<<<1, 1>>>();
}}
"""
