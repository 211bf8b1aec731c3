"""What the tests of this room share."""

from pathlib import Path

import pytest

from grader.base.records import BuildInfo
from grader.build.building import Build


@pytest.fixture
def build(tmp_path: Path) -> Build:
    ptx = tmp_path / "kernels.ptx"
    ptx.write_text(".version 9.0")
    info = BuildInfo(ok=True, command="", log="", seconds=0, kernels=())
    return Build(arch="sm_80", ptx=ptx, second_ptx=ptx, cubin=ptx, host_library=ptx, info=info)
