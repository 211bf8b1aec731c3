"""A login node of the test cluster: a real sshd on the loopback interface; students' laptops."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from grader.base.native import cache_folder
from ptxsim import answer_of
from tests.support.cluster import Cluster, free_ports
from tests.support.commands import QUICK, Done, hand_in, script, statuses
from tests.support.places import ROOT

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin:/bin")
_SSH = shutil.which("ssh") or "/usr/bin/ssh"
_USER = "root" if os.geteuid() == 0 else os.environ["USER"]
CLIENT = ROOT / "grader" / "cli" / "grade_submit.py"


def _keygen(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path.with_suffix(".pub").read_text().strip()


class LoginNode:
    """``folder`` must be short. Students have accounts of their own, unless a laptop is made with a
    name: then its key is that student's in an account that all share."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.course = folder / "the course"
        self.out = folder / "out"
        for part in ("slurm", "grader/base/catalogues"):
            shutil.copytree(ROOT / part, self.course / part)
        call = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m grader.cli "$@"'
        self.grade = script(self.course / ".venv" / "bin" / "grade", call)
        (self.course / "labs").mkdir()
        (self.course / "labs" / "quick.yaml").write_text(QUICK)
        self.settings: dict[str, str | Path] = {
            "GRADE_OUT": self.out,
            "GRADE_LAB": self.course / "labs" / "quick.yaml",
            "GRADE_DEVICE": "cpu",
            "GRADE_POLL": "1",
            "GRADE_GRES": "none",
            "SGEMM_GRADER_CACHE": cache_folder(),
            "COLUMNS": "120",
            "SBATCH_CPUS_PER_TASK": "1",
        }
        self.configure()
        self._keys = folder / "authorized_keys"
        self._keys.touch(mode=0o600)
        self._port = free_ports(1)
        self._host_key = _keygen(folder / "host")
        self._server: subprocess.Popen[bytes] | None = None
        environment = {**cluster.environment, "PYTHONDONTWRITEBYTECODE": "1"}
        given = " ".join(f'"{name}={value}"' for name, value in environment.items())
        (folder / "sshd_config").write_text(
            f"Port {self._port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
            f"AuthorizedKeysFile {self._keys}\nStrictModes no\nUsePAM no\nPidFile none\n"
            f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv {given}\n"
        )

    def configure(self, **changes: str | Path) -> None:
        """Write the course's settings of the site."""
        self.settings |= changes
        lines = (f"{name}='{value}'\n" for name, value in self.settings.items())
        (self.course / "slurm" / "site.env").write_text("".join(lines))

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        command = [SSHD or "sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")]
        with (self.folder / "sshd.log").open("ab") as log:
            self._server = subprocess.Popen(command, stderr=log, start_new_session=True)
        self._wait_for_port()

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + 20
        ask = ["ssh-keyscan", "-t", "ed25519", "-p", str(self._port), "127.0.0.1"]
        while not answer_of(ask).stdout.strip():
            assert time.monotonic() < deadline, (self.folder / "sshd.log").read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        """As when the machine is switched off: the server, and every session of it."""
        if self._server is None:
            return
        for pid in (self._server.pid, *self.sessions()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait()
        self._server = None

    def sessions(self) -> set[int]:
        """Return the processes below the server."""
        assert self._server
        parents = {pid: int(words[1]) for pid, words in statuses().items()}
        found, new = set[int](), {self._server.pid}
        while new:
            new = {pid for pid, parent in parents.items() if parent in new} - found
            found |= new
        return found

    def laptop(self, name: str, student: str | None = None) -> "Laptop":
        """Return a machine whose key the login node knows."""
        place = self.folder / "laptops" / name
        key = _keygen(place / "key")
        if student:
            asked = f"'{self.grade}' serve-submission --home '{self.course}' --student {student}"
            key = f'restrict,command="{asked}" {key}'
        with self._keys.open("a") as keys:
            keys.write(f"{key}\n")
        (place / "known_hosts").write_text(f"[127.0.0.1]:{self._port} {self._host_key}\n")
        (place / "config").write_text(
            f"Host login\nHostName 127.0.0.1\nPort {self._port}\nUser {_USER}\n"
            f"IdentityFile {place / 'key'}\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {place / 'known_hosts'}\nStrictHostKeyChecking yes\n"
        )
        script(place / "bin" / "ssh", f'exec {_SSH} -F "{place / "config"}" "$@"')
        return Laptop(self, place, student)


class Laptop:
    """A folder with a submission, without the grader: only this client and ssh."""

    def __init__(self, node: LoginNode, place: Path, student: str | None) -> None:
        self.node, self.place, self.student = node, place, student
        folder = "" if student else f'folder = "{node.course}"\n'
        (place / "grade.toml").write_text(f'[submit.cluster]\nhost = "login"\n{folder}')
        self.out = place / "results"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.place / 'bin'}:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.place), "LANG": "C.UTF-8"}

    def write(self, text: str, name: str = "work") -> Path:
        return hand_in(self.place / name, text)

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", CLIENT, *words],
            cwd=self.place,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str | Path, timeout: float = 120) -> Done:
        started = self.start(*words)
        out, err = started.communicate(timeout=timeout)
        return Done(words, started.returncode, out, err)

    def files(self) -> dict[str, bytes]:
        """Return what came back, by name."""
        found: Sequence[Path] = sorted(self.out.rglob("*"))
        return {p.relative_to(self.out).as_posix(): p.read_bytes() for p in found if p.is_file()}
