"""Finds what a test has left running, by the private home in each process's environment; ends only that."""

from __future__ import annotations

import contextlib

import psutil


def belonging(mark: str) -> list[psutil.Process]:
    """Processes whose environment or command line holds `mark` (a path that only one test uses)."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            told = [f"{k}={v}" for k, v in process.environ().items()] + process.cmdline()
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            continue
        if any(mark in text for text in told):
            found.append(process)
    return found


def describe(process: psutil.Process) -> str:
    """`pid command line`, or that it is gone."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    except psutil.NoSuchProcess:
        return f"{process.pid} (gone)"


def end(processes: list[psutil.Process]) -> None:
    """Kill these and wait until they are gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)
