"""The terminal that speaks a language."""

from __future__ import annotations

import os

from rich.console import Console

from grader.labs.lab import Lab
from grader.language import ENGLISH, Language, choose_language


class Terminal(Console):
    """stderr, and the language of everything that a command says."""

    def __init__(self, option: str | None) -> None:
        """option: ``--language``. Raises UsageError for an unknown one."""
        super().__init__(stderr=True, highlight=False)
        self._option = option
        self.language = choose_language(option, os.environ)

    def speak_as(self, lab: Lab) -> None:
        """Take the lab's language if neither the user nor the environment names one."""
        self.language = choose_language(self._option, os.environ, lab.language)


def spoken(console: Console) -> Language:
    return console.language if isinstance(console, Terminal) else ENGLISH


def speak_as(lab: Lab, console: Console) -> None:
    if isinstance(console, Terminal):
        console.speak_as(lab)
