"""How fits and searches grow with the rows: processor seconds, evaluations, memory, and exponents of growth.

    python benchmarks/growth.py                          # this checkout
    python benchmarks/growth.py --against OTHER/src      # and another one in turn with it, with ratios
    python benchmarks/growth.py --only fit select        # some kinds of `growth_cases.py`
    python benchmarks/growth.py --only GPy --limit 600   # beside another library, which has as many processor seconds
    python benchmarks/growth.py --json FILE              # and keep the figures
    python benchmarks/growth.py --show FILE              # the table and the picture of RESULTS.md from them

Every case runs in a process of its own with one BLAS thread. What is compared is processor time, which a busy machine
changes less than the clock on the wall; the log evidence at the end says whether both came to the same place.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
HERE = ROOT / "src"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Rows and columns of each kind of case; a new kind is a line here and one in `growth_cases.CASES`.
SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "fit": ((300, 20), (1000, 20), (2000, 20), (4000, 20)),
    "select": ((300, 20), (1000, 20)),
    "bernoulli": ((300, 5), (1000, 5)),
    "softmax": ((300, 5), (1000, 5)),
    "poisson": ((300, 5), (1000, 5)),
    "stability": ((1000, 5),),
    "GPy": ((1000, 20), (2000, 20)),
    "BoTorch": ((1000, 20), (2000, 20)),
    "ScikitLearn": ((1000, 20), (2000, 20)),
    "SequentialFeatureSelector": ((300, 20), (1000, 20)),
    "KernelExplainer": ((300, 20), (1000, 20)),
}
# Other libraries, each with what of ours is compared with it on the same data, in the place of another checkout.
PEERS = {
    **dict.fromkeys(("GPy", "BoTorch", "ScikitLearn"), "default"),
    "SequentialFeatureSelector": "select",
    "KernelExplainer": "scores",
}
HEADER = "| what | rows | columns | seconds | evaluations | megabytes | times faster | nats |\n" + "|---" * 8 + "|"


@dataclass(frozen=True)
class Measured:
    """One case: processor seconds, evaluations, log evidence and memory here, and with another checkout."""

    kind: str
    n: int
    p: int
    here: dict[str, float]
    other: dict[str, float] | None = None  # of another checkout, or another library; `is_cut` where it did not end

    @property
    def line(self) -> str:
        """As a row of the table."""
        here, other = self.here, self.other
        evaluations = "" if np.isnan(here["evaluations"]) else f"{here['evaluations']:.0f}"
        own = [self.kind, self.n, self.p, f"{here['seconds']:.2f}", evaluations, f"{here['megabytes']:.0f}"]
        compared = ["", ""]
        if other is not None:
            gain, ratio = here["height"] - other["height"], other["seconds"] / here["seconds"]
            at_least = "at least " if other.get("is_cut") else ""
            compared = [f"{at_least}{ratio:.1f}", "" if np.isnan(gain) else f"{gain:+.3f}"]
        return "| " + " | ".join(map(str, own + compared)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES), help="kinds of cases")
    parser.add_argument("--most-rows", type=int, default=4000, help="leave larger cases out")
    parser.add_argument("--limit", type=int, default=3600, help="processor seconds of what is compared with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to keep the figures; those of other cases stay")
    parser.add_argument("--show", type=Path, help="kept figures to show, without a new run")
    chosen = parser.parse_args()
    if chosen.show:
        show(read(chosen.show))
        return
    print(HEADER)
    for measured in all_measured(chosen):
        print(measured.line, flush=True)
        if chosen.json is not None:
            keep(chosen.json, measured)


def all_measured(chosen: argparse.Namespace) -> Iterator[Measured]:
    """The cases that were asked for, this checkout and the other one in turn."""
    for kind in chosen.only:
        for n, p in (size for size in SIZES[kind] if size[0] <= chosen.most_rows):
            here = measured_with(HERE, PEERS.get(kind, kind), n, p, chosen.seed)
            source = HERE if kind in PEERS else chosen.against
            other = None if source is None else measured_with(source, kind, n, p, chosen.seed, chosen.limit)
            yield Measured(kind, n, p, here, other)


def measured_with(
    source: Path, kind: str, n: int, p: int, seed: int, limit: int = resource.RLIM_INFINITY
) -> dict[str, float]:
    """What a process of its own says that imports the package from a folder, and may use as many processor seconds."""
    command = [sys.executable, str(Path(__file__).with_name("growth_cases.py")), kind, str(n), str(p), str(seed)]
    places = [str(source.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(places)}

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, preexec_fn=limited)
    if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and limit > 0:
        return {"seconds": limit, "megabytes": np.nan, "evaluations": np.nan, "height": np.nan, "is_cut": True}
    if ended.returncode:
        raise RuntimeError(f"{kind} with {n} rows failed:\n{ended.stderr}")
    return json.loads(ended.stdout.splitlines()[-1])


def read(path: Path) -> list[Measured]:
    return [Measured(**each) for each in json.loads(path.read_text())] if path.exists() else []


def keep(path: Path, measured: Measured) -> None:
    """Write one case to the file of figures, in the place of an older one."""
    others = [each for each in read(path) if (each.kind, each.n, each.p) != (measured.kind, measured.n, measured.p)]
    path.write_text(json.dumps([asdict(each) for each in (*others, measured)], indent=1))


def show(figures: list[Measured]) -> None:
    """The table, exponents of growth, and the picture."""
    print(HEADER)
    for each in sorted(figures, key=lambda each: (list(SIZES).index(each.kind), each.n)):
        print(each.line)
    for kind in SIZES:
        exponent = growth_exponent([each for each in figures if each.kind == kind])
        if exponent is not None:
            print(f"{kind}: seconds grow with rows to the power {exponent:.1f}")
    draw(figures, ROOT / "benchmarks" / "speed.png")


def growth_exponent(figures: list[Measured]) -> float | None:
    """The slope of log seconds over log rows, from 1000 rows on; None with fewer than two sizes there."""
    large = [each for each in figures if each.n >= 1000]
    if len(large) < 2:
        return None
    return float(np.polyfit(np.log([each.n for each in large]), np.log([each.here["seconds"] for each in large]), 1)[0])


def draw(figures: list[Measured], path: Path) -> None:
    """Seconds over rows of default fits and of `select`, now and with the other checkout."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
    for kind, colour in (("fit", "C0"), ("select", "C1")):
        own = sorted((each for each in figures if each.kind == kind), key=lambda each: each.n)
        rows = [each.n for each in own]
        axes.loglog(rows, [each.here["seconds"] for each in own], "o-", color=colour, label=kind)
        before = [(each.n, each.other["seconds"]) for each in own if each.other is not None]
        if before:
            axes.loglog(*zip(*before, strict=True), "o:", color=colour, label=f"{kind}, compared")
    axes.set(xlabel="rows", ylabel="processor seconds", title="20 columns")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
