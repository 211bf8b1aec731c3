"""The command line: one file per command. It alone prints and exits; workers answer on pipes."""

from grader.cli.entry import main

__all__ = ["main"]
