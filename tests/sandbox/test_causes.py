"""What the machine says about sandboxes that do not work, and what is made of it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from grader.sandbox import bubblewrap, landlock
from grader.sandbox import meter as causes

DENIED = "unshare: unshare failed: Operation not permitted"


APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
DEBIAN, LINUX = "kernel.unprivileged_userns_clone", "user.max_user_namespaces"
PROFILE = "the container's seccomp profile refuses namespaces, as Docker's does"
NO_NAMESPACE = [  # settings, whether system calls are filtered: what is said, and the remedy
    ({APPARMOR: "1"}, False, f"AppArmor forbids user namespaces ({APPARMOR}=1)", f"{APPARMOR}=0"),
    ({DEBIAN: "0"}, False, "Debian's kernel forbids user namespaces", f"{DEBIAN}=1"),
    ({LINUX: "0"}, True, f"the Linux kernel forbids user namespaces ({LINUX}=0)", f"{LINUX}=15000"),
    ({APPARMOR: "0"}, True, PROFILE, "docker run --security-opt seccomp=unconfined"),
    ({}, False, f"no user namespace can be made: {DENIED}", "ask who runs it"),
]


@pytest.mark.parametrize(("settings", "filtered", "what", "remedy"), NO_NAMESPACE)
def test_why_no_namespace_can_be_made(
    settings: dict[str, str],
    filtered: bool,
    what: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bubblewrap, "programs", lambda: iter([Path("/usr/bin/bwrap")]))
    monkeypatch.setattr(causes.os, "getuid", lambda: 1000)
    monkeypatch.setattr(bubblewrap, "complaint", lambda _command: DENIED)
    monkeypatch.setattr(causes, "_setting", settings.get)
    monkeypatch.setattr(causes, "_filtered", lambda: filtered)
    cause = causes.without_bubblewrap()
    assert str(cause.what).startswith(what)
    assert str(cause.remedy).removeprefix("sysctl -w ").startswith(remedy)


@pytest.mark.parametrize(
    ("error", "release", "filtered", "what", "remedy"),
    [
        (errno.EOPNOTSUPP, "6.8.0", False, "the kernel has Landlock, but it is switched", "lsm="),
        (errno.ENOSYS, "5.4.0-150", False, "this kernel (5.4.0-150) has no Landlock", "5.13"),
        (errno.ENOSYS, "5.4.0-150", True, "this kernel (5.4.0-150) has no Landlock", "5.13"),
        (errno.EPERM, "5.15.0", True, "the container's seccomp profile refuses", "Docker 23"),
    ],
)
def test_why_there_is_no_landlock(
    error: int,
    release: str,
    filtered: bool,
    what: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(landlock, "refusal", lambda: error)
    monkeypatch.setattr(causes.platform, "release", lambda: release)
    monkeypatch.setattr(causes, "_filtered", lambda: filtered)
    cause = causes.without_landlock()
    assert str(cause.what).startswith(what)
    assert remedy in str(cause.remedy)
