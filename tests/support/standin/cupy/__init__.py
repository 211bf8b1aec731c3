"""A stand-in for CuPy that measures nothing: importing it answers the GPU worker's jobs.

The GPU worker is otherwise the real process, started and asked by the real grader. For each job,
CUDA_STANDIN_LOG gets lines "begin UUID CASES" and "end UUID". The first job on each GPU ends only
when CUDA_STANDIN_TOGETHER different GPUs have begun one.
"""

import os
import sys
import time
from pathlib import Path

import msgspec

from grader.base.result import GpuInfo
from grader.run.gpu.messages import Beat, GpuJob, Measured, Prepare, Ready, Warm
from grader.run.probe import visible_gpus
from grader.run.protocol import CaseOutcome, Done, PlannedCase
from grader.run.statistics import Pair, summarise
from ptxsim.plan import Record
from tests.support.product import speed
from tests.support.results import RIGHT

_LOG = Path(os.environ["CUDA_STANDIN_LOG"])
_TOGETHER = int(os.environ.get("CUDA_STANDIN_TOGETHER", "1"))
_PATIENCE_S = 60.0


def _log(*words: str) -> None:
    with _LOG.open("a") as file:
        file.write(" ".join(words) + "\n")


def _outcome(each: PlannedCase, timed: bool) -> CaseOutcome:
    size = each.plan.size
    runs = [[Pair(bench_ms=2.0, baseline_ms=1.0)] * 6] * 3
    return msgspec.structs.replace(
        each.case,
        seconds=0.1,
        error=RIGHT.error,
        timing=summarise(runs, speed(size), "cublasSgemm") if timed else None,
    )


def _answer(*replies: Record) -> None:
    for reply in replies:
        os.write(_PIPE, msgspec.json.encode(reply) + b"\n")


def _serve() -> None:
    decoder: msgspec.json.Decoder[Prepare | Warm | GpuJob] = msgspec.json.Decoder(
        Prepare | Warm | GpuJob
    )
    (card,) = visible_gpus()
    info = GpuInfo(
        name=card.name,
        uuid=card.uuid,
        driver="1",
        sm_clock_mhz=1980,
        memory_bytes=1 << 30,
        compute_capability="9.0",
    )
    is_ready = False
    for line in sys.stdin.buffer:
        job = decoder.decode(line)
        if not isinstance(job, GpuJob):
            continue
        if not is_ready:
            _answer(Ready(gpu=info))
            is_ready = True
        _log("begin", card.uuid)
        _wait_for_others(card.uuid)
        for each in job.cases:
            outcome = _outcome(each, each.id in job.timed)
            _answer(Beat(case=each.id), Measured(outcome=outcome))
        _log("end", card.uuid)
        _answer(Done())


def _wait_for_others(uuid: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while len({line.split()[1] for line in _LOG.read_text().splitlines()}) < _TOGETHER:
        if time.monotonic() > deadline:
            _log("alone", uuid)
            break
        time.sleep(0.02)


if Path(sys.argv[0]).name == "gpu_worker.py":  # others only ask whether CuPy is installed
    _PIPE = os.dup(1)
    _serve()
    os._exit(0)
