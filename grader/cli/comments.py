"""Comments of sources in a student's language."""

import re

from grader.base import Language

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
    change = language.translations.gettext

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
