"""The one jinja2 environment: templates beside this file, everything escaped."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from grader.errors import one_line
from grader.report.text import clean


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["one_line"] = one_line
    environment.filters["significant"] = significant
    return environment


def _printable(value: object) -> object:
    """Remove control characters and direction overrides here too; keep our own markup."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return clean(value)


def significant(value: float, digits: int = 4) -> str:
    """``16.18``: a readable number, without an exponent where that is shorter."""
    return f"{value:.{digits}g}"


def page(template: str, **context: object) -> str:
    """The page as self-contained HTML."""
    return _environment().get_template(template).render(**context)
