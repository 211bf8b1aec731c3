"""The machine code that ptxas made of a kernel. Needs nvdisasm, but no GPU.

``disassemble`` returns functions with blocks, loops and control bits, ``summarise`` the part of the
result document about one function, ``find_tensor_cores`` notes for the judge.
"""

from grader.performance.sass.analysis import (
    ffma_reads,
    find_tensor_cores,
    loop_code,
    main_loop,
    main_loop_code,
    summarise,
)
from grader.performance.sass.code import Function, Instruction, Loop, Product
from grader.performance.sass.disassembly import disassemble, parse

__all__ = [
    "Function",
    "Instruction",
    "Loop",
    "Product",
    "disassemble",
    "ffma_reads",
    "find_tensor_cores",
    "loop_code",
    "main_loop",
    "main_loop_code",
    "parse",
    "summarise",
]
