"""A picture of a page as a file of its own: SVG, or PNG, for pasting into a report."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from xml.etree import ElementTree

from markupsafe import Markup

from grader.errors import MachineError
from grader.model import listed, phrase, verbatim
from grader.report.page import page
from grader.report.svg import svg, text

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
    try:
        import resvg_py  # noqa: F401
    except ImportError:
        raise MachineError(
            phrase("PNG needs resvg-py: pip install 'sgemm-grader[png]'; --svg needs nothing")
        ) from None
    content = svg_file(picture)
    if missing := _without_font(content):
        raise MachineError(
            phrase(
                "PNG: found no font for {letters}; install one (Debian: fonts-dejavu-core, for "
                "Chinese fonts-wqy-microhei) or put one into ~/.local/share/fonts; "
                "--svg needs none",
                letters=listed(map(verbatim, missing[:_NAMED])),
            )
        )
    return _pixels(content)


def _without_font(picture: str) -> list[str]:
    """Letters of the picture that are drawn like one that no font has: as a box, or not at all."""
    texts = ElementTree.fromstring(picture).iterfind(".//{*}text")
    letters = sorted({letter for each in texts for letter in "".join(each.itertext())})
    unknown = _pixels(_alone(_NO_LETTER))
    return [each for each in letters if not each.isspace() and _pixels(_alone(each)) == unknown]


def _alone(letter: str) -> str:
    return svg_file(svg(40, [text(0, 30, letter)], "", "", width=40))


def _pixels(picture: str) -> bytes:
    import resvg_py

    return resvg_py.svg_to_bytes(svg_string=picture, background="white", zoom=_ZOOM)


@cache
def _light() -> dict[str, str]:
    """The colours by name, as the first block of the page's style sheet defines them."""
    sheet = resources.files("grader.report").joinpath("templates/style.css").read_text()
    return dict(_COLOUR.findall(sheet[: sheet.index("}")]))
