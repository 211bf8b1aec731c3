"""The process that a class's workers are forked from: it imports what they need, once for all.

A fork of the command itself would have its signal handlers and its CUDA driver.

A new Python looks for modules in the folder that it starts in, before all others. That may be the
folder of the submissions, and a group may be called ``signal``. So it starts in ``/``.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Concatenate, ParamSpec

from grader.base import MachineError

_CONTEXT = multiprocessing.get_context("forkserver")
_PAUSES = (0.05, 0.2, 1.0, 0.0)  # seconds after each try
# unix(7) gives a socket's path 107 bytes, of which "/pymp-12345678/listener-12345678" takes 32.
_LONGEST_TEMPORARY = 107 - 32
_Arguments = ParamSpec("_Arguments")


def warm_up() -> None:
    """Begin while the command still imports its own modules and looks at its arguments."""
    _CONTEXT.set_forkserver_preload(["grader.study.worker"])
    _ensure_running()


def _ensure_running() -> None:
    """Start the server from a folder that only root can write. Its socket goes into /tmp where
    TMPDIR is too long for one, as with Python 3.14."""
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) > _LONGEST_TEMPORARY:
        tempfile.tempdir = "/tmp"
    os.chdir("/")
    try:
        forkserver.ensure_running()
    finally:
        tempfile.tempdir = usual
        os.fchdir(here)
        os.close(here)


def fork(
    work: Callable[Concatenate[Connection, _Arguments], None],
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> tuple[BaseProcess, Connection]:
    """A process that does ``work(pipe, ...)``, and our end of its pipe.

    Whoever kills the process that forks may do so at this very moment. Then another one forks, with
    a new pipe: a worker may exist that nobody has heard of, and it ends when its pipe closes. On a
    busy machine the dead one is gone a while later, and only then does another one start.
    Raises MachineError if that happens again and again.
    """
    for pause in _PAUSES:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=work, args=(theirs, *args), kwargs=kwargs)
        try:
            _ensure_running()  # it may have been killed
            process.start()
        except (EOFError, ConnectionError, FileNotFoundError):
            ours.close()
            time.sleep(pause)
        else:
            return process, ours
        finally:
            theirs.close()
    raise MachineError.saying(
        "the process that starts a class's workers was killed {tries} times while it started"
        " one; see whether the machine runs out of memory (dmesg), and try again",
        tries=len(_PAUSES),
    )
