"""``grade calibrate``: measure the GPU at hand, for estimates of speeds without one."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console

from grader.cli.console import DONE, say
from grader.cli.devices import require_gpu
from grader.cli.options import OptionGroup, argument
from grader.report import table
from grader.study import calibrate
from ptxsim.text import phrase


class CalibrateOptions(OptionGroup):
    """Measure bandwidths, latencies and starts of this machine's first GPU, and write the file by
    which estimates are carried over to it: into calibration/ of $SGEMM_GRADER_PREPARED, from where
    every grade reads it. Less than two minutes; nobody else may use the GPU meanwhile."""

    file: Path | None = argument("write this file instead", "FILE", type=Path)


def run(chosen: CalibrateOptions, console: Console) -> int:
    require_gpu()
    file, *cards = calibrate(chosen.file)
    here, there = map(msgspec.structs.asdict, cards)
    rows = [
        (name, *("-" if each[name] is None else f"{each[name]:.4g}" for each in (here, there)))
        for name in here
        if name not in ("gpu", "where")
    ]
    console.print(table(("", here["gpu"], there["gpu"]), rows, words=(0,)))
    say(console, phrase("result: {file}", file=str(file)))
    return DONE
