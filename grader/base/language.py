"""Messages as text in a student's language: one catalogue, ``CODE.po``, for each beside English."""

import gettext
import io
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from grader.base.errors import UsageError
from ptxsim.text import Message, phrase, rendered

FOLDER = Path(__file__).parent / "catalogues"


class Language:
    """Messages in one language: ``language(message)``."""

    def __init__(self, code: str, translations: gettext.NullTranslations) -> None:
        self.code = code  # as in the name of the catalogue: "zh_CN"
        self.translations = translations

    @property
    def tag(self) -> str:
        """Return the language's name in HTML: "zh-CN"."""
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


_LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")


def choose_language(
    option: str | None, environment: Mapping[str, str], lab: str | None = None
) -> Language:
    """option: ``--language``. lab: of the lab file. Raises UsageError for an unknown option."""
    if option is not None:
        if code := named(option):
            return language(code)
        unknown = phrase("{option}: no such language; known are {known}", option=option)
        raise UsageError(unknown.given(known=", ".join(known_languages())))
    names = (environment[each] for each in _LOCALES if environment.get(each))
    locale, wanted = next(names, ""), [lab or ""]
    if locale.split(".")[0] not in ("", "C", "POSIX"):
        wanted = [*environment.get("LANGUAGE", "").split(":"), locale, *wanted]
    return language(next(filter(None, map(named, filter(None, wanted))), ENGLISH.code))


def named(words: str) -> str | None:
    """The language of a locale's name, such as "zh_CN.UTF-8", "zh-Hans" or "zh"; None: unknown.

    A country or script that there is no catalogue for counts as the language's only one.
    """
    code = re.split(r"[.@]", words)[0].replace("-", "_")
    for each in known_languages():
        if each.lower() == code.lower():
            return each
    main = code.split("_")[0].lower()
    return next((each for each in known_languages() if each.split("_")[0] == main), None)


# --- comments ----------------------------------------------------------------------------------
