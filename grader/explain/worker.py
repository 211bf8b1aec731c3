"""The process that counts a few blocks of a large product: ``python -m grader.explain.worker``.

A process of its own for the same reasons as the simulator's: a limit of memory, and nothing of a
submission's misbehaviour in the grader. One ``Question`` on stdin, one ``Reply`` on what was
stdout.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from pathlib import Path

import msgspec

from grader.errors import GraderError
from grader.explain.messages import Answer, NoAnswer, Question, Reply
from grader.ptx import ptx_text
from grader.sim import Sampler


def main() -> None:
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        threading.Thread(target=_die_with_the_grader, daemon=True).start()
        stream.write(msgspec.json.encode(_answer(msgspec.json.decode(line, type=Question))) + b"\n")
        stream.flush()
    os._exit(0)  # the thread still waits for the grader


def _answer(question: Question) -> Reply:
    size = question.memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        sampler = Sampler(ptx_text(Path(question.ptx)), Path(question.source_root))
        return Answer(samples=sampler.sample(question.plan, question.seconds))
    except MemoryError:
        return NoAnswer(message="A, B and C of this size need more memory than the lab allows")
    except GraderError as error:
        return NoAnswer(message=str(error))


def _die_with_the_grader() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
