"""Pictures as files of their own, where --svg and --png ask for them."""

from __future__ import annotations

import argparse
from pathlib import Path

from markupsafe import Markup
from rich.console import Console

from grader.cli.notices import say
from grader.model import phrase
from grader.report.standalone import png_file, svg_file
from grader.results import store


def write_pictures(chosen: argparse.Namespace, picture: Markup, console: Console) -> None:
    """Where the options ask for it. Raises StoreError, and MachineError if no PNG can be made."""
    if chosen.svg is not None:
        _write(chosen.svg, svg_file(picture).encode(), console)
    if chosen.png is not None:
        _write(chosen.png, png_file(picture), console)


def _write(target: Path, content: bytes, console: Console) -> None:
    store.write(target, content)
    say(console, phrase("picture: {file}", file=str(target)))
