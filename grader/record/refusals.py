"""The reasons why the recorder lets a call, or host code as a whole, go no further.

refusals.toml lists them. The recorder names one by its number, which it is compiled with, and gives
the arguments of its sentence.
"""

from pathlib import Path

import msgspec

from grader.base import Kind, Verdict
from grader.record import calls
from ptxsim import plan as limits
from ptxsim.findings import readable
from ptxsim.plan import MOST_ROWS, Record, Refused
from ptxsim.text import Message

_MAX_TEXT = 400  # characters of an argument
_GIVEN: dict[str, dict[str, object]] = {  # arguments that are always the same
    "TOO_MANY_ROWS": {"most": MOST_ROWS},
    "BAD_TENSOR_MAP": {"function": "cuTensorMapEncodeTiled"},
    "GRID_TOO_LARGE": dict(zip(("across", "other"), limits.MAX_GRID, strict=False)),
    "BLOCK_TOO_LARGE": {"most": limits.MAX_THREADS},
    "BLOCK_TOO_DEEP": {"most": limits.MAX_BLOCK[2]},
    "TOO_MANY_REGISTERS": {"most": limits.MAX_REGISTERS},
    "CLUSTER_NOT_PORTABLE": {"most": limits.PORTABLE_CLUSTER},
    "TOO_MANY_LAUNCHES": {"most": calls.MAX_LAUNCHES},
    "TOO_MANY_TRANSFERS": {"most": calls.MAX_TRANSFERS},
    "TOO_MANY_ALLOCATIONS": {"most": calls.MAX_ALLOCATIONS, "calls": calls.CALLS},
    "RECORD_FULL": {"most": calls.MAX_PLAN_BYTES >> 20},
}


class Refusal(Record):
    name: str
    verdict: Verdict
    kind: Kind
    sentence: Message


def _read() -> tuple[Refusal, ...]:
    table = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
    found = []
    for section, rows in table.items():
        verdict, kind, *error = section.split()
        for name, text in rows.items():
            args = {each: str(value) for each, value in _GIVEN.get(name, {}).items()}
            sentence = Message(text=text, args=args | ({"error": error[0]} if error else {}))
            found.append(
                Refusal(name=name, verdict=Verdict(verdict), kind=Kind(kind), sentence=sentence)
            )
    return tuple(found)


REFUSALS = _read()
_NUMBERS = {refusal.name: number for number, refusal in enumerate(REFUSALS)}


def refused(name: str, **args: str) -> Refused:
    return Refused(number=_NUMBERS[name], args=args)


def find_refusal(refused: Refused) -> Refusal | None:
    """The reason; None where host code has forged the number or the arguments."""
    found = REFUSALS[refused.number] if 0 <= refused.number < len(REFUSALS) else None
    if found and {*found.sentence.places} == {*found.sentence.args, *refused.args}:
        return found
    return None


def refusal_sentence(refused: Refused) -> Message:
    """The sentence of a refusal that ``find_refusal`` finds; its arguments may be forged."""
    args = {}
    for name, text in refused.args.items():
        printable = "".join(char if char.isprintable() else "?" for char in text)
        args[name] = readable(printable)[:_MAX_TEXT]
    return REFUSALS[refused.number].sentence.given(**args)


def macros() -> tuple[str, ...]:
    """The names in their order, as an option of the recorder's compiler."""
    return (f"-DREFUSALS={','.join(_NUMBERS)}",)
