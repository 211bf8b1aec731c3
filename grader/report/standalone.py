"""A picture of a page as a file of its own: SVG, or PNG, for pasting into a report."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from markupsafe import Markup

from grader.errors import MachineError
from grader.model import phrase
from grader.report.page import page

_SIZE = re.compile(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"')
_COLOUR = re.compile(r"--(\w+): (#[0-9a-f]{6})")
_ZOOM = 2.0  # pixels of a PNG for each unit


def svg_file(picture: Markup) -> str:
    """The picture with a size, and with the style sheet's light colours."""
    found = _SIZE.match(picture)
    assert found, "svg() made the picture"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{found[1]}" height="{found[2]}" '
    style = page("picture.css.j2", **_light())
    opening, _, rest = picture.removeprefix("<svg ").partition(">")
    return f"{head}{opening}>\n<style>\n{style}\n</style>{rest}\n"


def png_file(picture: Markup) -> bytes:
    """The same as pixels. Raises MachineError that names the package to install."""
    try:
        import resvg_py
    except ImportError:
        raise MachineError(
            phrase("PNG needs resvg-py: pip install 'sgemm-grader[png]'; --svg needs nothing")
        ) from None
    return resvg_py.svg_to_bytes(svg_string=svg_file(picture), background="white", zoom=_ZOOM)


@cache
def _light() -> dict[str, str]:
    """The colours by name, as the first block of the page's style sheet defines them."""
    sheet = resources.files("grader.report").joinpath("templates/style.css").read_text()
    return dict(_COLOUR.findall(sheet[: sheet.index("}")]))
