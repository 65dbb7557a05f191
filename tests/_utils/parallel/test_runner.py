"""Running tasks: order, parallel work, checkpoints, progress."""

import os

import joblib
import pytest

from gpsift._utils.parallel import Checkpoint, Runner, Task


def square(value, folder=None):
    if folder is not None:
        with open(os.path.join(folder, f"ran-{value}"), "a") as file:
            file.write("x")
    if value < 0:
        raise ValueError(f"{value} is negative")
    return {"square": value * value, "process": os.getpid()}


def running(**options):
    return Runner(**{"jobs": 1, "checkpoint": None, "progress": False, "title": "squares", "total": 3, **options})


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs):
    with running(jobs=jobs) as b:
        results = b.run(square, [Task(f"{i}", (i,)) for i in (3, 1, 2)])
    assert [result["square"] for result in results] == [9, 1, 4]
    assert (os.getpid() in {result["process"] for result in results}) == (jobs == 1)


def test_no_tasks_no_results():
    with running() as b:
        assert b.run(square, []) == []


def test_jobs_none_asks_joblib():
    with joblib.parallel_config(backend="loky", n_jobs=2), running(jobs=None) as b:
        results = b.run(square, [Task("1", (1,)), Task("2", (2,))])
    assert os.getpid() not in {result["process"] for result in results}


def test_finished_tasks_are_not_run_again(tmp_path):
    tasks = [Task(f"{i}", (i, str(tmp_path))) for i in (1, 2, -1, 3)]
    with (
        pytest.raises(ValueError, match="-1 is negative"),
        running(checkpoint=Checkpoint(tmp_path / "c", {"a": "b"})) as b,
    ):
        b.run(square, tasks)
    tasks[2] = Task("-1", (4, str(tmp_path)))
    with running(checkpoint=Checkpoint(tmp_path / "c", {"a": "b"})) as b:
        results = b.run(square, tasks)
    assert [result["square"] for result in results] == [1, 4, 16, 9]
    assert (tmp_path / "ran-1").read_text() == (tmp_path / "ran-2").read_text() == "x"


def test_a_bar_counts_the_tasks(capsys, tmp_path):
    with running(checkpoint=Checkpoint(tmp_path / "c", {"a": "b"})) as b:
        b.run(square, [Task("1", (1,))])
    assert capsys.readouterr().err == ""
    with running(progress=True, checkpoint=Checkpoint(tmp_path / "c", {"a": "b"})) as b:
        b.run(square, [Task(f"{i}", (i,)) for i in range(1, 4)])
    shown = capsys.readouterr().err
    assert "squares" in shown
    assert "3/3" in shown
