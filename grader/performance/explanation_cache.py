"""Explanations that were worked out before, kept beside the builds in the cache folder.

An explanation follows from the build, the plan, the GPU and our own code, all of which make its
key. So nothing has to be removed when one of them changes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

import grader
import ptxsim
from grader.compile import build_cache as cache
from grader.hardware.gpus import Gpu
from grader.model import Build, Explanation, Plan
from grader.model.decoding import decode
from grader.problems.problem import Problem
from grader.toolchain.discovery import Toolchain
from grader.toolchain.native import cache_folder

_OUR_CODE = (".py", ".cpp", ".hpp")


def explanation_key(
    build: Build, plan: Plan, problem: Problem, toolchain: Toolchain, gpu: Gpu | None
) -> str:
    """gpu: graded on; None for the few that are shown where there is none."""
    digest = hashlib.sha256()
    tool = toolchain.nvdisasm.stat() if toolchain.nvdisasm else None
    stamp = (tool.st_size, tool.st_mtime_ns) if tool else None
    digest.update(msgspec.json.encode([build.arch, build.kernels, plan, gpu, stamp]))
    digest.update(msgspec.json.encode([problem.key, problem.at(plan.size), problem.advice]))
    ours = (
        path
        for package in (grader, ptxsim)
        for path in sorted(Path(str(package.__file__)).parent.rglob("*"))
        if path.suffix in _OUR_CODE
    )
    for path in (build.ptx, build.cubin, *ours):
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return digest.hexdigest()[:24]


def recall(key: str) -> Explanation | None:
    """The explanation that ``keep`` stored; None where there is none."""
    found = cache.find(_folder(key), ())
    try:
        return None if found is None else decode(found, Explanation)
    except msgspec.DecodeError:
        return None


def keep(key: str, explanation: Explanation) -> None:
    cache.keep(_folder(key), msgspec.json.encode(explanation), {})


def _folder(key: str) -> Path:
    """Among the builds, so that both together stay within the cache's limit."""
    return cache_folder() / "builds" / f"explained-{key}"
