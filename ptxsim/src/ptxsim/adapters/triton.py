"""Kernels of Triton: its compiler makes their PTX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ptxsim.launching import Argument, Extents, Module
from ptxsim.report import Report


class Kernel:
    """``Kernel(function, {"x": "*fp32", "n": "i32"}, {"BLOCK": 128})[grid](x, n)``. compiler: such
    as ``{"num_warps": 8}``. options: ``Module``'s."""

    def __init__(
        self,
        function: Any,
        signature: Mapping[str, str],
        constants: Mapping[str, Any],
        capability: int = 80,
        compiler: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        types = dict(signature) | dict.fromkeys(constants, "constexpr")
        source = ASTSource(function, types, dict(constants))
        made = compile(source, target=GPUTarget("cuda", capability, 32), options=compiler)
        self.block, self.shared = 32 * made.metadata.num_warps, made.metadata.shared
        self.kernel = Module(made.asm["ptx"], **options).kernel(made.metadata.name)

    def __getitem__(self, grid: Extents) -> Callable[..., Report]:
        def launch(*arguments: Argument, **options: Any) -> Report:
            scratch = [0] * (len(self.kernel.parameters) - len(arguments))  # pointers, unused
            return self.kernel[grid, self.block, self.shared](*arguments, *scratch, **options)

        return launch
