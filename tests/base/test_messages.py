"""Messages are data: text and arguments, in any language, whatever a document says."""

import gettext
import subprocess
import sys
from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from ptxsim.text import (
    NOTHING,
    Message,
    clauses,
    counted,
    enumerated,
    listed,
    phrase,
    rendered,
    sentences,
    verbatim,
)
from tests.support.files import beside, values

SECONDS = phrase("it took {seconds:.3g} s of {whole}", seconds=2 / 3, whole=7)


class German(gettext.NullTranslations):
    TEXTS: Mapping[str, str] = {
        "it took {seconds:.3g} s of {whole}": "{seconds:.1f} von {whole} s",
        "at {place}: {what}": "{what} ({place})",
        "{count} block": "{count} Block",
        "{first} and {second}": "{first} und {second}",
    }

    def gettext(self, message: str) -> str:
        return self.TEXTS.get(message, message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1) if n == 1 else self.TEXTS[msgid1].replace("Block", "Blöcke")


def test_in_english_it_is_the_text_with_its_figures() -> None:
    assert str(SECONDS) == "it took 0.667 s of 7"
    assert str(phrase("mask {mask:#010x}", mask=255)) == "mask 0x000000ff"
    assert str(counted("{count} block", "{count} blocks", 1)) == "1 block"
    assert str(counted("{count} block of {n}", "{count} blocks of {n}", 0, n=3)) == "0 blocks of 3"


def test_in_another_language_words_have_their_own_order() -> None:
    message = phrase("at {place}: {what}", place="sgemm.cu:3", what=SECONDS)
    assert rendered(message, German()) == "0.7 von 7 s (sgemm.cu:3)"
    blocks = [counted("{count} block", "{count} blocks", n) for n in (1, 2)]
    assert rendered(enumerated(blocks), German()) == "1 Block und 2 Blöcke"


def test_a_sentence_may_bring_its_own_translation() -> None:
    own = phrase("{name} is turned", name="B", zh="{name} 被转置")
    chinese = gettext.NullTranslations()
    chinese.info()["language"] = "zh_CN"
    assert str(own) == rendered(own, German()) == "B is turned"
    assert rendered(phrase("at {place}: {what}", place=3, what=own), chinese) == "at 3: B 被转置"


def test_what_nobody_translates_stays_as_it_is() -> None:
    assert rendered(verbatim("at {place}: {what}"), German()) == "at {place}: {what}"
    assert not verbatim("") and not NOTHING and str(NOTHING) == ""


def test_names_that_students_choose_are_no_places() -> None:
    assert (
        str(phrase("{kernel} runs {what}", kernel="{what}", what="{kernel}"))
        == "{what} runs {kernel}"
    )
    assert str(Message(text="{ratio: 0.5} {unknown} {a.b} {a!r} {a:9999}", args={"a": 1})) == (
        "{ratio: 0.5} {unknown} {a.b} {a!r} {a:9999}"
    )
    assert str(Message(text="{a:d}", args={"a": "x"})) == "x"


def test_a_document_gives_them_back() -> None:
    nested = phrase("{what}: {half} {n}", what=SECONDS, half=np.float64(0.5), n=np.int64(3))
    for message in (SECONDS, nested, counted("{count} a", "{count} b", 2), phrase("{x}", x=1e999)):
        again = msgspec.json.decode(msgspec.json.encode(message), type=Message)
        assert again == message and str(again) == str(message) and hash(again) == hash(message)


@pytest.mark.parametrize(("text", "value", "shown"), values(__file__, "spaces.txt"))
def test_chinese_has_spaces_beside_latin_words_only(text: str, value: str, shown: str) -> None:
    assert str(phrase(text, x=value)) == shown


def test_lists() -> None:
    parts = [verbatim(each) for each in "abcde"]
    assert str(listed(parts)) == "a, b, c, d, e"
    assert str(enumerated(parts)) == "a, b, c, d and e" and str(enumerated(parts[:1])) == "a"
    assert str(clauses(parts[:3])) == "a; b; c" and str(sentences(parts[:2])) == "a b"
    assert not listed([])
    assert len(str(listed([verbatim("x")] * 5000))) == 14_998


def test_a_forged_one_does_not_grow_without_end() -> None:
    big = Message(text="{a}" * 1000, args={"a": "x" * 1000})
    for _ in range(15):
        big = Message(text="{a}" * 1000, args={"a": big})
    assert len(str(big)) < 200_000
    deep = b'{"text":"{a}","args":{"a":' * 30 + b'""' + b"}}" * 30
    with pytest.raises(msgspec.ValidationError, match="too deep"):
        msgspec.json.decode(deep, type=Message)


# --- reading by two threads


_JSON, _BUILTINS = """b'{"inner": {"x": 1}, "name": "a"}'""", """{"inner": {"x": 1}, "name": "a"}"""


def run(call: str) -> int:
    program = beside(__file__, "two_threads.py.in", call=call)
    return subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("call", [f"decode({_JSON}, Outer)", f"convert({_BUILTINS}, Outer)"])
def test_two_threads_may_need_a_type_for_the_first_time_at_once(call: str) -> None:
    assert run(call) == 0


@pytest.mark.skipif(
    tuple(map(int, msgspec.__version__.split(".")[:2])) >= (0, 23), reason="msgspec 0.23 can"
)
def test_msgspec_alone_cannot_do_that() -> None:
    """Once pyproject.toml asks for msgspec 0.23, which has learnt it, ``decoding`` can go."""
    assert run(f"msgspec.json.decode({_JSON}, type=Outer)") != 0
