"""The language of a command: ``--language``, else the environment's, else the lab's, else English.

The environment's is the first of LANGUAGE's entries, LC_ALL, LC_MESSAGES and LANG that is set, as
gettext has it. "C" and "POSIX" say nothing, and so does a language that there is no catalogue for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from grader.errors import UsageError
from grader.language.catalogue import ENGLISH, Language, known_languages, language
from grader.model import phrase


def choose_language(
    option: str | None, environment: Mapping[str, str], lab: str | None = None
) -> Language:
    """option: ``--language``. lab: of the lab file. Raises UsageError for an unknown option."""
    if option is not None:
        code = named(option)
        if code is None:
            known = ", ".join(known_languages())
            raise UsageError(
                phrase(
                    "--language {option}: no such language; known are {known}",
                    option=option,
                    known=known,
                )
            )
        return language(code)
    for words in _of_environment(environment):
        if code := named(words):
            return language(code)
    return language(named(lab or "") or ENGLISH.code)


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


def _of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    locale = next(
        (environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)),
        "",
    )
    if locale.split(".")[0] in ("", "C", "POSIX"):
        return
    yield from filter(None, environment.get("LANGUAGE", "").split(":"))
    yield locale
