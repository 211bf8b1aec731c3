"""Counts a few blocks of a large product: ``python -m grader.performance.sampling_worker ENGINE``.

A process of its own for the same reasons as the simulator's (devices/worker.py), and in the same
cage. One ``Question`` on stdin, one ``Reply`` on what was stdout.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from queue import Queue

import msgspec

from grader.backends.simulator.simulation_worker import listen
from grader.errors import GraderError
from grader.performance.sampling_messages import Answer, NoAnswer, Question, Reply
from grader.sandbox import seccomp
from ptxsim.engine import Engine, load_engine
from ptxsim.errors import EngineError, RefusedProgram
from ptxsim.sampling import Sampler


def main() -> None:
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        engine = load_engine(Path(sys.argv[1]))
        seccomp.lock_down()
        lines: Queue[bytes] = Queue()
        threading.Thread(target=listen, args=(lines,), daemon=True).start()
        question = msgspec.json.decode(lines.get(), type=Question)
        stream.write(msgspec.json.encode(_answer(question, engine)) + b"\n")
        stream.flush()
    os._exit(0)  # the thread still waits for the grader


def _answer(question: Question, engine: Engine) -> Reply:
    try:
        sampler = Sampler(question.ptx, Path(question.source_root), engine)
        return Answer(samples=sampler.sample(question.plan, question.seconds))
    except MemoryError:
        return NoAnswer(message="A, B and C of this size need more memory than the lab allows")
    except (GraderError, EngineError, RefusedProgram) as error:
        return NoAnswer(message=str(error))


if __name__ == "__main__":
    main()
