"""Compiles the grader's own C++ for a wheel; CMakeLists.txt runs it with the folder for it."""

import shutil
import sys
from pathlib import Path

from grader.model import model_library
from grader.run import PROGRAMS, recorder

OWN_PROGRAMS = (
    *PROGRAMS,
    model_library(),
)  # all but the recorder, and the engine, which is ptxsim's


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for native in (recorder(), *OWN_PROGRAMS):
        shutil.copy(native.compiled(), folder / native.shipped_name())
