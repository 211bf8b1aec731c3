"""The one jinja2 environment of each language: templates beside this file, everything escaped."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from grader.errors import one_line
from grader.language import ENGLISH, Language
from grader.model import Message
from grader.report.text import clean


@cache
def _environment(language: Language) -> jinja2.Environment:
    def printable(value: object) -> object:
        """Translate; remove control characters and direction overrides here too; keep our own
        markup."""
        if isinstance(value, Message):
            value = language(value)
        if isinstance(value, Markup) or not isinstance(value, str):
            return value
        return clean(value)

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
        extensions=["jinja2.ext.i18n"],
    )
    environment.filters["one_line"] = one_line
    environment.filters["significant"] = significant
    environment.filters["said"] = language
    environment.globals["language"] = language.tag
    environment.install_gettext_translations(  # type: ignore[attr-defined]
        language.translations, newstyle=True
    )
    return environment


def significant(value: float, digits: int = 4) -> str:
    """``16.18``: a readable number, without an exponent where that is shorter."""
    return f"{value:.{digits}g}"


def page(template: str, language: Language = ENGLISH, /, **context: object) -> str:
    """The page as self-contained HTML.

    ``context`` may hold messages, which templates print, or pass on as ``message|said``. Texts of
    their own stand in ``{% trans %}``.
    """
    return _environment(language).get_template(template).render(**context)
