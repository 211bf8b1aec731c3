"""Templates as Python's bytecode, kept in the cache folder: to compile them takes as long as
everything else that makes a page.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

import jinja2
from jinja2.bccache import Bucket

from grader.errors import ToolchainError
from grader.toolchain.native import cache_folder


class CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """jinja2's, which itself compares the template's text and the version of Python. What cannot
    be read or written is compiled again."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(Exception):  # a damaged file makes pickle raise anything
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # the disk is full, the folder gone
            super().dump_bytecode(bucket)


def compiled_templates(settings: bytes) -> CompiledTemplates | None:
    """settings: of the environment, which decide what a template is compiled to. None where there
    is no folder that this user alone can write to: what lies there is run."""
    digest = hashlib.sha256(jinja2.__version__.encode() + settings).hexdigest()[:16]
    try:
        folder = cache_folder() / "templates" / digest
        folder.mkdir(parents=True, exist_ok=True)
    except (ToolchainError, OSError):
        return None
    return CompiledTemplates(str(folder))
