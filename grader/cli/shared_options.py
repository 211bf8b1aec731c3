"""Options that several commands have."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from grader.base import UsageError, gpus, one_line
from grader.cli.defaults import SUBMISSIONS, course_root, default_of
from grader.cli.options import OptionGroup, argument, flag, option
from grader.labs import did_you_mean
from grader.sandbox import Mode
from ptxsim.text import Message, phrase

Device = Literal["auto", "gpu", "cpu"]


def find_submission(named: str, commands: Iterable[str] = ()) -> Path:
    """Return the folder ``named``, else the one of this name in submissions/ or where we are.

    Raises UsageError where neither is there, but something is that was probably meant.
    """
    path, among = Path(named), course_root() / SUBMISSIONS
    if os.path.lexists(path) or path.name != named or named == "..":
        return path
    if named == Path.cwd().name and next(Path().glob("*.cu"), None):
        return Path()
    if os.path.isdir(among / named):  # noqa: PTH112 - False where a name is too long
        return among / named
    there = [each.name for each in among.iterdir() if each.is_dir()] if among.is_dir() else []
    if meant := did_you_mean(named, [*commands, *there]):
        nothing = phrase("{name}: no such folder or command; {meant}", name=one_line(named))
        raise UsageError(nothing.given(meant=meant))
    return path


def stored_document(named: str) -> Path:
    """Return the path of a file that is there. Raises UsageError."""
    if not os.path.lexists(named):
        none = phrase("{place}: {what}", place=one_line(named), what=phrase("no such file"))
        raise UsageError(none)
    return Path(named)


def architecture(pattern: str, example: str) -> Callable[[str], str]:
    """Return a reader of names such as sm_90."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            no = phrase("expected an architecture such as {example}, got {value}", example=example)
            raise ValueError(no.given(value=repr(text)))
        return text

    return read


def results_folder(help: str | Message) -> Path:
    """Declare --out, which a course has a default of."""
    return option(
        help, "DIR", factory=lambda: Path(str(default_of("out") or course_root() / "results"))
    )


SUBMISSION: Any = argument(
    phrase("folder of a submission, or its name in submissions/"),
    "SUBMISSION",
    type=find_submission,
)
DEVICE: Device = option(
    phrase("where kernels run; cpu is the simulator (default: {default})"), default="auto"
)
OUT = results_folder(phrase("where results are written (default: {default}/)"))
RESULTS = results_folder(phrase("where the results are (default: {default}/)"))
SANDBOXES = phrase(
    "auto: bubblewrap if it works, else Landlock, else limits only; require: not limits only; "
    "bubblewrap, landlock: this one; off: limits only (default: {default})"
)
SANDBOX: Mode = option(SANDBOXES, default="auto")
CARD: gpus.Gpu | None = option(
    phrase("in the simulator: the GPU that figures are for (default: the lab's first)"),
    "MODEL",
    type=gpus.named,
)
NO_REPORT = flag(phrase("write no HTML report"))


class Verbosity(OptionGroup):
    exclusive = True

    verbose: bool = flag("show every size, kernel, GPU and idea", "-v")
    quiet: bool = flag("show only the verdict", "-q")
    accesses: bool = flag("show which sectors or banks the lanes of a warp access, too")
    hint: Literal["1", "2", "3"] | None = option(
        "as the next step show where to look (1), the idea (2), or its rung, too (3)"
    )

    @property
    def detail(self) -> Literal["brief", "all", "verdict", "accesses", "1", "2", "3"]:
        level = self.hint or ("accesses" if self.accesses else "brief")
        return "all" if self.verbose else "verdict" if self.quiet else level


class OneDevice(OptionGroup):
    """Results of which device."""

    device: Literal["gpu", "cpu"] | None = option("only results of this device")
    gpu: str | None = option("only GPUs whose model name contains this text", "MODEL")

    def wants(self, device: str, gpu: str | None) -> bool:
        """Whether results of this device are asked for."""
        same_gpu = self.gpu is None or self.gpu.lower() in (gpu or "").lower()
        return same_gpu and self.device in (None, device)


class Batch(OptionGroup):
    """How many submissions are graded."""

    device: Device = option(
        "where kernels run; cpu is the simulator; on a GPU one submission is timed at a time "
        "(default: {default})",
        default="auto",
    )
    out: Path = OUT
    force: bool = flag("grade again even if there is a result")
    only: tuple[str, ...] = option(
        "only this submission; * and ? are wildcards; may be repeated", "NAME"
    )
    jobs: int = option(
        "submissions graded at a time, or compiled ahead of the GPU (default: one per core)",
        "N",
        factory=lambda: len(os.sched_getaffinity(0)),
    )
    no_report: bool = NO_REPORT
    sandbox: Mode = SANDBOX
