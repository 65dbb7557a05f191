"""A request to end reaches the processes that work for the command."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import typer
from gpsift.cli.errors import clear_errors, heed_termination
from gpsift.work import Runner, Task
from napping import nap

def naps(folder: str) -> None:
    with clear_errors(), Runner(jobs=2, checkpoint=None, progress=False, title="naps", total=2) as runner:
        runner.run(nap, [Task(name, (folder, name)) for name in ("one", "two")])

heed_termination()
typer.run(naps)
"""
NAP = """
import os, time
from pathlib import Path

def nap(folder, name):
    Path(folder, name + ".part").write_text(str(os.getpid()))
    Path(folder, name + ".part").rename(Path(folder, name + ".pid"))
    time.sleep(120)
"""


def waited_for(condition, seconds=60):
    """Whether a condition comes to hold in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return "State:\tZ" not in status.read_text() if status.exists() else True


@pytest.mark.skipif(os.name != "posix", reason="signals of another system")
def test_no_process_works_on(tmp_path):
    (tmp_path / "napping.py").write_text(NAP)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = []
    try:
        assert waited_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
        command.send_signal(signal.SIGTERM)
        _, said = command.communicate(timeout=60)
        assert command.returncode == 143
        assert said.strip() == "gpsift: interrupted. No half-written file is left."
        assert waited_for(lambda: not any(map(is_running, pids)), seconds=20)
    finally:
        for pid in [command.pid, *pids]:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        command.wait()
