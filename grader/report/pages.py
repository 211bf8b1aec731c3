"""Our templates → pages.

Every page extends ``base.html.j2`` and is made of the parts in ``parts.html.j2``.
"""

from __future__ import annotations

from grader.base import ENGLISH, Language
from grader.report.formatting import clean


def page(template: str, language: Language = ENGLISH, /, **context: object) -> str:
    """The page as self-contained HTML, without control characters and direction overrides.

    ``context`` may hold messages, which templates print, or pass on as ``message|said``. A text of
    a document that the catalogues know as a whole is printed as ``text|translated``.
    """
    from grader.report.environments import environment  # jinja2 takes a tenth of a second to load

    template_of = environment(language).get_template(template)
    return clean(template_of.render(language=language.tag, **context))
