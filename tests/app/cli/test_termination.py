"""The end of the command, asked for or not, is that of the processes that work for it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from optional import need

SCRIPT = """
import typer
from gpsift.app.cli.app import handle_sigterm
from gpsift.app.cli.outputs import print_errors
from gpsift._utils.parallel import Runner, Task
from napping import nap

def naps(folder: str) -> None:
    with print_errors(), Runner(jobs=2, checkpoint=None, progress=False, title="naps", total=2) as runner:
        runner.run(nap, [Task(name, (folder, name)) for name in ("one", "two")])

handle_sigterm()
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
@pytest.mark.parametrize(
    ("sent", "code", "words"),
    [(signal.SIGTERM, 143, "gpsift: interrupted. No half-written file is left."), (signal.SIGKILL, -9, None)],
    ids=["asked", "killed"],
)
def test_no_process_works_on(tmp_path, sent, code, words):
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
        command.send_signal(sent)
        _, said = command.communicate(timeout=60)
        assert command.returncode == code
        assert waited_for(lambda: not any(map(is_running, pids)), seconds=20)
        assert words is None or said.strip() == words
    finally:
        for pid in [command.pid, *pids]:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        command.wait()


NUTS_SCRIPT = """
import itertools, sys
import numpy as np
import typer
import gpsift as gs
from gpsift.app.cli.app import handle_sigterm
from gpsift.app.cli.outputs import print_errors
from gpsift.gp.hyperparameters import nuts

log_posterior, count = nuts.log_posterior, itertools.count()

def telling(problem, prior):
    density = log_posterior(problem, prior)
    def told(log_params):
        if next(count) == 2000:
            print("READY", flush=True)
        return density(log_params)
    return told

nuts.log_posterior, nuts.WORTH_PROCESSES = telling, float("inf")

def sample() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1))
    with print_errors():
        gs.GP(hyper=gs.NUTS(draws=100_000, tune=20, chains=1, progress=False)).fit(X, np.sin(2 * X[:, 0]))

handle_sigterm()
typer.run(sample)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of another system")
def test_a_sampler_ends_when_asked_to_and_keeps_no_draws():
    need("nutpie")
    command = subprocess.Popen(
        [sys.executable, "-c", NUTS_SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert command.stdout.readline() == "READY\n"
        command.send_signal(signal.SIGTERM)
        _, said = command.communicate(timeout=60)
        assert command.returncode == 143
        assert said.strip() == "gpsift: interrupted. No half-written file is left."
    finally:
        command.kill()
        command.wait()
