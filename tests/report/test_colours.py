"""Sources on pages: every character stays, and no source takes long to mark."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.colours import coloured

PIECES = st.sampled_from(
    [
        "\n",
        "/*",
        "*/",
        "//",
        '"',
        "'",
        "\\",
        "#if",
        " ",
        "\t",
        "float",
        "x",
        "1.5e3f",
        "<b>",
        "&",
        "é",
    ]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_every_character_stays_in_its_line(text: str) -> None:
    lines = coloured(text)
    plain = [html.unescape(re.sub(r"</?span[^>]*>", "", line)) for line in lines]
    assert "\n".join(plain) == text
    for line in lines:
        assert line.count("<span") == line.count("</span>")
        assert not re.search(r"<(?!/?span)", line)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("float x;", '<span class="k">float</span> x;'),
        ("__global__", '<span class="k">__global__</span>'),
        ("floats", "floats"),
        ("// if", '<span class="c">// if</span>'),
        ('"a\\"b" + 1', '<span class="s">&#34;a\\&#34;b&#34;</span> + <span class="m">1</span>'),
        ("  #pragma unroll", '<span class="cp">  #pragma unroll</span>'),
    ],
)
def test_what_is_marked(text: str, marked: str) -> None:
    assert coloured(text) == [marked]


@pytest.mark.parametrize("piece", ["\n", "'", '"\\\n', "(((((", "a::", "/*", "#if 0\n", "  \n"])
def test_time_grows_with_the_text_only(piece: str) -> None:
    started = time.process_time()
    coloured(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 10  # a second; a quadratic one takes hours
