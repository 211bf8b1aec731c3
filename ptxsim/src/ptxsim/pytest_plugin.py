"""The fixture ``ptxsim``: launches that are not clean fail the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ptxsim.launching import Module


@pytest.fixture(name="ptxsim")
def checked_modules(request: pytest.FixtureRequest) -> Callable[..., Module]:
    """``ptxsim.Module``, checked; a file's name is relative to the test's folder."""

    def module(ptx: Path | str, **options: Any) -> Module:
        from ptxsim.launching import Module  # not in every run of pytest

        if isinstance(ptx, Path) or "\n" not in ptx:
            ptx = request.path.parent / ptx
        return Module(ptx, checked=True, **options)

    return module
