"""The machine in words (no names, no paths), and what single processes cost on it, read from /proc."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable

from msgspec import Struct

TICK = os.sysconf("SC_CLK_TCK")
_AFTER_NAME = 2
"""/proc/PID/stat is counted behind the name: its first field there is number 3 of the manual."""


class Machine(Struct, frozen=True):
    """What figures of a run depend on; `load` is the load average of one minute when it began."""

    cpu: str
    cores: int
    memory_gb: int
    kernel: str
    python: str
    tmux: str
    load: float

    @property
    def short(self) -> str:
        """Six letters that tell machines apart."""
        return hashlib.sha256(f"{self.cpu} {self.cores} {self.memory_gb}".encode()).hexdigest()[:6]

    @property
    def line(self) -> str:
        """All of it in one line."""
        return (
            f"{self.cpu}, {self.cores} cores, {self.memory_gb} GB, Linux {self.kernel}, Python {self.python}, "
            f"{self.tmux}; load {self.load:.2f} at the start"
        )


def describe() -> Machine:
    """The machine this runs on, now."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", file.read(), re.MULTILINE)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    version = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return Machine(
        cpu=model[1].strip() if model else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(pages / 2**30),
        kernel=".".join(platform.release().split("-")[0].split(".")[:3]),
        python=platform.python_version(),
        tmux=version,
        load=round(os.getloadavg()[0], 2),
    )


class Cost(Struct, frozen=True):
    """What processes have taken so far: seconds of a core, times they were woken."""

    cpu: float
    woken: int

    def since(self, before: Cost) -> Cost:
        """What came on top of `before`."""
        return Cost(self.cpu - before.cpu, self.woken - before.woken)


def cost(pids: Iterable[int]) -> Cost:
    """What these processes (all threads, children not) have taken; from schedstat, which counts nanoseconds."""
    cpu = woken = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            cpu += int(_read(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
            status = _read(f"/proc/{pid}/task/{thread}/status")
            woken += int(status.partition("\nvoluntary_ctxt_switches:")[2].split(None, 1)[0])
    return Cost(cpu / 1e9, woken)


def cpu_with_children(pid: int) -> float:
    """Seconds of a core that a process and its ended children have taken, in steps of a tick."""
    return _ticks(pid, 14, 15, 16, 17)


def cpu_of_ended(pid: int) -> float:
    """Seconds of a core that the ended children of a process have taken, in steps of a tick."""
    return _ticks(pid, 16, 17)


def _ticks(pid: int, *numbers: int) -> float:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(int(fields[field - _AFTER_NAME - 1]) for field in numbers) / TICK


def pss(pids: Iterable[int]) -> float:
    """Megabytes (10**6 bytes) of memory these processes take, shared pages divided by those who share them."""
    found = (re.search(r"^Pss:\s+(\d+) kB", _read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE) for pid in pids)
    return sum(int(match[1]) for match in found if match) * 1024 / 1e6


def children(pid: int) -> tuple[int, ...]:
    """The live children of a process."""
    return tuple(
        int(child)
        for thread in os.listdir(f"/proc/{pid}/task")
        for child in _read(f"/proc/{pid}/task/{thread}/children").split()
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
