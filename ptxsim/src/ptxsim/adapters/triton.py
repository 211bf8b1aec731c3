"""Kernels of Triton: its compiler makes their PTX."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ptxsim.launching import Argument, Extents, Module
from ptxsim.report import Report


class Kernel:
    """``Kernel(function, {"x": "*fp32"}, {"BLOCK": 128})[grid](x)``; compiler: its options."""

    def __init__(
        self,
        function: Any,
        signature: dict[str, str],
        constants: dict[str, Any],
        capability: int = 80,
        compiler: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        source = ASTSource(function, signature | dict.fromkeys(constants, "constexpr"), constants)
        made = compile(source, target=GPUTarget("cuda", capability, 32), options=compiler)
        self.block, self.shared = 32 * made.metadata.num_warps, made.metadata.shared
        file = Path(inspect.getfile(function.fn))  # Triton's cache may name where it was once
        module = Module(made.asm["ptx"], sources={file.name: file.read_text()}, **options)
        self.kernel = module.kernel(made.metadata.name)

    def __getitem__(self, grid: Extents) -> Callable[..., Report]:
        def launch(*arguments: Argument, **options: Any) -> Report:
            scratch = [0] * (len(self.kernel.parameters) - len(arguments))  # pointers, unused
            return self.kernel[grid, self.block, self.shared](*arguments, *scratch, **options)

        return launch
