"""How many blocks of a launch the lab's GPUs hold at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from grader.backends.simulator.simulation_messages import Room
from grader.hardware import gpus
from grader.model import KernelInfo, Launch, Plan

_UNKNOWN = Room(gpu="", blocks=0)


def rooms(
    plan: Plan, kernels: Sequence[KernelInfo], architectures: Sequence[str]
) -> tuple[Room, ...]:
    """For every launch of ``plan`` the room that the lab's GPUs have for its blocks."""
    figures = {kernel.name: kernel for kernel in kernels}
    capabilities = {gpus.capability_of(each) for each in architectures}
    cards = [gpu for gpu in gpus.known() if gpu.capability in capabilities]
    launches = [each for each in (*plan.setup, *plan.operations) if isinstance(each, Launch)]
    return tuple(
        max(
            (_room(launch, figures[launch.kernel], gpu) for gpu in cards),
            key=lambda room: room.blocks,
            default=_UNKNOWN,
        )
        if launch.kernel in figures
        else _UNKNOWN
        for launch in launches
    )


def _room(launch: Launch, kernel: KernelInfo, gpu: gpus.Gpu) -> Room:
    fits = gpus.occupancy(
        gpu.multiprocessor,
        block=launch.block,
        registers=kernel.registers,
        shared_bytes=kernel.shared_bytes + launch.shared_bytes,
    )
    return Room(gpu=gpu.name, blocks=fits.blocks * gpu.multiprocessors) if fits else _UNKNOWN
