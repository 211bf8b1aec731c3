"""A picture that a command draws, in files for a report."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from rich.console import Console

from grader.cli.console import say
from grader.cli.options import OptionGroup, option
from grader.report import png_file, svg_file
from grader.results import store
from ptxsim.text import phrase


class Pictures(OptionGroup):
    """Files for the picture."""

    svg: Path | None = option("write the picture as SVG, for a report", "FILE")
    png: Path | None = option("write the picture as PNG, for a report", "FILE")

    @property
    def shown(self) -> Path | None:
        """The file that a document links to."""
        return self.svg or self.png

    def write(self, picture: Markup, console: Console) -> None:
        """Raises StoreError, and MachineError if no PNG can be made."""
        if self.svg is not None:
            store.write(self.svg, svg_file(picture).encode())
            say(console, phrase("picture: {file}", file=str(self.svg)))
        if self.png is not None:
            store.write(self.png, png_file(picture))
            say(console, phrase("picture: {file}", file=str(self.png)))
