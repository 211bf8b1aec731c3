"""The one jinja2 environment of each language: templates beside this file, everything escaped."""

import hashlib
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from grader.base import Language, ToolchainError, cache_folder, one_line
from ptxsim.text import Message, clauses

# Only our own templates can write a tag: everything else is escaped.
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)


@cache
def environment(language: Language) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        finalize=lambda value: language(value) if isinstance(value, Message) else value,
        bytecode_cache=compiled_templates(Path(__file__).read_bytes()),
    )
    _translate(made, language)
    made.filters |= {
        "one_line": one_line,
        "significant": lambda value, digits=4: f"{value:.{digits}g}",
        "said": language,
        "translated": lambda text: language(Message(text=text)),
        "clauses": lambda messages: language(clauses(messages)),
        "contents": contents,
    }
    made.globals["parts"] = made.get_template("parts.html.j2").module
    return made


def _translate(environment: jinja2.Environment, language: Language) -> None:
    """``_()`` and ``{% trans %}``; what they are given may be messages, too."""

    def filled(text: str, places: dict[str, Any]) -> Markup:
        return Markup(text) % {
            name: language(value) if isinstance(value, Message) else value
            for name, value in places.items()
        }

    def gettext(text: str, /, **places: Any) -> Markup:
        return filled(language.translations.gettext(text), places)

    def ngettext(one: str, many: str, number: int, /, **places: Any) -> Markup:
        text = language.translations.ngettext(one, many, number)
        return filled(text, {"num": number, **places})

    environment.policies["ext.i18n.trimmed"] = True
    environment.newstyle_gettext = True  # type: ignore[attr-defined]
    environment.globals |= {"gettext": gettext, "ngettext": ngettext}


def contents(body: Markup) -> list[tuple[str, Markup]]:
    """(anchor, heading) of every section of a page's body."""
    return [(anchor, Markup(heading)) for anchor, heading in _HEADING.findall(body)]


# --- compiled templates ------------------------------------------------------------------------


class CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """jinja2's, which itself compares the template's text and the version of Python. What cannot
    be read or written is compiled again."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(Exception):  # a damaged file makes pickle raise anything
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # the disk is full, the folder gone
            super().dump_bytecode(bucket)


def compiled_templates(settings: bytes) -> CompiledTemplates | None:
    """settings: of the environment, which decide what a template is compiled to. None where there
    is no folder that this user alone can write to: what lies there is run."""
    digest = hashlib.sha256(jinja2.__version__.encode() + settings).hexdigest()[:16]
    try:
        folder = cache_folder() / "templates" / digest
        folder.mkdir(parents=True, exist_ok=True)
    except (ToolchainError, OSError):
        return None
    return CompiledTemplates(str(folder))
