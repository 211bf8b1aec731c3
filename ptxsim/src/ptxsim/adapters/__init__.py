"""Kernels of other packages, which make their PTX themselves: each needs its package, no GPU."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ptxsim.launching import Argument, Kernel, Shape
from ptxsim.report import Report

# What Triton calls what our sentences call by CUDA's names.
TRITON_WORDS: dict[str, str] = msgspec.json.decode(
    Path(__file__).with_name("triton_words.json").read_bytes()
)


@dataclass(frozen=True)
class Adapted:
    """A kernel that is launched as its package launches it: ``adapted[…](…)``."""

    kernel: Kernel
    shape: Callable[[Any], Shape]  # of what stands in the brackets
    parameters: Callable[[Sequence[Argument]], Iterable[Argument]]  # of what stands behind them

    def __getitem__(self, given: Any) -> Callable[..., Report]:
        def launch(*arguments: Argument, **options: Any) -> Report:
            return self.kernel[self.shape(given)](*self.parameters(arguments), **options)

        return launch
