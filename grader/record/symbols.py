"""Sizes of the ``__device__`` and ``__constant__`` variables, read from a module's PTX."""

from __future__ import annotations

import re

_DECLARED = re.compile(
    r"\s*(?:\.(?:visible|extern|weak|common)\s+)?\.(?:global|const)\s+(?:\.attribute\([^)]*\)\s*)?"
    r"(?:\.align\s+\d+\s+)?(?:\.v[24]\s+)?\.[usbf](?P<bits>\d+)\s+(?P<name>[\w$]+)"
    r"(?P<extents>(?:\[\d*\])*)\s*[=;]"
)


def read_symbols(ptx: str) -> dict[str, int]:
    """Bytes of every variable of a module by its mangled name."""
    sizes = {}
    for line in ptx.splitlines():
        found = _DECLARED.match(line)
        if found:
            size = int(found["bits"]) // 8
            for extent in re.findall(r"\d+", found["extents"]):
                size *= int(extent)
            sizes[found["name"]] = size
    return sizes
