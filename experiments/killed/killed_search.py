"""Kill a search at random moments, resume it, and compare with one that was left in peace.

    python experiments/killed/killed_search.py [--kills 20] [--seed 0] [--out killed.json]

Each trial starts a search with a checkpoint in a process of its own, ends it with SIGKILL at a random moment, starts it
again, and so on until it ends by itself. The path must be the same to the last bit, and every file that a kill leaves
behind must open and hold whole results only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SEARCH = """
import sys, numpy as np, gpsift as gs
from gpsift.datasets import friedman
toy = friedman(n=150, p=8, seed=1)
path = gs.search(toy.X, toy.y, cv=4, work=gs.Work(checkpoint=sys.argv[1], progress=False))
np.savez(sys.argv[2], lpd=path.lpd, order=path.order, mean=path.mean)
"""
# Threads change the order of sums, and with it the last bits.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MAX_STARTS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how many kills in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where to write the result as JSON")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        whole = finish(Path(folder) / "whole", [])
        seconds = time.perf_counter() - began
        print(f"undisturbed: {seconds:.1f} s")
        kills, trials = 0, 0
        while kills < arguments.kills:
            trials += 1
            # Several kills in one search, at any moment of it, the start of the process included.
            moments = list(rng.uniform(0.0, seconds, size=min(5, arguments.kills - kills)))
            path = Path(folder) / f"trial-{trials}"
            result = finish(path, moments)
            kills += result["kills"]
            same = all(np.array_equal(result[name], whole[name]) for name in ("lpd", "order", "mean"))
            print(f"trial {trials}: {result['kills']} kills, {'the same path' if same else 'ANOTHER PATH'}", flush=True)
            if not same:
                raise SystemExit("the path differs")
    record = {"kills": kills, "trials": trials, "same path": trials, "seconds undisturbed": round(seconds, 1)}
    print(record)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(record, indent=2) + "\n")


def finish(checkpoint: Path, moments: list[float]) -> dict[str, np.ndarray | int]:
    """Run the search to its end, killing it once at each of the moments (seconds after its start)."""
    kills = 0
    result = checkpoint.with_suffix(".npz")
    for _ in range(MAX_STARTS):
        process = subprocess.Popen([sys.executable, "-c", SEARCH, str(checkpoint), str(result)], env=ENVIRONMENT)
        try:
            code = process.wait(timeout=moments.pop() if moments else 600)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        if code != 0:
            raise SystemExit(f"the search failed with exit code {code}")
        return {**np.load(result), "kills": kills}
    raise SystemExit("the search never ended")


if __name__ == "__main__":
    main()
