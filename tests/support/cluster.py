"""A real Slurm on this machine, thrown away after the tests: five nodes, as on a mixed cluster.

a100-01 and a100-02 pose as nodes with two A100, ti-01 and ti-02 with four 2080 Ti, cpu-01 has no
GPU. The daemons are Debian's (slurmctld, slurmd, munge); everything they own lies in one folder.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ptxsim import answer_of

NODES = {
    "a100-01": ("a100", 2),
    "a100-02": ("a100", 2),
    "ti-01": ("2080ti", 4),
    "ti-02": ("2080ti", 4),
    "cpu-01": ("", 0),
}
CONFIGURATION = Path(__file__).with_name("slurm.conf")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> list[str]:
    """Which of the programs are not installed."""
    return [program for program in PROGRAMS if shutil.which(program, path=_PATH) is None]


class Cluster:
    """``folder`` must have a short path: sockets lie below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._conf = folder / "slurm.conf"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._port = free_ports(1 + len(NODES))

    @property
    def environment(self) -> dict[str, str]:
        """What a user's shell needs to talk to this cluster."""
        return {"SLURM_CONF": str(self._conf), "PATH": f"{os.environ['PATH']}:{_PATH}"}

    def __enter__(self) -> "Cluster":
        for name in ("state", "spool", "log", "munge"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o711)
        key = self.folder / "munge" / "key"
        key.write_bytes(random.randbytes(128))
        key.chmod(0o600)
        self._write_configuration()
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in NODES:
            self.crash(node)
        for daemon in ("slurmctld", "munged"):
            if process := self._running.pop(daemon, None):
                process.kill()
                process.wait()

    def crash(self, node: str) -> None:
        """As when the power fails: the node's daemon, its steps and their jobs are gone."""
        if process := self._running.pop(node, None):
            process.kill()
            process.wait()
        while pids := list(_processes_of(node, self._conf)):  # what they started meanwhile, too
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def boot(self, node: str) -> None:
        """Start a node and wait until Slurm uses it."""
        self._start(node, "slurmd", "-D", "-N", node, "-f", str(self._conf))
        answer_of(["scontrol", "update", f"nodename={node}", "state=resume"], env=self._clean())
        _wait(lambda: self._state(node) in {"idle", "mixed", "allocated"}, f"{node} is not up")

    def say_down(self, node: str) -> None:
        """Tell Slurm at once what it would notice half a minute later."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=crash")

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def _state(self, node: str) -> str:
        return self.run("sinfo", "-h", "-N", "-n", node, "-o", "%T").split("\n")[0].rstrip("*~#")

    def _clean(self) -> dict[str, str]:
        """Daemons get nothing of ours: a job with --export=NONE would see it."""
        return {"PATH": _PATH, "LANG": "C.UTF-8", "SLURM_CONF": str(self._conf)}

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env=self._clean(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _start_all(self) -> None:
        munge = self.folder / "munge"
        self._start(
            "munged", "munged", "--foreground", "--force", f"--key-file={munge / 'key'}",
            f"--socket={munge / 'socket'}", f"--pid-file={munge / 'pid'}",
            f"--seed-file={munge / 'seed'}", f"--log-file={munge / 'log'}",
        )  # fmt: skip
        _wait((munge / "socket").exists, "munged does not start")
        self._start("slurmctld", "slurmctld", "-D", "-f", str(self._conf))
        _wait(lambda: "UP" in self._ping(), "slurmctld does not start")
        for node in NODES:
            self.boot(node)

    def _ping(self) -> str:
        return answer_of(["scontrol", "ping"], env=self._clean()).stdout

    def _write_configuration(self) -> None:
        text = CONFIGURATION.read_text().format(
            folder=self.folder,
            host=socket.gethostname().split(".")[0],
            port=self._port,
            user="root" if os.geteuid() == 0 else os.environ["USER"],
            gpu_nodes=",".join(node for node, (_, count) in NODES.items() if count),
        )
        gres = "AutoDetect=off\n"
        for port, (node, (kind, count)) in enumerate(NODES.items(), self._port + 1):
            asked = "CPUs=8 RealMemory=16384" + (f" Gres=gpu:{kind}:{count}" if count else "")
            text += f"NodeName={node} NodeAddr=127.0.0.1 Port={port} {asked}\n"
            devices = self.folder / "dev" / node
            devices.mkdir(parents=True)
            for gpu in range(count):
                (devices / f"nvidia{gpu}").symlink_to("/dev/null")
            if count:
                files = f"{devices}/nvidia[0-{count - 1}]"
                gres += f"NodeName={node} Name=gpu Type={kind} File={files}\n"
        self._conf.write_text(text)
        (self.folder / "gres.conf").write_text(gres)


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for _ in range(200):
        first = random.randrange(20000, 30000)  # below those that Linux hands out by itself
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("0.0.0.0", port))
        except OSError:
            continue
        return first
    raise RuntimeError("no free ports")


def _wait(until: Callable[[], bool], complaint: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            raise RuntimeError(complaint)
        time.sleep(0.05)


def _processes_of(node: str, conf: Path) -> Iterator[int]:
    """Jobs on the node, by their environment, and the daemons that hold them."""
    marks = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={conf}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = set((folder / "environ").read_bytes().split(b"\0"))
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if not marks <= environment:
                continue
            if b"slurmstepd" in (Path("/proc") / parent / "cmdline").read_bytes():
                yield int(parent)
            yield int(folder.name)
        except OSError:
            continue
