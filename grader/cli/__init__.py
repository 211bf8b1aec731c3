"""The command line: one file per command. Other rooms return; worker processes answer on pipes."""

from grader.cli.entry import main

__all__ = ["main"]
