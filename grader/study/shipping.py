"""Compiles the grader's own C++ for a wheel; CMakeLists.txt runs it with the folder for it."""

import shutil
import sys
from pathlib import Path

from grader.base import Native
from grader.build import find_toolchain
from grader.model import model_library
from grader.record import recorder_program
from grader.run import CALLING, KEY_STREAM
from grader.sandbox import LAUNCHER


def own_programs() -> tuple[Native, ...]:
    """Return all of it but the simulator's engine, which is ptxsim's."""
    return (LAUNCHER, recorder_program(find_toolchain()), CALLING, KEY_STREAM, model_library())


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for native in own_programs():
        shutil.copy(native.compiled(), folder / native.shipped_name())
