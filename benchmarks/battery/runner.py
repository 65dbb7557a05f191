"""The run: every method on every data set, in processes of one thread each, stored as it goes and resumed.

A line of the store is one method on one data set. An interrupted run is balanced: all methods and tasks see a seed
before any of them sees the next.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.battery.gaussian_processes import density_of_selected
from benchmarks.battery.methods import METHODS
from benchmarks.battery.scores import agreement, auc, false_share, found_share, share_in_top
from benchmarks.battery.tasks import TASKS

STORE = "results.jsonl"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One method on one data set."""

    n: int
    seed: int
    method: str
    task: str


def planned(sizes: Iterable[int], seeds: Iterable[int], methods: Sequence[str], tasks: Sequence[str]) -> list[Job]:
    """All jobs in the order in which they are run."""
    ordered = [name for name in METHODS if name in methods]
    return [
        Job(n, seed, method, task)
        for n in sizes
        for seed in seeds
        for method in ordered
        for task in tasks
        if METHODS[method].takes(TASKS[task])
    ]


def run(jobs: Sequence[Job], folder: Path, processes: int, minutes: float) -> None:
    """Run what is not stored yet; stop when time is over, without what is under way."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {job_of(record) for record in read(folder)}
    left = [job for job in jobs if job not in stored]
    end = time.monotonic() + 60.0 * minutes
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the processes that are started below
    print(f"{len(jobs) - len(left)} of {len(jobs)} are stored", flush=True)
    # A process that has grown by a large job is replaced after some time.
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=500) as pool:
        for k, record in enumerate(until(end, pool.imap_unordered(record_of, left)), start=1):
            with (folder / STORE).open("a") as file:
                file.write(json.dumps(record) + "\n")
            if k % 200 == 0 or k == len(left):
                print(f"{k} of {len(left)}", flush=True)


def until(end: float, results: Any) -> Iterator[dict[str, Any]]:
    """Results of a pool until a time of the clock."""
    while (left := end - time.monotonic()) > 0:
        try:
            yield results.next(timeout=left)
        except (multiprocessing.TimeoutError, StopIteration):
            return


def record_of(job: Job) -> dict[str, Any]:
    """A job done: processor time, and scores or what went wrong."""
    data = TASKS[job.task].draw(job.n, job.seed)
    record: dict[str, Any] = asdict(job)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = METHODS[job.method].answer(data)
            record["seconds"] = time.process_time() - start
            record["rankings"] = {name: ranking_scores(scores, data) for name, scores in answer.rankings.items()}
            if answer.selected is not None:
                selected, true = answer.selected[data.judged], data.true[data.judged]
                record["found"], record["false"] = found_share(selected, true), false_share(selected, true)
                record["size"] = int(np.sum(answer.selected))
                record["selected_density"] = density_of_selected(data, answer.selected)
            if answer.density is not None:
                record["density"] = answer.density()
        except Exception as error:  # one data set must not end a run of thousands
            record["error"] = f"{type(error).__name__}: {error}"
    return record


def ranking_scores(scores: np.ndarray, data) -> dict[str, float]:
    judged = data.judged
    of_order = np.nan if data.shares is None else agreement(scores[judged], data.shares[judged], data.true[judged])
    return {
        "auc": auc(scores[judged], data.true[judged]),
        "top": share_in_top(scores[judged], data.true[judged]),
        "order": of_order,
    }


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Stored records; a last line that was cut off is left out."""
    path = folder / STORE
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def job_of(record: dict[str, Any]) -> Job:
    return Job(record["n"], record["seed"], record["method"], record["task"])
