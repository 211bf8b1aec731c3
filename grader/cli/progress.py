"""Show the progress of a grading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from grader.backends.protocol import Progress
from grader.cli.speaking import spoken
from grader.errors import one_line
from grader.model import Message, phrase


@contextmanager
def stages(name: str, console: Console) -> Iterator[Progress]:
    """One changing line on a terminal; one line per stage in a log."""
    language = spoken(console)

    def line(stage: Message, detail: Message) -> Text:
        how = phrase("{stage} {detail}", stage=stage, detail=detail)
        words = phrase("{place}: {what}", place=one_line(name), what=how)
        return Text(language(words).rstrip(), style="" if console.is_terminal else "dim")

    if console.is_terminal:
        with console.status(Text(one_line(name))) as status:
            yield lambda stage, detail: status.update(line(stage, detail))
        return
    told: set[Message] = set()

    def tell(stage: Message, detail: Message) -> None:
        if stage not in told:
            told.add(stage)
            console.print(line(stage, detail))

    yield tell
