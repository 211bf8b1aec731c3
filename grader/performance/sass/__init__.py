"""Machine code: what ptxas made of a kernel. Needs nvdisasm, no GPU.

``disassemble`` gives functions with blocks, loops and control bits; ``summarise`` what the result
document says of one; ``find_tensor_cores`` what the judge wants to know.
"""

from grader.performance.sass.analysis import (
    ffma_reads,
    find_tensor_cores,
    loop_code,
    main_loop,
    main_loop_code,
    summarise,
)
from grader.performance.sass.code import Function, Instruction, Loop
from grader.performance.sass.disassembly import disassemble, parse

__all__ = [
    "Function",
    "Instruction",
    "Loop",
    "disassemble",
    "ffma_reads",
    "find_tensor_cores",
    "loop_code",
    "main_loop",
    "main_loop_code",
    "parse",
    "summarise",
]
