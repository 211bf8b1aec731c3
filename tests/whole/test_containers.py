"""The images of containers/, built without network and run as courses run them.

They run under the runtime's own profile, which refuses to mount a /proc, and under one that also
refuses namespaces, as Docker's does. Both leave Landlock.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from grader.results.result import Result
from tests.support.container import PYTHON, Container, base, built
from tests.support.corpus import Fixture, cheats, filled, fixtures
from tests.support.files import beside, tracked
from tests.support.places import ALICE, ROOT

pytestmark = pytest.mark.slow
LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[1, 1, 1], [9, 17, 33], [64, 64, 32]]
limits: {compile_s: 30}
"""
SECRET = "SECRET-5b20aa"
BROKEN = "missing_second_sync"
CHEATS = ("includes_a_secret", "writes_into_the_results", "signals_every_way", "zeros", "exits")
PROFILE = Path("/usr/share/containers/seccomp.json")
NAMESPACES = ("unshare", "setns", "clone3", "mount", "umount2", "pivot_root")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that pip needs to install the grader from its sources."""
    base()
    wheels = tmp_path_factory.mktemp("wheels")
    pip(
        ["wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, ROOT / "ptxsim", ROOT]
    )
    ours = list(wheels.iterdir())
    theirs = ["--only-binary", ":all:", "--python-version", PYTHON]
    pip(["download", *theirs, "--dest", wheels, *ours, "scikit-build-core>=0.11"])
    for wheel in ours:
        wheel.unlink()  # the image makes its own
    return wheels


@pytest.fixture(scope="module")
def image(wheels: Path) -> Iterator[Container]:
    """containers/Dockerfile on the base, with the wheels that pip finds for it."""
    image = built(
        ROOT,
        ROOT / "containers" / "Dockerfile",
        # Another worker may run some of these tests, with an image of its own.
        f"localhost/sgemm-grader-test-{os.getpid()}",
        *("--target", "cpu"),
        *("--build-arg", f"CPU_BASE={base().image}"),
        *("--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels"),
        *("--volume", f"{wheels}:/wheels:ro"),
    )
    yield image
    image.remove()


def pip(arguments: Sequence[str | Path]) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, arguments)]
    without_engine = {**os.environ, "SKBUILD_WHEEL_CMAKE": "0"}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=without_engine)


@pytest.fixture(scope="module")
def course(image: Container, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """The image with a course's folder at /work: alice, a broken kernel, cheats, notes."""
    place = tmp_path_factory.mktemp("course")
    place.chmod(0o755)
    (place / "lab.yaml").write_text(LAB)
    (place / "notes.txt").write_text(f'#error "{SECRET}"\n')
    shutil.copytree(ALICE, place / "submissions" / "alice")
    shutil.copytree(broken().folder, place / "submissions" / BROKEN)
    for cheat in hostile():
        filled(cheat, place / "submissions" / cheat.folder.name, "/work")
    return msgspec.structs.replace(image, mounts=((place, "/work:ro"),))


def hostile() -> list[Fixture]:
    return [cheat for cheat in cheats() if cheat.folder.name in CHEATS]


def broken() -> Fixture:
    return next(each for each in fixtures("broken") if each.folder.name == BROKEN)


@pytest.fixture(scope="module")
def like_dockers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An option: podman's profile without what Docker's lacks, namespaces and mounts."""
    profile = json.loads(PROFILE.read_text())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in (*NAMESPACES, "clone")]
    allowed = {"names": ["clone"], "action": "SCMP_ACT_ALLOW"}
    no_namespace = {"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    profile["syscalls"].append({**allowed, "args": [no_namespace]})
    # As Docker's: the C library then takes clone(), whose flags can be seen.
    refused = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
    profile["syscalls"].append(refused)
    file = tmp_path_factory.mktemp("profile") / "seccomp.json"
    file.write_text(json.dumps(profile))
    return f"seccomp={file}"


def graded(course: Container, *names: str, options: tuple[str, ...] = ()) -> dict[str, Result]:
    """What ``grade --sandbox require`` says of these submissions, in one container."""
    done = course.run(
        *(f"submissions/{name}" for name in names),
        *("--lab", "lab.yaml", "--device", "cpu", "--sandbox", "require"),
        *("--out", "/tmp/results", "--no-report", "--json"),
        options=options,
    )
    assert done.returncode in (0, 1), done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "root:" not in done.stdout
    results = [msgspec.json.decode(line, type=Result) for line in done.stdout.splitlines()]
    assert {result.environment.sandbox for result in results} == {"landlock"}
    return {result.submission.student: result for result in results}


def test_right_broken_and_hostile_work_under_the_default_profile(course: Container) -> None:
    results = graded(course, "alice", BROKEN, *CHEATS)
    assert results["alice"].verdict.value == "AC"
    lines = (broken().folder / "sgemm.cu").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if re.search(r"// BUG\d*$", line)}
    assert {finding.line for finding in results[BROKEN].findings} & marked
    for each in (broken(), *hostile()):
        result = results[each.folder.name]
        assert each.cpu.met_by(result), (result.verdict, result.error, result.findings)


def test_without_namespaces_for_any_user_on_a_read_only_disk(
    course: Container, like_dockers: str
) -> None:
    options = ("--security-opt", like_dockers, "--user", "12345:12345", "--read-only")
    options += ("--tmpfs", "/tmp:exec", "--cap-drop", "all")
    results = graded(course, "alice", "includes_a_secret", options=options)
    assert results["alice"].verdict.value == "AC"
    assert results["includes_a_secret"].verdict.value == "CE"


def test_doctor_names_what_keeps_bubblewrap_from_working(
    course: Container, like_dockers: str
) -> None:
    wide = ("--env", "COLUMNS=200")
    done = course.run("doctor", options=wide)
    assert done.returncode == 0
    assert re.search(r"^sandbox +ok +Landlock", done.stdout, re.MULTILINE)
    assert "the container's /proc is masked" in done.stdout
    assert "--security-opt unmask=ALL" in done.stdout
    done = course.run("doctor", options=(*wide, "--security-opt", like_dockers))
    assert "seccomp profile refuses namespaces" in done.stdout


def test_the_graders_memory_is_its_own(course: Container) -> None:
    """An ordinary user's process can read another's unless that one forbids it."""
    program = beside(__file__, "environment.py.in")
    python = ("--entrypoint", "/opt/grader/bin/python", "--env", "A_TOKEN=x")
    done = course.run("-c", program, options=(*python, "--env", "SGEMM_GRADER_CACHE=/tmp/c"))
    assert done.stdout.splitlines() == [
        "off 1 '' Permission denied",
        "landlock 1 '' Permission denied",
    ], done.stderr


def test_apptainers_definition_installs_the_same(image: Container) -> None:
    """Apptainer cannot run here: its commands are followed by hand, on the base."""
    sections = dict(
        re.findall(
            r"^%(\w+)\n((?:    .*\n|\n)*)",
            (ROOT / "containers" / "grade.def").read_text(),
            re.MULTILINE,
        )
    )
    copied = [line.split() for line in sections["files"].splitlines() if line]
    dockerfile = (ROOT / "containers" / "Dockerfile").read_text()
    assert copied
    for source, target in copied:
        assert (ROOT / source).exists()
        assert f"{source} " in dockerfile or f"{source}\n" in dockerfile, source
        assert target.startswith("/tmp/")
    assert "/tmp/containers/install.sh /tmp/sources {{ extra }}" in sections["post"]
    assert "RUN /tmp/containers/install.sh /tmp/sources" in dockerfile
    script = sections["runscript"].strip().replace('"$@"', "doctor")
    done = image.run("-c", script, options=("--entrypoint", "/bin/sh"))
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_the_devcontainer_has_grade_after_its_command(wheels: Path, tmp_path: Path) -> None:
    """Its base, from Microsoft's registry, is left out; the tools are those of containers/."""
    given = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    checkout = tmp_path / "checkout"
    for path in tracked("*"):
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    target = ("--target", given["build"]["target"], "--build-arg", f"CPU_BASE={base().image}")
    name = f"localhost/sgemm-grader-dev-{os.getpid()}"
    made = built(ROOT, ROOT / "containers" / "Dockerfile", name, *target)
    mounts = ((checkout, "/workspaces/grade"), (wheels, "/wheels:ro"))
    offline = ("--env", "PIP_NO_INDEX=1", "--env", "PIP_FIND_LINKS=/wheels")
    try:
        container = msgspec.structs.replace(made, mounts=mounts)
        command = ("sh", "-c", given["postCreateCommand"])
        done = container.run(*command, options=offline, cwd="/workspaces/grade", timeout=900)
    finally:
        made.remove()
    assert done.returncode == 0, done.stderr
    assert "alice: AC" in done.stdout
    assert (checkout / ".venv" / "bin" / "grade").exists()
