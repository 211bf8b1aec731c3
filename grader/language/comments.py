"""Comments of CUDA sources in another language. The code around them stays, byte for byte.

A catalogue has an entry for each paragraph of comment lines and for each comment beside code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO

from grader.language.catalogue import Language

_TOKENS = re.compile(
    r"""
    (?P<string> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
  | (?P<paragraph> ^(?P<indent>[ \t]*)//[ ]*\S[^\n]*
        (?: \n(?P=indent)//[ ]*\S[^\n]* )* )
  | (?P<beside> //[ ]?(?P<words>\S[^\n]*) )
    """,
    re.VERBOSE | re.MULTILINE,
)


def translated(source: str, language: Language) -> str:
    """The source with its comments in this language, where the catalogue has them."""
    return _changed(source, language.translations.gettext)


def extracted(
    source: IO[bytes],
    keywords: Mapping[str, object],
    comment_tags: Collection[str],
    options: Mapping[str, str],
) -> Iterator[tuple[int, str, str, list[str]]]:
    """What a catalogue translates, as Babel calls it: line, function, text, remarks."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    _changed(source.read().decode(), keep)
    yield from ((1, "", text, []) for text in found)


def _changed(source: str, change: Callable[[str], str]) -> str:
    def piece(token: re.Match[str]) -> str:
        if token["paragraph"] is not None:
            before = f"{token['indent']}//"
            lines = [line.removeprefix(before) for line in token["paragraph"].split("\n")]
            text = "\n".join(line.removeprefix(" ") for line in lines)
            return "\n".join(f"{before} {line}" for line in change(text).split("\n"))
        if token["beside"] is not None:
            return f"// {change(token['words'])}"
        return token[0]

    return _TOKENS.sub(piece, source)
