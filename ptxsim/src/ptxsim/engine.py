"""The interpreter library through ctypes: its operations, its calls."""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ptxsim.engine_header import header
from ptxsim.outcome import EngineError

_TYPES: dict[str, object] = {"i": c_int, "u": c_uint32, "q": c_uint64, "d": c_double}
_TYPES |= {"B": POINTER(c_uint8), "U": POINTER(c_uint32), "Q": POINTER(c_uint64)}
_TYPES |= {"P": POINTER(c_void_p), "p": c_void_p, "s": c_char_p, "-": None}
_SIGNATURES = {  # by these letters: the result, then the arguments
    "sim_operations": "i",
    "sim_operation": "si",
    "sim_operation_shape": "si",
    "sim_layout": "s",
    "sim_program": "ipPQ",
    "sim_program_free": "-p",
    "sim_machine": "p",
    "sim_machine_free": "-p",
    "sim_sample": "-pqq",
    "sim_region": "ipqqpqiu",
    "sim_define": "ipqqqu",
    "sim_defined": "qpqqqu",
    "sim_copy_defined": "ipqqqqqu",
    "sim_undefine": "ipq",
    "sim_refine": "ipuu",
    "sim_resize": "ipqq",
    "sim_retire": "ipq",
    "sim_cluster": "-pU",
    "sim_tensor_map": "spuuqQQUUU",
    "sim_snapshot": "ipqi",
    "sim_replay": "ipi",
    "sim_undo_looks": "-p",
    "sim_order": "-puu",
    "sim_trace": "-pi",
    "sim_follows": "-pi",
    "sim_regions": "qp",
    "sim_given": "qpq",
    "sim_uses": "qpqP",
    "sim_writers": "qpqP",
    "sim_idle": "qpQ",
    "sim_watch": "ipQqq",
    "sim_writes": "qpPQ",
    "sim_recall": "ipsq",
    "sim_interrupt": "-i",
    "sim_jobs": "-u",
    "sim_launch": "ippUUuBqqdquq",
    "sim_events": "qp",
    "sim_event": "pp",
    "sim_clear_events": "-p",
    "sim_printed": "sp",
    "sim_blocks": "pp",
    "sim_guarded": "pp",
    "sim_memory": "pp",
    "sim_source": "pp",
    "sim_patterns": "pp",
    "sim_shared_wavefronts": "upuu",
}


@dataclass(frozen=True)
class Engine:
    path: Path
    library: ctypes.CDLL
    operations: dict[str, int]  # name → number
    shapes: dict[str, str]  # name → the operands it takes, as operations.hpp writes them


@cache
def load_engine(path: Path) -> Engine:
    """The interpreter that was compiled to ``path``. Raises EngineError."""
    library = ctypes.CDLL(str(path))
    for name, letters in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, *function.argtypes = (_TYPES[letter] for letter in letters)
    check_layout(library.sim_layout().decode())
    numbers = range(library.sim_operations())
    names = [library.sim_operation(k).decode() for k in numbers]
    shapes = [library.sim_operation_shape(k).decode() for k in numbers]
    return Engine(
        path, library, dict(zip(names, numbers, strict=True)), dict(zip(names, shapes, strict=True))
    )


def check_layout(compiled: str) -> None:
    """Raise EngineError unless the engine was compiled with this module's header."""
    if f'LAYOUT = "{compiled}"' not in header():
        words = "the simulator's library and its Python side disagree"
        raise EngineError(f"{words}: run python -m ptxsim.engine_header, or reinstall")


def view(address: int, dtype: np.dtype, count: int) -> np.ndarray:
    """A copy of ``count`` records at ``address`` in the engine's memory."""
    if not count:
        return np.empty(0, dtype)
    raw = ctypes.string_at(address, dtype.itemsize * count)
    return np.frombuffer(raw, dtype)
