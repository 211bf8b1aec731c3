"""Problems that a function of CUB's solves, and that every order of operations solves exactly."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import ClassVar

from grader.problems.operands import OnGpu, Tools
from grader.problems.problem import Problem
from ptxsim.text import Message, phrase

# Where CUB and Thrust have kernels and what a block of one does. A macro can rename a namespace.
_OWN_FILE = re.compile(
    r"(?:cub/(?:agent|device)|thrust/system/cuda/detail/core)/[\w/]+\.(?:cuh|h)$"
)


class CubProblem(Problem):
    """A problem whose baseline is CUB. ``gpu_libraries`` names one file with two functions behind a
    C interface: ``cub_version``, and ``cub_call``, which takes the workspace, a pointer to its
    bytes, the operands, the dimensions and the stream, and returns a cudaError_t. Without a
    workspace it stores how many bytes one needs, as CUB's functions do."""

    baseline = "CUB"
    routine: ClassVar[str]  # the function that it calls: "DeviceReduce::Sum"
    gpu_modules = ("grader.problems.cub_on_gpu",)

    def from_a_library(self, names: Collection[str], files: Collection[str]) -> Message | None:
        """A kernel of CUB's or Thrust's own. What a kernel takes from them for itself, such as
        cub::BlockReduce, is allowed."""
        own = {"cub", "cuda_cub"} & set(names)
        if own:
            return phrase("its name is in the namespace {name}", name=min(own))
        code = min((match[0] for name in files if (match := _OWN_FILE.search(name))), default=None)
        return phrase("its code comes from {files}", files=code) if code else None

    def on_gpu(self, tools: Tools) -> OnGpu:
        from grader.problems.cub_on_gpu import CubOnGpu

        return CubOnGpu(self, tools)
