"""Show the progress of a grading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from grader.backends.protocol import Progress
from grader.errors import one_line


@contextmanager
def stages(name: str, console: Console) -> Iterator[Progress]:
    """One changing line on a terminal; one line per stage in a log."""
    if console.is_terminal:
        with console.status(Text(one_line(name))) as status:
            yield lambda stage, detail: status.update(Text(f"{one_line(name)}: {stage} {detail}"))
        return
    told: set[str] = set()

    def tell(stage: str, detail: str) -> None:
        if stage not in told:
            told.add(stage)
            console.print(Text(f"{one_line(name)}: {stage} {detail}".rstrip(), style="dim"))

    yield tell
