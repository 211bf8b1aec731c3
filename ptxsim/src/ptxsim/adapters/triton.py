"""Kernels of Triton: its compiler makes their PTX."""

import inspect
from pathlib import Path
from typing import Any

from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ptxsim.adapters import TRITON_WORDS, Adapted
from ptxsim.launching import Module


def kernel(
    function: Any,
    signature: dict[str, str],
    constants: dict[str, Any],
    capability: int = 80,
    compiler: dict[str, Any] | None = None,
    **options: Any,
) -> Adapted:
    """``kernel(function, {"x": "*fp32"}, {"BLOCK": 128})[grid](x)``; compiler: its options."""
    source = ASTSource(function, signature | dict.fromkeys(constants, "constexpr"), constants)
    made = compile(source, target=GPUTarget("cuda", capability, 32), options=compiler)
    file = Path(inspect.getfile(function.fn))  # Triton's cache may name where it was once
    sources, words = {file.name: file.read_text()}, TRITON_WORDS
    module = Module(made.asm["ptx"], sources=sources, words=words, **options)
    found, block = module.kernel(made.metadata.name), 32 * made.metadata.num_warps
    scratch = [0] * (len(found.parameters) - len(signature))  # pointers, unused
    return Adapted(
        found,
        lambda grid: (grid, block, made.metadata.shared),
        lambda arguments: (*arguments, *scratch),
    )
