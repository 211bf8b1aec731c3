"""``tests/run.sh --profile``: the wall time of each test beside its CPU time.

A test whose wall time is far above its CPU time waits for something. While other workers keep the
machine busy it also waits for a core, so look at the sum of CPU time first.
"""

import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

_LONGEST = 40  # lines of each table


class CpuTimes:
    """Adds the CPU seconds of each test to its report: its own, and of what it waited for."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        self._before = sum(os.times()[:4])
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        yield
        item.user_properties.append(("cpu_s", sum(os.times()[:4]) - self._before))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    wall: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                wall[report.nodeid] += report.duration
                cpu[report.nodeid] += dict(report.user_properties).get("cpu_s", 0.0)
    for title, group in (("files", _file), ("tests", str)):
        rows: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for name in wall:
            rows[group(name)][0] += wall[name]
            rows[group(name)][1] += cpu[name]
        terminalreporter.section(f"{title}: wall s, CPU s")
        for name in sorted(rows, key=lambda name: -rows[name][0])[:_LONGEST]:
            terminalreporter.write_line(f"{rows[name][0]:8.1f} {rows[name][1]:8.1f}  {name}")
    terminalreporter.write_line(f"{sum(wall.values()):8.1f} {sum(cpu.values()):8.1f}  in all")


def _file(name: str) -> str:
    return name.partition("::")[0]
