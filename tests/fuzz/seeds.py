"""``python -m tests.fuzz.seeds``: makes ``seeds/`` anew, with the nvcc and recorder at hand."""

import re
from pathlib import Path

import msgspec

from grader.base.errors import Rejected
from ptxsim.plan import Size
from tests.fuzz.cases import SEEDS
from tests.support.explained import at
from tests.support.places import CHEATS, CORRECT

_HERE = Path(__file__).parent
_SIZE = Size.of(m=5, n=7, k=3)
_MOST_BYTES = 14_000  # of one PTX text; mutations of a long one rarely meet anything
_CORRECT = """
    atomic_cas_loop cp_async_ptx device_copies double_buffer dynamic_shared
    constant_parameters cache_hints named_barriers local_array recursion printf_left_in
    shared_atomics switch_statement warp_scan warp_shuffle float4_vectorised
    split_k_workspace three_dimensions noinline_function mutex single_thread naive
    tiled_template work_queue programmatic_launch
"""
_FOLDERS = (
    *(_HERE / name for name in ("astray", "features", "cluster")),
    *(CORRECT / name for name in _CORRECT.split()),
    *(CHEATS / name for name in ("mma_fp16", "mma_bf16", "tf32_rounding", "traps")),
)


def main() -> None:
    SEEDS.mkdir(exist_ok=True)
    for folder in _FOLDERS:
        try:
            ready = at(folder, "sm_90", _SIZE)
        except Rejected as refusal:
            print(f"{folder.name}: left out ({refusal})")
            continue
        text = _trimmed(ready.built.ptx.read_text())
        if len(text) > _MOST_BYTES:
            print(f"{folder.name}: left out ({len(text)} bytes of PTX)")
            continue
        (SEEDS / f"{folder.name}.ptx").write_text(text)
        (SEEDS / f"{folder.name}.json").write_bytes(msgspec.json.encode(ready.plans[0]))


def _trimmed(ptx: str) -> str:
    """Without comments, debugging sections and most of the line information."""
    ptx = re.sub(r"//[^\n]*", "", ptx.split("\t.section")[0])
    kept = []
    for line in ptx.splitlines():
        words = line.strip()
        if words.startswith(".file"):
            words = re.sub(r'"[^"]*/', '"', words)
        if words and not (words.split()[0] == ".loc" and len(kept) % 4):
            kept.append("\t" + words if words[0] not in ".{}$)" else words)
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
