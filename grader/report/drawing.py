"""Elements of the pictures. Colours come from the page's style sheet, so both themes fit.

Widths are in user units; every picture scales to its column.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup, escape

from grader.base import MachineError
from grader.report.formatting import page
from ptxsim.plan import Record
from ptxsim.text import Message, listed, phrase, verbatim

WIDTH = 640
_NAME, _VALUE, _ROW = 190.0, 120.0, 22.0  # of bars: room on the left, on the right, and per row


def svg(
    height: float, parts: Sequence[Markup], title: str, description: str, width: float = WIDTH
) -> Markup:
    """title: what the picture shows. description: what a reader would see in it."""
    return Markup(
        '<svg viewBox="0 0 {:g} {:g}" role="img"><title>{}</title><desc>{}</desc>\n{}\n</svg>'
    ).format(width, height, title, description, Markup("\n").join(parts))


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, words
    )


def rect(
    x: float, y: float, width: float, height: float, kind: str, opacity: float | None = None
) -> Markup:
    filled = Markup("") if opacity is None else Markup(' fill-opacity="{:.2f}"').format(opacity)
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"{}/>'
    ).format(x, y, width, height, kind, filled)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        x1, y1, x2, y2, kind
    )


def level(left: float, right: float, y: float, name: str) -> list[Markup]:
    """A line of a plot's grid, with its value left of it."""
    return [line(left, y, right, y, "grid"), text(left - 6, y + 4, name, "small", "end")]


def dot(x: float, y: float, kind: str = "point", radius: int = 4) -> Markup:
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>').format(x, y, radius, kind)


def polyline(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(path, kind)


class Picture(Record):
    caption: Message
    image: Markup


class Bar(NamedTuple):
    """One bar of ``bars``."""

    name: str
    value: float  # in any unit, the same for all bars of a picture
    words: str  # beside it
    kind: str = "base"  # class in the style sheet


def bars(rows: Sequence[Bar], title: str) -> Markup:
    """Horizontal bars, names left and words right of them; at least one value is positive."""
    scale = (WIDTH - _NAME - _VALUE) / max(bar.value for bar in rows)
    parts = []
    for i, bar in enumerate(rows):
        y = i * _ROW + 2
        length = bar.value * scale
        parts.append(text(_NAME - 8, y + 13, bar.name, "small", "end"))
        parts.append(rect(_NAME, y, max(length, 0.5 if bar.value else 0), _ROW - 5, bar.kind))
        parts.append(text(_NAME + length + 6, y + 13, bar.words, "small"))
    described = "\n".join(f"{bar.name} {bar.words}" for bar in rows)
    return svg(len(rows) * _ROW, parts, title, described)


# --- colours -----------------------------------------------------------------------------------

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
        if kind == "k" and words not in _KEYWORDS and not words[:2] == words[-2:] == "__":
            continue
        parts.append(escape(text[end : token.start()]))
        # A span ends with its line, because every line has its own element.
        parts.append(
            "\n".join(
                f'<span class="{kind}">{escape(line)}</span>' if line else ""
                for line in words.split("\n")
            )
        )
        end = token.end()
    parts.append(escape(text[end:]))
    return [Markup(line) for line in "".join(parts).split("\n")]


# --- standalone --------------------------------------------------------------------------------

_SIZE = re.compile(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"')
_COLOUR = re.compile(r"--(\w+): (#[0-9a-f]{6})")
_ZOOM = 2.0  # pixels of a PNG for each unit
_NAMED = 5  # letters that a complaint names at most
_NO_LETTER = "\U0001fffe"  # Unicode keeps it free for ever, so no font has it


def svg_file(picture: Markup) -> str:
    """The picture with a size, and with the style sheet's light colours."""
    found = _SIZE.match(picture)
    assert found, "svg() made the picture"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{found[1]}" height="{found[2]}" '
    style = page("picture.css.j2", **_light())
    opening, _, rest = picture.removeprefix("<svg ").partition(">")
    return f"{head}{opening}>\n<style>\n{style}\n</style>{rest}\n"


def png_file(picture: Markup) -> bytes:
    """The same as pixels. Raises MachineError that names what to install."""
    content = svg_file(picture)
    # Letters that are drawn like one that no font has: as a box, or not at all.
    texts = ElementTree.fromstring(content).iterfind(".//{*}text")
    letters = sorted({letter for each in texts for letter in "".join(each.itertext())})
    unknown = _alone(_NO_LETTER)
    if missing := [each for each in letters if not each.isspace() and _alone(each) == unknown]:
        raise MachineError.saying(
            "PNG: found no font for {letters}; install one (Debian: fonts-dejavu-core, for "
            "Chinese fonts-wqy-microhei) or put one into ~/.local/share/fonts; "
            "--svg needs none",
            letters=listed(map(verbatim, missing[:_NAMED])),
        )
    return _pixels(content)


def _alone(letter: str) -> bytes:
    return _pixels(svg_file(svg(40, [text(0, 30, letter)], "", "", width=40)))


def _pixels(picture: str) -> bytes:
    try:
        import resvg_py
    except ImportError:
        raise MachineError(
            phrase("PNG needs resvg-py: pip install 'sgemm-grader[png]'; --svg needs nothing")
        ) from None
    return resvg_py.svg_to_bytes(svg_string=picture, background="white", zoom=_ZOOM)


@cache
def _light() -> dict[str, str]:
    """The colours by name, as the first block of the page's style sheet defines them."""
    sheet = resources.files("grader.report").joinpath("templates/style.css").read_text()
    return dict(_COLOUR.findall(sheet[: sheet.index("}")]))
