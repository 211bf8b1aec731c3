"""Sentences as data: the English text, and what goes into it. They can be shown in any language.

``phrase`` and ``counted`` make them. Babel finds the English texts by these names, so each is given
as a literal. Only ``{name}`` and ``{name:.4g}`` are places; any other brace stands for itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from gettext import NullTranslations

from ptxsim.record import Record

_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?::([#,]?0?\d?\d?(?:\.\d\d?)?[defgxX%]?))?\}")
# Chinese stands next to Chinese without a space, and beside Latin letters and figures with one.
_HAN, _LATIN = r"[\u3001-\u303f\u3400-\u9fff\uff01-\uff65]", r"[A-Za-z0-9]"
_NEEDLESS = re.compile(rf"(?<={_HAN}) (?=\0{_HAN})|(?<={_HAN}\0) (?={_HAN})")
_MISSING = re.compile(rf"(?<=[\u3400-\u9fff])(?=\0{_LATIN})|(?<={_LATIN}\0)(?=[\u3400-\u9fff])")
_DEEPEST = 20  # messages in messages; more is no sentence
_LONGEST = 100_000  # characters that a message may become: a forged one could double at each level
_INTEGERS = 1 << 53  # beyond them, a reader of JSON may round
_ENGLISH = NullTranslations()


class Message(Record):
    """A text for people. ``str()`` gives it in English."""

    text: str  # in English, with places for ``args``; the key in catalogues
    # Figures and names, which are the same in every language, and messages; "zh" is the text in
    # Chinese of a sentence that brings its own, for no catalogue has it.
    args: Mapping[str, int | float | str | Message] = {}
    plural: str | None = None  # the text where ``args["count"]`` is not 1

    def __post_init__(self) -> None:
        if _depth(self) > _DEEPEST:
            raise ValueError("messages in messages, too deep")

    def __str__(self) -> str:
        return rendered(self, _ENGLISH)

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        return bool(self.text)

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the arguments that the text asks for."""
        return tuple(place[1] for place in _PLACE.finditer(self.text))

    def given(self, **args: int | float | str | Message) -> Message:
        """The same sentence with more arguments."""
        return Message(text=self.text, args={**self.args, **_plain(args)}, plural=self.plural)


def phrase(text: str, /, **args: int | float | str | Message) -> Message:
    """A sentence, or a part of one, that the catalogues translate."""
    return Message(text=text, args=_plain(args))


def counted(text: str, plural: str, count: int, /, **args: int | float | str | Message) -> Message:
    """``phrase`` with ``count`` of something: ``text`` for one, ``plural`` for others."""
    return Message(text=text, args=_plain({"count": count, **args}), plural=plural)


def verbatim(text: str | Message) -> Message:
    """Wrap a text without translation: a compiler's or the system's own words. A message stays."""
    if isinstance(text, Message):
        return text
    return Message(text="{words}", args={"words": text}) if text else NOTHING


def recognised(text: str, sentences: Iterable[Message]) -> Message:
    """The first sentence that a finished text is an instance of; else the text, verbatim."""
    for sentence in sentences:
        pieces = (re.escape(piece) for piece in _PLACE.sub("\0", sentence.text).split("\0"))
        if found := re.fullmatch("(.+?)".join(pieces), text, re.DOTALL):
            return sentence.given(**dict(zip(sentence.places, found.groups(), strict=True)))
    return verbatim(text)


def rendered(message: Message, translations: NullTranslations) -> str:
    """Render the message in the language of these translations."""
    count = message.args.get("count")
    own = message.args.get(translations.info().get("language", "").partition("_")[0])
    if isinstance(own, str):
        text = own
    elif message.plural is not None:
        few = count if isinstance(count, int) else _INTEGERS
        text = translations.ngettext(message.text, message.plural, few)
    else:
        text = translations.gettext(message.text) if message.text else ""
    if not message.args:
        return text
    parts = {
        name: rendered(each, translations) if isinstance(each, Message) else each
        for name, each in message.args.items()
    }
    return _filled(text, parts)


def _filled(text: str, parts: Mapping[str, int | float | str]) -> str:
    pieces, end, length = [], 0, 0
    for place in _PLACE.finditer(text):
        if place[1] not in parts:
            continue
        piece = f"{text[end : place.start()]}\0{_shown(parts[place[1]], place[2] or '')}\0"
        pieces.append(piece)
        end = place.end()
        length += len(piece)
        if length > _LONGEST:
            return "".join(pieces).replace("\0", "")[:_LONGEST] + "…"
    spaced = _MISSING.sub(" ", _NEEDLESS.sub("", "".join(pieces) + text[end:]))
    return spaced.replace("\0", "")


def _shown(value: int | float | str, form: str) -> str:
    try:
        return format(value, form) if form else str(value)
    except ValueError:  # the form is for another type
        return str(value)


def _plain(
    args: Mapping[str, int | float | str | Message],
) -> dict[str, int | float | str | Message]:
    """Numbers of libraries as Python's own, and no number that JSON or a reader of it lacks."""
    return {name: _number(value) for name, value in args.items()}


def _number(value: int | float | str | Message) -> int | float | str | Message:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, str | Message):
        return value
    return int(value) if -_INTEGERS <= value < _INTEGERS else str(value)


def _depth(message: Message) -> int:
    inner = [_depth(each) for each in message.args.values() if isinstance(each, Message)]
    return 1 + max(inner, default=0)


NOTHING = Message(text="")


def listed(parts: Iterable[Message]) -> Message:
    """``a, b, c``, with the comma of the language."""
    return _joined(list(parts), phrase("{first}, {second}"))


def enumerated(parts: Iterable[Message]) -> Message:
    """``a, b and c``."""
    *most, last = parts
    if not most:
        return last
    return phrase("{first} and {second}").given(first=listed(most), second=last)


def clauses(parts: Iterable[Message]) -> Message:
    """``a; b; c``."""
    return _joined(list(parts), phrase("{first}; {second}"))


def sentences(parts: Iterable[Message]) -> Message:
    """One after the other; Chinese puts no space between them."""
    return _joined(list(parts), phrase("{first} {second}"))


def _joined(parts: list[Message], pair: Message) -> Message:
    """Join in a balanced tree: messages do not nest deep."""
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    half = len(parts) // 2
    return pair.given(first=_joined(parts[:half], pair), second=_joined(parts[half:], pair))
