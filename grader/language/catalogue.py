"""Catalogues → ``Language``: messages as text."""

from __future__ import annotations

import gettext
import io
from functools import cache
from pathlib import Path

from grader.model import Message
from ptxsim.message import rendered

FOLDER = Path(__file__).parent


class Language:
    """Messages in one language: ``language(message)``."""

    def __init__(self, code: str, translations: gettext.NullTranslations) -> None:
        self.code = code  # as in the name of the catalogue: "zh_CN"
        self.translations = translations

    @property
    def tag(self) -> str:
        """As HTML names it: "zh-CN"."""
        return self.code.replace("_", "-")

    def __call__(self, message: Message) -> str:
        return rendered(message, self.translations)


ENGLISH = Language("en", gettext.NullTranslations())


@cache
def known_languages() -> tuple[str, ...]:
    """English and what there are catalogues for."""
    return (ENGLISH.code, *sorted(path.stem for path in FOLDER.glob("*.po")))


@cache
def language(code: str) -> Language:
    """One of ``known_languages``."""
    return ENGLISH if code == ENGLISH.code else Language(code, _read(FOLDER / f"{code}.po"))


def _read(path: Path) -> gettext.GNUTranslations:
    # Most commands speak English and need no Babel.
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        catalogue = read_po(file)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)
