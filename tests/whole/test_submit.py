"""``grade submit`` through a real sshd to a real Slurm of five nodes; the simulator grades."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.labs.lab import load_lab
from grader.results import store
from grader.results.result import Result
from tests.support.cluster import Cluster, missing
from tests.support.commands import QUICK, STARTER, script, until
from tests.support.login import SSHD, Laptop, LoginNode
from tests.support.places import ROOT

absent = [*missing(), *([] if SSHD else ["sshd"])]
pytestmark = pytest.mark.skipif(
    bool(absent) and not os.environ.get("CI"),
    reason="nothing is handed in by ssh: not installed: " + ", ".join(absent),
)
BIG = STARTER + "//" + "x" * 1_000_000 + "\n"


SLOW = """\
import sys, time
while piece := sys.stdin.buffer.read1(4096):
    open("started", "w")
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    time.sleep(0.1)
"""
AHEAD = """\
import datetime, sys
class Ahead(real := datetime.datetime):
    @classmethod
    def now(cls, zone=None):
        return real.now(zone) + datetime.timedelta(days=400)
datetime.datetime = Ahead
from grader.cli import entry
sys.exit(entry.main())
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")
    with folder as path, Cluster(Path(path) / "c") as running:
        yield running


@pytest.fixture
def node(cluster: Cluster) -> Iterator[LoginNode]:
    with tempfile.TemporaryDirectory(prefix="login-", dir="/tmp") as path:
        login = LoginNode(Path(path), cluster)
        login.start()
        yield login
        login.kill()
        cluster.run("scancel", "--user", str(os.getuid()))
        until(lambda: not cluster.run("squeue", "-h"), 60)


def stored(node: LoginNode) -> list[Result]:
    return [store.load(path) for path in store.stored(node.out)]


def jobs(node: LoginNode) -> int:
    """How many jobs this login node has submitted."""
    return len(list(node.out.glob(".submit/*/*/job")))


def quick(node: LoginNode, before: str = "") -> None:
    """Let the nodes grade nothing."""
    call = f'[ -z "$SLURM_JOB_ID" ] || {{ {before} echo "done $1"; exit 0; }}'
    real = node.grade.read_text().partition("\n")[2]
    node.configure(GRADE_BIN=script(node.folder / "quick", f"{call}\n{real}"))


def through(ssh: Path, command: str) -> None:
    """Let all that a laptop sends run through a command first."""
    call = ssh.read_text().partition("exec ")[2]
    ssh.write_text(f"#!/bin/bash\nexec 3<&0\nexec {call.rstrip()} < <({command} <&3)\n")


@pytest.mark.sampled
def test_three_lines_from_nothing_to_a_score(node: LoginNode) -> None:
    ada = node.laptop("ada")
    (ada.place / "grade.toml").unlink()
    ada.write(STARTER)
    done = ada.run("--setup", "login", "--course", node.course)
    assert done.returncode == 0 and "slurm-wlm" in done.stdout and "lab quick" in done.stdout
    toml = (ada.place / "grade.toml").read_text()
    assert '[submit.default]\nhost = "login"' in toml and "lab_sha256" in toml
    done = ada.run("work")
    assert done.returncode == 0, done.stderr
    assert "compiling" in done.stdout and "AC accepted" in done.stdout
    assert re.search(r"handed in as \w{16}, job \d+", done.stderr)
    (result,) = stored(node)
    came = re.search(r"handed in at (\S+)", done.stdout)
    assert came and result.submission.submitted == (came[1],)
    files = ada.files()
    assert {Path(name).suffix for name in files} == {".json", ".html"}
    document = next(content for name, content in files.items() if name.endswith(".json"))
    assert document == store.encode(result) or json.loads(document)["verdict"] == "AC"
    again = ada.run("--fetch")
    assert again.returncode == 0 and ada.files() == files
    replay = ada.run("work")
    assert replay.returncode == 0 and "--again hands it in anew" in replay.stdout
    assert jobs(node) == 1
    assert "quick: AC, 100 points" in ada.run("--status").stdout
    lab = node.course / "labs" / "quick.yaml"
    lab.write_text(QUICK.replace("33", "34"))
    done = ada.run("work")
    assert done.returncode == 2 and "--setup again" in done.stderr + done.stdout


@pytest.mark.sampled
def test_a_shared_account_knows_students_by_their_keys(node: LoginNode) -> None:
    """Whatever a client says or asks ssh for; and a host that is not known is not spoken to."""
    quick(node)
    ada, ben = node.laptop("ada", "ada"), node.laptop("ben", "ben")
    ada.write(STARTER)
    done = ada.run("work", "--profile")
    assert re.findall("^done (.*)", done.stdout, re.M) == ["--device", "profile", "report"]
    (folder,) = node.out.glob(".submit/*/*/hand-in.json")
    assert done.returncode == 0 and json.loads(folder.read_text())["student"] == "ada", done
    command = "cat /etc/passwd; grade serve-submission --student ben"
    call = subprocess.run(
        [ada.place / "bin" / "ssh", "login", command],
        input=b'{"do": "status", "version": 1}\n',
        env=ada.environment,
        capture_output=True,
        check=False,
    )
    assert b"root:" not in call.stdout and folder.parent.name.encode() in call.stdout
    assert folder.parent.name not in ben.run("--status").stdout
    refused = ben.run("--fetch", folder.parent.name)
    assert refused.returncode == 2 and "no such hand-in" in refused.stderr
    (ben.place / "known_hosts").unlink()
    done = ben.run("--status")
    assert done.returncode == 3 and "run ssh login by hand" in done.stderr


@pytest.mark.sampled
def test_ctrl_c_detaches_and_a_lost_connection_loses_nothing(node: LoginNode) -> None:
    quick(node, f'until [ -e "{node.folder}/go" ]; do sleep 0.2; done;')
    ada = node.laptop("ada")
    ada.write(STARTER)
    with ada.start("work") as client:
        assert client.stderr
        while "handed in as" not in client.stderr.readline():
            pass
        client.send_signal(signal.SIGINT)
        said = client.stderr.read()
    assert client.returncode == 130 and "the job goes on: --fetch" in said
    with ada.start("--fetch", "--wait") as client:
        assert client.stderr
        while "RUNNING" not in client.stderr.readline():
            pass
        node.kill()
        node.start()
        while "trying again" not in client.stderr.readline():
            pass
        (node.folder / "go").touch()
        out, err = client.communicate(timeout=60)
    assert client.returncode == 0 and out.count("done --device") == 1, err
    assert jobs(node) == 1


@pytest.mark.nightly
def test_sshd_that_is_killed_in_transfer(node: LoginNode) -> None:
    """While the files come nothing is kept of them; the same command again counts once."""
    quick(node)
    ada = node.laptop("ada")
    ada.write(BIG)
    ssh = ada.place / "bin" / "ssh"
    whole = ssh.read_text()
    through(ssh, "head -c 300000")  # it ends amid the files
    done = ada.run("work")
    assert done.returncode == 3 and "came cut short" in done.stdout + done.stderr, done
    ssh.write_text(whole)
    (ada.place / "slow.py").write_text(SLOW)
    through(ssh, f"python3 {ada.place}/slow.py")
    with ada.start("work") as client:
        until((ada.place / "started").exists, 60)
        time.sleep(1)
        node.kill()
        node.start()
        _, err = client.communicate(timeout=60)
    assert client.returncode == 3 and "counts once" in err, err
    assert not list(node.out.glob(".submit/*/*/hand-in.json"))
    ssh.write_text(whole)
    assert ada.run("work").returncode == 0
    assert jobs(node) == 1


@pytest.mark.nightly
def test_hidden_sizes_stay_hidden(node: LoginNode) -> None:
    """In what is streamed and in what comes back."""
    lab = node.course / "labs" / "quick.yaml"
    lab.write_text((ROOT / "tests/judge/data/hidden.yaml").read_text())
    (node.course / "labs" / "hidden.seed").write_text("a secret of thirty-two characters")
    hidden = load_lab(lab).hidden
    assert hidden and hidden.known
    ada = node.laptop("ada", "ada")
    ada.write(STARTER.replace("C[", "if (m < 100 || threadIdx.x) C[", 1))
    done = ada.run("work", "--lab", "quick")
    assert done.returncode in (0, 1), done
    seen = done.stdout + done.stderr + "".join(map(bytes.decode, ada.files().values()))
    assert "hidden" in seen
    for case in (*hidden.cpu, *hidden.performance):
        extents = [str(extent) for extent in case.size.dims.values()]
        assert str(case.size) not in seen
        assert not re.search(r"\D{1,9}".join(extents), seen), case


@pytest.mark.nightly
def test_clocks_that_differ(node: LoginNode) -> None:
    """The login node's stamps; the laptop's and the compute nodes' are asked by nobody."""
    (node.folder / "ahead.py").write_text(AHEAD)
    call = node.grade.read_text().replace("-m grader.cli", f'"{node.folder}/ahead.py"')
    server = script(node.folder / "ahead", call.partition("\n")[2])
    behind = node.grade.rename(node.folder / "behind")
    node.configure(GRADE_BIN=behind)
    script(node.grade, f'exec "{server}" "$@"')
    ada = node.laptop("ada")
    ada.write(STARTER)
    done = ada.run("work")
    assert done.returncode == 0, done
    (result,) = stored(node)
    assert result.submission.submitted[0][:4] == str(time.localtime(time.time() + 400 * 86400)[0])
    assert result.created[:4] == str(time.gmtime()[0])


@pytest.mark.nightly
def test_forty_students_at_once(node: LoginNode, cluster: Cluster) -> None:
    """On five nodes, of which one dies. Nothing is lost, nothing twice; Slurm is asked seldom."""
    node.configure(GRADE_POLL="15", SBATCH_PARTITION="gpu,cpu")
    laptops = [node.laptop(f"s{i:02}", f"s{i:02}") for i in range(40)]
    cluster.run("sdiag", "--reset")
    started = time.monotonic()
    clients: list[tuple[Laptop, subprocess.Popen[str]]] = []
    for i, laptop in enumerate(laptops):
        laptop.write(STARTER + f"// {i}\n")
        clients.append((laptop, laptop.start("work", "--wait")))
    queue = node.out / ".submit" / ".queue"
    until(lambda: queue.exists() and "RUNNING" in queue.read_text(), 120)
    victim = cluster.run("squeue", "-h", "-t", "R", "-o", "%N").split()[0]
    cluster.crash(victim)
    cluster.say_down(victim)
    cluster.boot(victim)
    for laptop, client in clients:
        out, err = client.communicate(timeout=1200)
        assert client.returncode == 0, (laptop.student, out, err)
        assert len(laptop.files()) == 2
    seconds = time.monotonic() - started
    found = stored(node)
    assert sorted(r.submission.student for r in found) == [f"s{i:02}" for i in range(40)]
    assert jobs(node) == 40 and all(len(r.submission.submitted) == 1 for r in found)
    counts = re.findall(r"(REQUEST_\w+) .* count:(\d+)", cluster.run("sdiag"))
    print(f"{seconds:.0f} s", counts)
    assert int(dict(counts)["REQUEST_JOB_INFO"]) <= 4 * (seconds / 60 + 1) + 1, counts
