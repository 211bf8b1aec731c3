"""Runs nvcc's steps for the host beside its steps for the device.

nvcc runs several programs, one after the other, and prints them with --dryrun:

    g++ -E, cudafe++           the host's half
    g++ -E, cicc, fatbinary    the device's half; for sm_90 ptxas checks what cicc made
    g++ -c                     the object, of what both halves made

The halves share only the module's id: any word, which cudafe++ would make up and cicc reads.
"""

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from grader.base import answer_of

SCRIPT = "halves.sh"
_ASSIGNMENT = re.compile(r"(\w+)=(.*)")
_USED = ("PATH", "LD_LIBRARY_PATH", "CICC_PATH", "NVVMIR_LIBRARY_DIR")  # by these programs
_NEW_ID = "--gen_module_id_file"
_ID = re.compile(r'--module_id_file_name "([^"]+)"')
_DRYRUN_S = 60.0  # wall; it takes milliseconds


def make_script(command: Sequence[str], folder: Path) -> str | None:
    """A shell script that does in ``folder`` what ``command``, a call of nvcc, does there; None if
    this nvcc takes other steps, or has more to say."""
    plain = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    try:
        answer = answer_of([*command, "--dryrun"], cwd=folder, env=plain, timeout=_DRYRUN_S)
    except (OSError, subprocess.TimeoutExpired):  # the call itself will say why
        return None
    printed = [line.removeprefix("#$ ") for line in answer.stderr.splitlines()]
    assigned = [match.groups() for match in map(_ASSIGNMENT.fullmatch, printed) if match]
    calls = [line for line in printed if not _ASSIGNMENT.fullmatch(line)]
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
    log = shlex.quote(f"{module_id[1]}.log")
    return f"""{variables}
printf sgemm_grader > "{module_id[1]}"
{{ {" && ".join(device)}; }} > {log} 2>&1 &
{{ {preprocess} && {cudafe.replace(_NEW_ID, "")}; }} || exit
wait $!
status=$?
cat {log} >&2
[ $status = 0 ] || exit $status
{compile_host}
"""
