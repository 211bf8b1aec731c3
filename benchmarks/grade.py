"""Wall time and memory of the whole command on the sample: ``python -m benchmarks.grade``.

With ``--wheel`` it is that of the wheels, built and installed in an environment of their own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree

from benchmarks.measure import ALICE, GRADE, ROOT, Figure, run, spent


def of_the_checkout() -> Iterator[Figure]:
    return _measured(GRADE, (float("inf"), 3, 1.2))


def of_wheels() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pip = [sys.executable, "-m", "pip", "--quiet"]
        wheel = [*pip, "wheel", "--no-deps", "--wheel-dir", place, ROOT / "ptxsim", ROOT]
        subprocess.run(wheel, check=True)
        venv.create(place / "venv", symlinks=True)
        into = ["--python", place / "venv", "install", *place.glob("*.whl")]
        subprocess.run([*pip, *into], check=True)
        yield from _measured((place / "venv" / "bin" / "grade",), (8, 2, 1))


def _measured(grade: Sequence[str | Path], most: Sequence[float]) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = Path(copytree(ALICE, place / "alice"))
        for what, seconds in zip(
            ("first on a machine", "first of a file", "the same file again"), most, strict=True
        ):
            words = (*grade, folder, "--device", "cpu", "--out", place / "results")
            took = spent(*words, cwd=place, SGEMM_GRADER_CACHE=str(place / "cache"), PYTHONPATH="")
            values = {"seconds": took.seconds, "CPU": took.cpu_s, "GiB": took.mib / 1024}
            yield Figure(what=what, values=values, most={"seconds": seconds, "GiB": 1.5})
            if what == "first on a machine":
                with (folder / "sgemm.cu").open("a") as file:
                    file.write("// edited\n")


if __name__ == "__main__":
    run("grade submissions/alice", of_the_checkout, wheel=of_wheels)
