"""``grade submit``: hand in by ssh to a cluster, and fetch the result (docs/submit.md)."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from grader.cli.console import spoken
from grader.cli.grade_submit import Call, Client
from grader.cli.options import OptionGroup, argument, flag, option
from grader.cli.shared_options import OUT, find_submission
from ptxsim.text import phrase

# Nothing in the current folder may stand for a module.
_GRADER = "import sys; del sys.path[0]; from grader.cli import main; sys.exit(main())"


class SubmitOptions(OptionGroup):
    """Hand in from anywhere: check a submission here, send it by ssh to a login node of a cluster,
    show its place in the queue and its log, and fetch result and page. Ctrl-C leaves the job
    running. grade.toml says where to, which --setup writes. Without arguments it lists what was
    handed in."""

    epilog = "exit status: that of grade; 3 where nothing was recorded or the connection was lost"

    folder: Path | None = argument(
        phrase("folder of a submission, or its name in submissions/"),
        "SUBMISSION",
        type=find_submission,
    )
    setup: str = option("once: look at this host, and write a target to grade.toml", "HOST", "")
    course: str = option("with --setup: the course's folder there, but for its account", "DIR", "")
    to: str = option("which target of grade.toml (default: the only one)", "NAME", "")
    lab: str = option("the lab's name there (default: the target's)", "LAB", "")
    out: Path = OUT
    detach: bool = flag("hand in, and end at once")
    wait: bool = flag("connect again whenever the connection is lost, until the result is here")
    anyway: bool = flag("hand in what is wrong here, or by another version of the lab")
    again: bool = flag("hand in the same files anew, as another attempt")
    profile: bool = flag("profile it with Nsight Compute, too, at visible sizes")
    status: bool = flag("list what was handed in")
    board: bool = flag("show the course's board")
    fetch: str | None = option(
        "follow a hand-in, and fetch its result (default: the newest)", "ID", nargs="?", const=""
    )
    cancel: str | None = option(
        "end the job of a hand-in (default: the newest)", "ID", nargs="?", const=""
    )


def run(chosen: SubmitOptions, console: Console) -> int:
    language = spoken(console)
    call = Call(**vars(chosen), language=language.code)
    return Client(call, (sys.executable, "-c", _GRADER), language.translations.gettext).run()
