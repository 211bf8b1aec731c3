"""What every table of figures must say: where and when it was measured."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from grader.toolchain.discovery import find_toolchain


def machine() -> str:
    """CPU, cores, memory, versions and date in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(": ")[1] for line in lines if "model name" in line), "unknown CPU")
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {gib:.0f} GiB, "
        f"nvcc {find_toolchain().cuda_version}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d')}"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
