"""Every fixture and cheat that compiles, recorded and simulated under ASan and UBSan."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from grader.backends.simulator.engine_library import engine_library
from grader.compile.building import compile_submission
from grader.errors import Rejected
from grader.labs.lab import load_lab
from grader.model import Build, Mnk, Plan, Submission
from grader.record import recording
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import Native
from ptxsim.errors import RefusedProgram
from ptxsim.frontend.interface import Interface, read_interface
from tests.fuzz.campaign import sanitised_environment
from tests.fuzz.worker import SANITISED
from tests.support.corpus import cheats, lay_out

FIXTURES = Path(__file__).parents[1] / "fixtures"
SIZES = (Mnk(m=9, n=17, k=33), Mnk(m=32, n=32, k=16))
OPTIONS = Path(__file__).with_name("sanitisers.cpp")  # what the environment would say
# The shadow of ASan takes 16 TiB of addresses, the sanitisers several times the time.
MEMORY_MB, RECORD_S = 1 << 25, 10
PROCESSES = 2

Made = tuple[Submission, Build, Interface]


def folders(place: Path) -> Iterator[Path]:
    yield from sorted(FIXTURES.glob("*/*/"))
    for cheat in cheats():
        yield lay_out(cheat, place)


def made(folder: Path) -> Made | None:
    """None for what does not compile."""
    submission, limits = load_submission(folder), load_lab().limits
    try:
        build = compile_submission(
            submission,
            find_toolchain(),
            Sandbox.open(),
            arch=f"sm_{load_lab().architectures[0]}",
            compile_s=10,
            memory_mb=limits.memory_mb,
        )
        return submission, build, read_interface(build.ptx.read_text(), folder)
    except (Rejected, RefusedProgram):
        return None


def recorded(each: Made, seconds: float, memory_mb: int) -> tuple[Plan | Rejected, ...]:
    submission, build, declared = each
    return recording.record_plans(
        build,
        submission,
        SIZES,
        find_toolchain(),
        Sandbox.open(),
        declared=declared,
        record_s=seconds,
        memory_mb=memory_mb,
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    place = tmp_path_factory.mktemp("corpus")
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = pool.map(lambda folder: (folder, made(folder)), list(folders(place)))
        return {f"{at.parent.name}-{at.name}": each for at, each in found if each}


def simulate(folder: Path) -> str:
    """What a sanitiser says, after the name of the submission it stopped at."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.whole.sanitised", str(folder)],
        cwd=Path(__file__).parents[2],
        env=sanitised_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else f"{done.stdout[-200:]}\n{done.stderr[-4000:]}"


@pytest.mark.slow
def test_the_engine(corpus: dict[str, Made], tmp_path: Path):
    engine_library(SANITISED).compiled()
    parts = [tmp_path / str(number) for number in range(PROCESSES)]
    for part in parts:
        part.mkdir()
    with ThreadPoolExecutor(PROCESSES) as pool:
        outcomes = pool.map(lambda each: recorded(each, 1, 2048), corpus.values())
        count = 0
        for at, (name, outcome) in enumerate(zip(corpus, outcomes, strict=True)):
            plans = [plan for plan in outcome if isinstance(plan, Plan)]
            count += bool(plans)
            target = parts[at % PROCESSES] / name
            target.with_suffix(".json").write_bytes(msgspec.json.encode(plans))
            target.with_suffix(".ptx").write_bytes(corpus[name][1].ptx.read_bytes())
        said = list(pool.map(simulate, parts))
    assert count > 100
    assert said == [""] * PROCESSES, "\n".join(said)


@pytest.mark.slow
def test_the_recorder(corpus: dict[str, Made], monkeypatch: pytest.MonkeyPatch):
    """It records what the plain one does: a sanitiser's report would end the process first."""
    plain = recording.recorder_program(find_toolchain())
    flags = ("-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined")
    sanitised = Native(
        name="recorder",
        sources=(*plain.sources, OPTIONS),
        shared=False,
        flags=(*plain.flags, *flags, "-fno-sanitize-recover=all"),
    ).compiled()
    names = list(corpus)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        want = list(pool.map(lambda name: recorded(corpus[name], 1, 2048), names))
        monkeypatch.setattr(recording, "prepare_recorder", lambda _: sanitised)
        got = list(pool.map(lambda name: recorded(corpus[name], RECORD_S, MEMORY_MB), names))
    differing = {
        name: (str(a), str(b))
        for name, one, other in zip(names, want, got, strict=True)
        for a, b in zip(one, other, strict=True)
        if str(a) != str(b)
    }
    assert differing == {}
