"""C++ and CUDA → lines of HTML with keywords, strings, numbers, comments and macros marked.

One pass of one regular expression, no part of which can match a text in two ways. So the time is
linear in the length of the text, whatever a student wrote. (A general highlighter takes minutes for
a few thousand empty lines.)
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# The names of the groups are the classes of style.css.
_TOKENS = re.compile(
    r"""
    (?P<c>  //[^\n]* | /\*(?s:.*?)(?:\*/|\Z) )
  | (?P<cp> ^[ \t]*\#[^\n]* )
  | (?P<s>  "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? )
  | (?P<m>  \.?[0-9](?:[\w.]|'\w)* )
  | (?P<k>  [^\W\d]\w* )
    """,
    re.VERBOSE | re.MULTILINE,
)
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof asm auto bool break case catch char class const constexpr const_cast
        continue decltype default delete do double dynamic_cast else enum explicit extern false
        float for friend goto if inline int long mutable namespace new noexcept nullptr operator
        private protected public register reinterpret_cast return short signed sizeof static
        static_assert static_cast struct switch template this throw true try typedef typename
        union unsigned using virtual void volatile wchar_t while
        blockDim blockIdx dim3 float2 float3 float4 gridDim half size_t threadIdx warpSize
        """,
    )
)


def coloured(text: str) -> list[Markup]:
    """One piece of HTML for each line of ``text``."""
    parts: list[str] = []
    end = 0
    for token in _TOKENS.finditer(text):
        kind, words = token.lastgroup, token[0]
        if kind == "k" and not _is_keyword(words):
            continue
        parts.append(escape(text[end : token.start()]))
        # A span ends with its line, because every line has its own element.
        parts.append("\n".join(_span(kind, line) for line in words.split("\n")))
        end = token.end()
    parts.append(escape(text[end:]))
    return [Markup(line) for line in "".join(parts).split("\n")]


def _is_keyword(word: str) -> bool:
    return word in _KEYWORDS or (word.startswith("__") and word.endswith("__"))


def _span(kind: str | None, line: str) -> str:
    return f'<span class="{kind}">{escape(line)}</span>' if line else ""
