"""Why calls of CUDA's runtime fail, as refusals.toml lists them."""

from pathlib import Path

import msgspec

from ptxsim.execution.messages import BrokenChannel
from ptxsim.findings.names import readable
from ptxsim.plan.records import Refused
from ptxsim.text import Message

_MOST_TEXT = 400  # characters of an argument
_TABLE = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
_ROWS = [(name, error, text) for error, rows in _TABLE.items() for name, text in rows.items()]


def sentence_of(refused: Refused, memory: str, where: str) -> Message:
    """memory, where: the name of what it is about, and the place in it. Raises BrokenChannel for a
    refusal that nobody made."""
    error, text = error_of(refused), _ROWS[refused.number][2]
    given = {"error": error, "memory": memory, "where": where, **refused.args}
    sentence = Message(text=text)
    if not {*sentence.places} <= {*given}:
        raise BrokenChannel
    return sentence.given(**{name: readable(given[name])[:_MOST_TEXT] for name in sentence.places})


def error_of(refused: Refused) -> str:
    """The name of CUDA's error. Raises BrokenChannel for a refusal that nobody made."""
    if not 0 <= refused.number < len(_ROWS):
        raise BrokenChannel
    return str(_ROWS[refused.number][1])


def macros() -> tuple[str, ...]:
    """The names in their order, and their errors, as options of the sink's compiler."""
    names, errors, _ = zip(*_ROWS, strict=True)
    return (f"-DREFUSALS={','.join(names)}", f"-DREFUSAL_ERRORS={','.join(errors)}")
