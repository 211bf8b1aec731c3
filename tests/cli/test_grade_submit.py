"""The client of ``grade submit`` by itself, beside a host that a script plays."""

import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from grader.base.errors import UsageError
from grader.cli import grade_submit as client
from grader.cli.defaults import read_defaults
from grader.labs.submission import SUFFIXES
from tests.support.commands import STARTER, Done, hand_in, script
from tests.support.places import ROOT

FILE = ROOT / "grader" / "cli" / "grade_submit.py"
TARGET = '[submit.cluster]  # the one\nhost = "login"  # of ours\n'
HELLO = '{"say":"hello","grade-submit":1}'


def host(place: Path, *says: str, status: int = 0, stderr: str = "") -> Path:
    """A stand-in for ssh that notes how it was called, and what came, and says these lines."""
    said = "".join(f"{line}\n" for line in says)
    (place / "said").write_text(said)
    program = (
        f'printf "%s\\n" "$@" >"{place}/called"\necho "{stderr}" >&2\n'
        f'cat "{place}/said"\n[ {status} != 0 ] || head -n 1 >"{place}/came"\nexit {status}'
    )
    return script(place / "bin" / "ssh", program)


def submit(place: Path, *words: str, toml: str = TARGET, **more: str) -> Done:
    (place / "grade.toml").write_text(toml)
    environment = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "LANG": "C.UTF-8", **more}
    return subprocess.run(
        [sys.executable, "-I", FILE, *words],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_names_from_windows_and_macos() -> None:
    """They are sent with "/" and with composed letters, whatever a system makes of them."""
    assert client.sent_name(PureWindowsPath(r"include\tile.cuh")) == "include/tile.cuh"
    apart = unicodedata.normalize("NFD", "é李四.cuh")
    assert client.sent_name(PurePosixPath("sub", apart)) == "sub/é李四.cuh"
    assert client.SUFFIXES == SUFFIXES


@pytest.mark.parametrize(
    "name",
    (
        *("../x.json", "/x.json", "a//b", "", ".x", "a/..", "C:\\x", "a\\b", "a:b", "CON"),
        *("nul.json", "LPT1.html", "end.", "end ", "a\nb", "a\0b", "a*", 'a"', "a|b", "<a>"),
    ),
)
def test_a_host_cannot_write_outside_of_results_or_what_windows_does_not_take(name: str) -> None:
    with pytest.raises(client.Trouble):
        client.local_parts(name)


def test_names_of_results_are_written_anywhere() -> None:
    for name in ("sgemm/alice/0123abcd4567-gpu.json", "week%20 1/李四+ada/0.ncu-rep", "console/a"):
        assert client.local_parts(name) == name.split("/")


def test_sources_are_sent_as_they_are(tmp_path: Path) -> None:
    """Line ends of Windows too; what no lab compiles stays at home."""
    work = hand_in(tmp_path / "work", STARTER.replace("\n", "\r\n"))
    for name in (".git/config", "a.out", "notes.txt", ".sgemm.cu.swp", "._sgemm.cu", "Thumbs.db"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("x")
    (work / "deep").mkdir()
    (work / "deep" / "tile.cuh").write_bytes(b"// \xef\xbb\xbf\r\n")
    found = client.sources(work)
    assert [*found] == ["deep/tile.cuh", "sgemm.cu"]
    assert found["sgemm.cu"].count(b"\r\n") == STARTER.count("\n")
    (work / "link.cuh").symlink_to("sgemm.cu")
    with pytest.raises(client.Trouble):
        client.sources(work)


def test_targets_in_a_course_file_of_any_system(tmp_path: Path) -> None:
    """The rest of the file stays, and is read by the grader; a table is replaced by its like."""
    file = tmp_path / "grade.toml"
    (tmp_path / "lab.yaml").touch()
    course = '# the course\nlab = "lab.yaml"\nlanguage = "zh"\n'
    file.write_bytes((course + TARGET).replace("\n", "\r\n").encode())
    assert client.read_targets(file) == {"cluster": client.Target(host="login")}
    target = client.Target(
        host="ada@login.edu", folder="/shared/课 程", constraint="a|b", gpu="a100"
    )
    client.write_target(file, "cluster", target)
    client.write_target(file, "other", client.Target(host="o"))
    client.write_target(file, "cluster", target)
    assert client.read_targets(file) == {"cluster": target, "other": client.Target(host="o")}
    assert file.read_text().startswith(course) and file.read_text().count("[submit.") == 2
    assert {*read_defaults({}, tmp_path)} == {"lab", "language"}
    file.write_text('[submitt]\nhost = "x"\n')
    with pytest.raises(UsageError, match="submitt"):
        read_defaults({}, tmp_path)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('[submit.a]\nhost = "-oProxyCommand=touch pwned"\n', "host"),
        ('[submit.a]\nhost = "a b"\n', "host"),
        ('[submit.a]\nhost = "a"\nport = "22"\n', "port"),
        ("[submit.a]\nhost = 3\n", "host"),
        ("", "(–); --setup HOST makes it"),
        ('[submit.a]\nhost="a"\n[submit.b]\nhost="b"\n', "(a, b); --setup HOST makes it"),
    ],
)
def test_a_wrong_target_is_one_line(toml: str, says: str, tmp_path: Path) -> None:
    """The nearest grade.toml may have come with somebody else's files."""
    host(tmp_path)
    done = submit(tmp_path, "--status", toml=toml)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "called").exists()


def test_a_conversation(tmp_path: Path) -> None:
    """A login shell may greet first; what comes back is written; nothing else is asked of ssh."""
    hand_in(tmp_path / "alice")
    log = {"say": "log", "text": "\x1b[2Jcompiling\x07\n", "offset": 9}
    page = {"say": "file", "name": "sgemm/ada/1.html", "size": 6}
    job = {"say": "job", "id": "ab12", "job": "7"}
    host(
        tmp_path, "Welcome!", HELLO, json.dumps(job), json.dumps(log),
        json.dumps(page) + "\n<html>" + '{"say":"end","status":1}',
    )  # fmt: skip
    done = submit(tmp_path, "alice", "--lab", "labs/week1.yaml", "--gone-wrong")
    assert done.returncode == 2
    done = submit(tmp_path, "alice", "--lab", "labs/week1.yaml", LANG="zh_CN.UTF-8")
    assert done.returncode == 1, done
    assert "[2Jcompiling\n" in done.stdout and "\x1b" not in done.stdout
    assert "no simulator on this machine" in done.stderr
    assert (tmp_path / "results/sgemm/ada/1.html").read_bytes() == b"<html>"
    request = json.loads((tmp_path / "came").read_text())
    assert (request["lab"], request["language"], request["do"]) == ("week1", "zh_CN", "submit")
    assert request["files"] == [["sgemm.cu", len(STARTER.encode())]]
    called = (tmp_path / "called").read_text().split("\n")
    assert "-oBatchMode=yes" in called and "StrictHostKeyChecking" not in "".join(called)
    assert called[-4:-1] == ["--", "login", "grade serve-submission"]


@pytest.mark.parametrize(
    ("says", "status", "stderr", "expected"),
    [
        ((), 255, "ada@login: Permission denied (publickey).", "set up a key"),
        ((), 255, "Host key verification failed.", "run ssh login by hand"),
        ((), 255, "ssh: Could not resolve hostname login", "cannot be reached"),
        (("Welcome",), 127, "bash: grade: command not found", "in another folder (--course)"),
        ((HELLO,), 255, "", "the same again counts once"),
        ((HELLO, '{"say":"job","id":"ab12","job":"7"}'), 255, "", "--fetch ab12"),
        (
            (HELLO, '{"say":"file","name":"a.json","size":99}', "cut"),
            0,
            "",
            "connection lost",
        ),
        ((HELLO, "Good bye"), 0, "", "connection lost"),
        ((HELLO, '{"say":"job"}'), 0, "", "connection lost"),
        ((HELLO, '{"say":"file","name":"a.json","size":-1}', "x"), 0, "", "connection lost"),
        (
            (HELLO, '{"say":"file","name":"../a.json","size":3}', "cut"),
            0,
            "",
            "is not written here",
        ),
    ],
)
def test_what_goes_wrong_is_said(
    says: tuple[str, ...], status: int, stderr: str, expected: str, tmp_path: Path
) -> None:
    hand_in(tmp_path / "alice")
    host(tmp_path, *says, status=status, stderr=stderr)
    done = submit(tmp_path, "alice")
    assert done.returncode == 3 and expected in done.stderr, done
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("a.json*")) and not list(tmp_path.rglob("*.tmp"))


def test_a_result_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    host(tmp_path, HELLO, '{"say":"file","name":"a.json","size":1}', "x")
    hand_in(tmp_path / "alice")
    done = submit(tmp_path, "alice", "--out", "grade.toml")
    assert done.returncode == 3 and "grade.toml" in done.stderr.splitlines()[-1], done
    assert "Traceback" not in done.stderr


def test_a_busy_host_is_asked_again(tmp_path: Path) -> None:
    real = host(tmp_path, HELLO, '{"say":"end","status":0}')
    busy = "kex_exchange_identification: Connection closed by remote host"
    once = (
        f'[ -e "{tmp_path}/tried" ] || {{ touch "{tmp_path}/tried"; echo "{busy}" >&2; exit 255; }}'
    )
    script(real, once + "\n" + real.read_text())
    assert submit(tmp_path, "--status").returncode == 0
    assert (tmp_path / "tried").exists()


def test_what_is_wrong_here_is_not_sent(tmp_path: Path) -> None:
    hand_in(tmp_path / "alice")
    host(tmp_path, HELLO, '{"say":"end","status":0}')
    document = '{"verdict": "WA", "lab": {"sha256": "beef"}}'
    call = f'echo "$@" >"{tmp_path}/checked"\necho \'{document}\'\nexit $(cat "{tmp_path}/status")'
    script(tmp_path / "bin" / "grade", call)
    for status, words, sent in (
        ("1", (), None),
        ("1", ("--anyway",), []),
        ("0", (), ["beef"]),
        ("3", (), ["beef"]),
    ):
        (tmp_path / "came").unlink(missing_ok=True)
        (tmp_path / "status").write_text(status)
        done = submit(tmp_path, "alice", "--lab", "week1", *words)
        assert "--lab week1 -- alice" in (tmp_path / "checked").read_text()
        if sent is None:
            assert done.returncode == 1 and "--anyway" in done.stderr
            assert not (tmp_path / "called").exists()
        else:
            assert done.returncode == 0, done
            assert json.loads((tmp_path / "came").read_text())["labs"] == sent
        assert ("could not be checked" in done.stderr) == (status == "3")


def test_the_graders_own_command_is_the_same_client(tmp_path: Path) -> None:
    host(tmp_path, HELLO, '{"say":"end","status":0}')
    (tmp_path / "grade.toml").write_text(TARGET)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    command = [sys.executable, "-m", "grader.cli", "submit", "--fetch", "ab", "--language", "zh"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    request = json.loads((tmp_path / "came").read_text())
    assert (request["do"], request["id"], request["language"]) == ("follow", "ab", "zh_CN")


@pytest.mark.slow
def test_the_client_is_a_wheel_by_itself(tmp_path: Path) -> None:
    """Without a compiler, and for any system."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path)]
    done = subprocess.run([*build, ROOT / "submit"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("grade_submit-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        code = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert code == ["grade_submit.py"] and archive.read(code[0]) == FILE.read_bytes()
