"""Return addresses in the host library → lines of the submission, by binutils' addr2line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection

from grader.model import Build, Submission
from grader.sandbox.running import Limits, Sandbox

_LIMITS = Limits(cpu_s=10)
_LAST_ADDRESS = 2**48
_MAX_FRAMES = 1024
_PLACE = re.compile(r"^(?P<file>.+):(?P<line>\d+)(?: \(discriminator \d+\))?$")


def locate(
    frames: Collection[int], build: Build, submission: Submission, sandbox: Sandbox
) -> dict[int, tuple[str, int]]:
    """File and line of every frame that lies in the submission's own files.

    The rest is left out; so is everything where there is no addr2line.
    """
    program = shutil.which("addr2line", path="/usr/bin:/bin")
    ordered = sorted(frame for frame in frames if 0 < frame <= _LAST_ADDRESS)[:_MAX_FRAMES]
    if program is None or not ordered:
        return {}
    # A return address may already belong to the next line: ask for the byte before it.
    addresses = [f"{frame - 1:#x}" for frame in ordered]
    done = sandbox.run(
        [program, "-e", str(build.host_library), *addresses],
        cwd=build.host_library.parent,
        limits=_LIMITS,
        readable=[build.host_library.parent],
    )
    names = {file.name for file in submission.files}
    places: dict[int, tuple[str, int]] = {}
    for frame, answer in zip(ordered, done.stdout.splitlines(), strict=False):
        place = _PLACE.match(answer)
        if place is None:
            continue
        name = place["file"].rpartition("/source/")[2].removeprefix("./")
        if name in names:
            places[frame] = (name, int(place["line"]))
    return places
