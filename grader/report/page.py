"""The one jinja2 environment: templates beside this file, everything escaped.

Every page extends ``base.html.j2`` and is made of the parts in ``parts.html.j2``.
"""

from __future__ import annotations

import re
from functools import cache

import jinja2
from markupsafe import Markup

from grader.errors import one_line
from grader.report.text import clean

# Only our own templates can write a tag: everything else is escaped.
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_null_translations(newstyle=True)  # type: ignore[attr-defined]
    environment.filters["one_line"] = one_line
    environment.filters["significant"] = significant
    environment.filters["contents"] = contents
    environment.globals["parts"] = environment.get_template("parts.html.j2").module
    return environment


def contents(body: Markup) -> list[tuple[str, Markup]]:
    """(anchor, heading) of every section of a page's body."""
    return [(anchor, Markup(heading)) for anchor, heading in _HEADING.findall(body)]


def significant(value: float, digits: int = 4) -> str:
    """``16.18``: a readable number, without an exponent where that is shorter."""
    return f"{value:.{digits}g}"


def page(template: str, **context: object) -> str:
    """The page as self-contained HTML, without control characters and direction overrides."""
    return clean(_environment().get_template(template).render(language="en", **context))
