"""nvcc's steps as a shell script, and beside the last of them a second build of the device code.

nvcc runs several programs, one after the other, and prints them with --dryrun:

    g++ -E, cudafe++           for the host
    g++ -E, cicc, fatbinary    for the device; for sm_90 ptxas checks what cicc made
    g++ -c                     the object, of both

cudafe++ would make up the module's id, which is in names: with ours, equal sources make equal PTX.

While g++ makes the object, cicc compiles the same preprocessed text once more, as nvcc -G calls it:
the second build (judge/second_build.py). The build does without if that fails.
"""

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ptxsim import answer_of

SCRIPT = "nvcc.sh"
# CPU that the second build may take. CuTe's code needs more, and nobody reads that much PTX.
SECOND_S = 5
_MARK = ".debug"  # in the names of the files that it writes
_ASSIGNMENT = re.compile(r"(\w+)=(.*)")
_USED = ("PATH", "LD_LIBRARY_PATH", "CICC_PATH", "NVVMIR_LIBRARY_DIR")  # by these programs
_NEW_ID = "--gen_module_id_file"
_ID = re.compile(r'--module_id_file_name "([^"]+)"')
_DRYRUN_S = 60.0  # wall; it takes milliseconds


def make_script(command: Sequence[str], folder: Path) -> str | None:
    """A shell script that does in ``folder`` what ``command``, a call of nvcc, does there; None if
    this nvcc takes other steps, or has more to say."""
    assigned, calls = _printed(command, folder)
    programs = [Path(line.split(" ")[0].replace('"', "")).name for line in calls]
    if programs[1:2] + programs[3:4] + programs[-2:-1] != ["cudafe++", "cicc", "fatbinary"]:
        return None
    preprocess, cudafe, *device, compile_host = calls
    module_id = _ID.search(cudafe)
    if _NEW_ID not in cudafe or module_id is None:
        return None
    variables = "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in assigned if name in _USED
    )
    steps = [preprocess, cudafe.replace(_NEW_ID, ""), *device]
    return f"""{variables}
printf sgemm_grader > "{module_id[1]}"
{" && ".join(steps)} || exit
{{ ulimit -t {SECOND_S} && {_second(command, folder)}; }} > /dev/null 2>&1 &
{compile_host}
status=$?
wait
exit $status
"""


def second_ptx(name: str) -> str:
    """The file beside the PTX ``name`` that the second build writes."""
    return f"{name.removesuffix('.ptx')}{_MARK}.ptx"


def _second(command: Sequence[str], folder: Path) -> str:
    """cicc's call in the second build, which writes no file of the first."""
    _, calls = _printed([*command, "-G"], folder)
    call = next((line for line in calls if '/cicc"' in line.split(" ")[0]), "false")
    return re.sub(r"\.(?=cudafe1\.|ptx\")", f"{_MARK}.", call)


def _printed(command: Sequence[str], folder: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """The variables that nvcc sets, and its calls; nothing if it does not run."""
    plain = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    try:
        answer = answer_of([*command, "--dryrun"], cwd=folder, env=plain, timeout=_DRYRUN_S)
    except (OSError, subprocess.TimeoutExpired):  # the call itself will say why
        return [], []
    printed = [line.removeprefix("#$ ") for line in answer.stderr.splitlines()]
    assigned = [(match[1], match[2]) for match in map(_ASSIGNMENT.fullmatch, printed) if match]
    return assigned, [line for line in printed if not _ASSIGNMENT.fullmatch(line)]
