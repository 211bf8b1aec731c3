"""The device of one program: its modules, its memory, and what it finds."""

from __future__ import annotations

import socket
import sys
from collections import Counter
from collections.abc import Callable

import msgspec

from ptxsim.engine import Engine
from ptxsim.execution import blas, messages
from ptxsim.execution.found import Found
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.memory import DeviceMemory
from ptxsim.execution.modules import Modules
from ptxsim.execution.progress import Progress
from ptxsim.execution.refusals import error_of, sentence_of
from ptxsim.execution.write_log import WriteLog
from ptxsim.findings.finding import Severity
from ptxsim.findings.names import plain_name
from ptxsim.findings.sentences import sentence
from ptxsim.findings.writes import WatchedElement
from ptxsim.kernels import trapped
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.plan.records import Copy, Free, Launch, Memset, Operation, Synchronise
from ptxsim.record import Record
from ptxsim.streams import LiveWatch, Uses
from ptxsim.text import Message, phrase

# An A100, but for its name: the figures that sm_80 promises. runtime.hpp's Target has the units.
_DEVICE = "ptxsim\n8 0 108 2048 32 65536 41943040 1410000 1215000 5120 167936 166912 1024 {memory}"
_MEMORY = 40 << 30
_MOST_USED = 64  # launches of which it is kept what memory they use
_LAUNCH_TIMEOUT, _ASSERT, _LAUNCH_FAILURE = 702, 710, 719  # of cudaError_t
_STRUCTURE = 64  # bytes, at most
_READ_UNWRITTEN = phrase("copies bytes {first} and on of {name} to the host; nobody wrote them")
_STOPPED = phrase("{kernel} did not end within {seconds:g} s of CPU time: --seconds allows more")
_TIMES = phrase("times between events are the simulator's own: they mean nothing for a GPU")
_HOST_TOUCHES = phrase("host code reads or writes {name}, device memory: copy it first")


class Settings(Record):
    """How a program is carried out."""

    seconds: float = 600.0  # of CPU time for one launch
    watch: tuple[WatchedElement, ...] = ()  # every write to them is listed
    skips: bool = True  # launches that would change nothing any more, where nothing is watched
    stops: bool = False  # at the first error
    jobs: int = 1  # blocks of a launch at the same time
    most: int = sys.maxsize  # launches that are carried out; further ones do nothing


class Device:
    """``serve`` does what the messages of a program ask for. file: device memory."""

    def __init__(self, engine: Engine, file: int, host: HostCode, settings: Settings) -> None:
        engine.library.sim_jobs(settings.jobs)
        self._settings = settings
        self.progress = Progress()
        self.log = WriteLog(settings.watch)
        self._modules = Modules(engine, file, self.log)
        self._host = host
        self._limits = SimLimits(seconds=settings.seconds, steps=1 << 60, bytes=1 << 60)
        self._live: dict[int, tuple[Callable[[], str], int]] = {}  # allocations, with their bytes
        self._broken = False  # by a launch: no call does anything
        self._issued: messages.IssueOperation | None = None  # a launch that comes next
        self._watch: LiveWatch | None = None
        self._used: dict[tuple[int, Launch], Uses] = {}  # by modules and launches that may repeat
        self.found = Found(host)
        self.launches: Counter[str] = Counter()
        self.skipped = 0  # of these
        self.notes: list[Message] = []

    @property
    def left(self) -> list[tuple[Callable[[], str], int]]:
        """Allocations that nobody has freed, though it was possible: their names, and bytes."""
        return [] if self._broken else list(self._live.values())

    def close(self) -> None:
        """Free the memory; what was found stays."""
        self._modules.close()

    def serve(self, channel: socket.socket) -> bool:
        """Answer the program; return whether it has to be ended, at its first error. Raises what
        ``answer`` raises, and ConnectionError."""
        for request, more in messages.requests(channel):
            with self.progress.during(request):
                answer = self.answer(request, more)
            if self._settings.stops and self.found.errors:
                return True
            if answer is not None:
                messages.reply(channel, answer)
        return False

    def answer(self, request: messages.Request, more: bytes) -> bytes | None:
        """Do what one message asks for. Raises RefusedProgram for what cannot be simulated, and
        BrokenChannel."""
        match request:
            case messages.AskDevice():
                return f"{_DEVICE.format(memory=_MEMORY)} {len(self.log.elements)}".encode()
            case messages.NewModule():
                self._modules.add(more)
            case messages.NewVariable():
                self._modules.add_variable(request)
            case messages.NewAllocation():
                self._allocate(request)
            case messages.FreeAllocation(address=address, frames=frames):
                memory = self._modules.memory
                memory.free(address, self._host.freed(memory.naming_at(address), frames))
                self._live.pop(address, None)
                self._broken = False
            case messages.ShareMemory():
                self._modules.memory.define(request)
                self.found.shared = True
            case messages.ReadBytes(frames=frames):
                if (unwritten := self._unwritten(request)) is not None:
                    name, first = unwritten
                    words = _READ_UNWRITTEN.given(name=name, first=first)
                    partly = self._modules.memory.partly_written(request)
                    severity = Severity.WARNING if partly else Severity.ERROR
                    self.found.in_call("uninitialized-read", frames, words, severity)
            case messages.DefineBytes():
                return self._write(request)
            case messages.HostFault(address=address, frames=frames):
                words = _HOST_TOUCHES.given(name=self._modules.memory.name_at(address))
                self.found.in_call("host-access", frames, words)
            case messages.FailedCall():
                self._failed(request)
            case messages.AskForError():
                self.found.asked()
            case messages.IssueOperation():
                self._issue(request)
            case messages.AskElapsed():
                self.notes = [_TIMES]
            case messages.LoadModules():
                return b"" if self._modules.memory else None
            case messages.MeasureKernel(name=name, module=module):
                return self._modules.measure(name, module).encode()
            case messages.FindKernel(name=name, module=module):
                return self._modules.figures(name, module).encode()
            case messages.ListVariables(module=module):
                return self._modules.variables(module).encode()
            case messages.LaunchKernel():
                return self._launch(request, more)
            case messages.CallLibrary(frames=frames):

                def write(rows: messages.DefineBytes) -> None:
                    watched = bool(self._modules.memory.watched)
                    self._write(msgspec.structs.replace(rows, frames=frames, waits=watched))

                status, result, wrong = blas.call(self._modules.memory, request, more, write)
                for kind, words in wrong:
                    self.found.in_call(kind, frames, words)
                return status.to_bytes(4, "little") + result
        return None

    def _unwritten(self, read: messages.ReadBytes) -> tuple[str, int] | None:
        """The allocation and its first byte that nobody wrote. Thrust copies its results as
        structures, whose padding nobody writes."""
        memory = self._modules.memory
        found = memory.undefined(read)
        if found and read.rows == 1 and 8 <= read.size <= _STRUCTURE:
            head = messages.DefineBytes(address=read.address, size=4, rows=1, pitch=0)
            if not memory.undefined(head) and self._host.is_library(read.frames):
                return None
        return found

    def _write(self, request: messages.DefineBytes) -> bytes | None:
        memory = self._modules.memory
        if request.waits:
            place = self._host.place(request.frames)
            self.log.host_wrote(request, self._host.call(place), place, memory.unwritten)
        if isinstance(request, messages.CopyBytes):
            memory.copy(request)
        else:
            memory.define(request)
        return b"" if request.waits else None

    def _allocate(self, request: messages.NewAllocation) -> None:
        name = self._host.namer(request.frames)
        self._modules.memory.add(request.address, request.size, name, None)
        self._live[request.address] = name, request.size

    def _failed(self, call: messages.FailedCall) -> None:
        at = call.address
        about = self._modules.memory.described(at) if at else ("memory of the host",) * 2
        words = sentence_of(call.refused, *about)
        if call.told:
            self.found.in_call("failed-call", call.frames, words)
        else:
            self.found.failed_launch(call.frames, words, error_of(call.refused))

    def _issue(self, asked: messages.IssueOperation) -> None:
        if asked.what == "launch":
            self._issued = asked
            return
        size = asked.parts[0].size if asked.parts else 0
        known: dict[str, Operation] = {
            "copy": Copy(source=0, source_delta=0, target=0, target_delta=0, size=size),
            "memset": Memset(allocation=0, delta=0, value=0, size=size),
            "free": Free(allocation=0),
        }
        operation = known.get(asked.what, Synchronise())
        used = map(self._modules.memory.part_use, asked.parts)
        self._compare(operation, asked, [each for each in used if each])

    def _compare(self, operation: Operation, asked: messages.IssueOperation, uses: Uses) -> None:
        """Find the races with operations on other streams."""
        memory = self._modules.memory
        operation = msgspec.structs.replace(operation, after=asked.after, frames=asked.frames)
        for earlier, region in self._watched(memory).issue(operation, asked.waits, uses):
            self.found.in_race(earlier, operation, memory.name_at(region))

    def _watched(self, memory: DeviceMemory) -> LiveWatch:
        """The operations that were issued since the memory has had its cells."""
        if self._watch is None or self._watch.cell != memory.cell:
            self._watch = LiveWatch(memory.cell)
            self._used.clear()
        return self._watch

    def _launch(self, asked: messages.LaunchKernel, params: bytes) -> bytes:
        """The error that it ends with, in a line of its own, and what the kernel printed."""
        memory, loaded = self._modules.memory, self._modules.of_kernel(asked.kernel, asked.module)
        if loaded is None:
            raise messages.BrokenChannel
        memory.launched = self.launches.total()
        self.launches[asked.kernel] += 1
        if self.launches.total() > self._settings.most:
            return b"0\n"
        memory.addresses = loaded.addresses
        launch = Launch(
            kernel=asked.kernel,
            grid=asked.grid,
            block=asked.block,
            shared_bytes=asked.shared_bytes,
            params=params,
            pointers=(),
            stack_bytes=asked.stack_bytes,
            cooperative=asked.cooperative,
            cluster=asked.cluster,
        )
        self.log.look()
        issued, self._issued = self._issued, None
        if issued:
            self._watched(memory)
        again = asked.module, launch
        skips = self._settings.skips and not self.log.elements
        # A launch whose use of memory nobody has seen may race with others.
        known = issued is None or again in self._used
        if skips and known and loaded.kernels.recall(memory, launch):
            self.skipped += 1
            if issued:
                self._compare(launch, issued, self._used[again])
            return b"0\n"
        memory.trace(issued is not None)
        outcome = loaded.kernels.carry_out(memory, launch, self._limits)
        self.log.launched(outcome)
        if outcome.findings:
            self.found.in_launch(outcome.findings)
        if issued:
            if len(self._used) == _MOST_USED:
                self._used.clear()
            self._used[again] = memory.launch_uses()
            self._compare(launch, issued, self._used[again])
        if outcome.stopped and not outcome.findings:
            words = _STOPPED.given(kernel=plain_name(asked.kernel), seconds=self._limits.seconds)
            self.found.in_call("stopped", asked.frames, words)
        error = _error(outcome)
        self._broken |= bool(error)
        return f"{error}\n{outcome.printed}".encode()


def _error(outcome: SimOutcome) -> int:
    """The number of CUDA's error, 0 for none."""
    if outcome.stopped:
        return _LAUNCH_TIMEOUT
    if not trapped(outcome.findings):
        return 0
    asserted = any("assert" in str(sentence(each, "")) for each in outcome.findings)
    return _ASSERT if asserted else _LAUNCH_FAILURE
