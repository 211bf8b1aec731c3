"""A box of a tensor map may have more bytes than 32 bits count; no block has room for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, sentence
from ptxsim.findings.event_table import Event
from ptxsim.launching import launch
from ptxsim.tensor_maps import DataType, TensorMap

LOAD = (
    "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r1], [%rd2, {%r3, %r3, %r3, %r3}], [%r2];"
)
STORE = "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%rd2, {%r3, %r3, %r3, %r3}], [%r1];"


@pytest.mark.parametrize(("moves", "access"), [(LOAD, "write"), (STORE, "read")])
@pytest.mark.parametrize("box", [(256, 256, 256, 256), (256, 256, 256, 255), (256, 256, 17, 1)])
def test_a_tile_that_no_block_has_room_for(
    moves: str, access: str, box: tuple[int, ...], tmp_path: Path
) -> None:
    ptx = tmp_path / "moves.ptx"
    ptx.write_text(kernels("giant_tiles.ptx", moves=moves))
    array = np.zeros(1 << 20, np.uint8)
    tensor = TensorMap(array, DataType.UINT8, (256, 256, 256, 256), (256, 1 << 16, 1 << 16), box)
    outcome = launch(ptx, "moves", 1, 1, [tensor], engine=engine())
    (found,) = [each for each in outcome.findings if each.event is Event.OUT_OF_BOUNDS]
    assert f"shared {access}" in sentence(found)
    assert "across the end of the 128-byte array tile" in sentence(found)
