"""Why a sandbox does not work on this machine, and the command that fixes it."""

from __future__ import annotations

import errno
import os
import platform
import re
import subprocess
from pathlib import Path

from grader.model import Message, Record, phrase, verbatim
from grader.sandbox import bubblewrap, landlock

# A setting that forbids unprivileged user namespaces, its value then, and the value that does not.
# The first is Ubuntu's, from 23.10 on.
_SETTINGS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", verbatim("AppArmor")),
    ("kernel.unprivileged_userns_clone", "0", "1", phrase("Debian's kernel")),
    ("user.max_user_namespaces", "0", "15000", phrase("the Linux kernel")),
)
_FIRST_LANDLOCK = (5, 13)
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


class Cause(Record):
    """What stands in the way, and what to do about it."""

    what: Message
    remedy: Message


def without_bubblewrap() -> Cause:
    """Why bubblewrap does not work here."""
    program = next(bubblewrap.programs(), None)
    if program is None:
        return Cause(
            what=phrase("bubblewrap is not installed"),
            remedy=phrase("{command} (as root)", command="apt-get install bubblewrap"),
        )
    if (refusal := _refusal(["unshare", "--user", "true"])) is not None:
        for name, forbids, allows, who in _SETTINGS:
            if _setting(name) == forbids and (os.getuid() != 0 or name.startswith("user.")):
                return Cause(
                    what=phrase(
                        "{who} forbids user namespaces ({setting})",
                        who=who,
                        setting=f"{name}={forbids}",
                    ),
                    remedy=phrase(
                        "{command} (as root; in /etc/sysctl.d/ for good)",
                        command=f"sysctl -w {name}={allows}",
                    ),
                )
        if _filtered():
            return Cause(
                what=phrase("the container's seccomp profile refuses namespaces, as Docker's does"),
                remedy=phrase(
                    "{command} (or do without: Landlock needs no option)",
                    command="docker run --security-opt seccomp=unconfined "
                    "--security-opt systempaths=unconfined …",
                ),
            )
        return Cause(
            what=phrase("no user namespace can be made: {why}", why=refusal),
            remedy=phrase("ask who runs it"),
        )
    said = _refusal([*bubblewrap.command(program, (), (), Path("/"), None), "true"])
    if _in_a_container() and said is not None and "proc" in said:
        return Cause(
            what=phrase("the container's /proc is masked, so no other can be mounted"),
            remedy=phrase(
                "{command} (or do without: Landlock needs no option)",
                command="podman run --security-opt unmask=ALL …, docker run --security-opt "
                "systempaths=unconfined …",
            ),
        )
    return Cause(
        what=phrase("bubblewrap fails: {why}", why=str(said)),
        remedy=verbatim(f"{program} --version"),
    )


def without_landlock() -> Cause:
    """Why Landlock does not work here."""
    if landlock.version() > 0:
        return Cause(
            what=phrase("the kernel has Landlock, but system calls cannot be filtered"),
            remedy=phrase("a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64"),
        )
    release = platform.release()
    old = tuple(map(int, re.findall(r"\d+", release)[:2])) < _FIRST_LANDLOCK
    if landlock.refusal() == errno.EOPNOTSUPP:
        return Cause(
            what=phrase("the kernel has Landlock, but it is switched off"),
            remedy=phrase("add landlock to the boot parameter lsm= (cat /sys/kernel/security/lsm)"),
        )
    if not old and _filtered():
        return Cause(
            what=phrase("the container's seccomp profile refuses Landlock"),
            remedy=phrase("a newer runtime: Docker 23 allows it"),
        )
    return Cause(
        what=phrase("this kernel ({release}) has no Landlock", release=release),
        remedy=phrase("Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK"),
    )


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None


def _filtered() -> bool:
    """Whether a filter of system calls is on this process already, which a container's runtime
    put there."""
    return "Seccomp:\t2" in Path("/proc/self/status").read_text()


def _in_a_container() -> bool:
    return any(Path(mark).exists() for mark in _CONTAINER_MARKS)


def _refusal(command: list[str]) -> str | None:
    """The last line that a program complains with; None if it succeeds."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return None if done.returncode == 0 else (words or [f"status {done.returncode}"])[-1]
