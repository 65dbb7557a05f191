"""Workers whose parent is gone before their first task."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import multiprocessing, sys
from gpsift._utils.parallel import ExitWithParent

task = ExitWithParent(len)
multiprocessing.current_process().name, task.parent = sys.argv[1], int(sys.argv[2])
print(task("four"))
"""


@pytest.fixture(scope="module")
def gone():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def answer(name, parent):
    return subprocess.run([sys.executable, "-c", SCRIPT, name, str(parent)], capture_output=True, text=True)


@pytest.mark.skipif(os.name != "posix", reason="processes of another system")
def test_a_worker_without_a_parent_does_not_begin(gone):
    done = answer("LokyProcess-1", gone)
    assert (done.returncode, done.stdout) == (1, "")


def test_workers_of_a_cluster_are_left_alone(gone):
    assert answer("Dask Worker process", gone).stdout == "4\n"


def test_a_worker_whose_parent_is_there_begins():
    assert answer("LokyProcess-1", os.getpid()).stdout == "4\n"
