"""The grader's own C++ that grading runs; the simulator's engine is ptxsim's."""

from grader.base import Native
from grader.build import find_toolchain
from grader.record import recorder_program
from grader.run.gpu.calling import CALLING
from grader.run.gpu.host_check import KEY_STREAM
from grader.sandbox import LAUNCHER

PROGRAMS = (LAUNCHER, CALLING, KEY_STREAM)


def recorder() -> Native:
    """The one that needs CUDA's headers. Raises ToolchainError."""
    return recorder_program(find_toolchain())
