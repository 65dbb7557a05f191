"""What a GPU makes of it: exact and sparse models whose matrices live there, and whether the numbers are the same.

python benchmarks/device.py                      # everything; wants a GPU with 120 GiB
python benchmarks/device.py agreement exact      # some sections
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch

import gpsift as gs
from gpsift._utils.arrays import array_on, like
from gpsift._utils.rows import LocalRows, Rows
from gpsift.gp.inference.exact import exact_evidence
from gpsift.gp.sparse.bound import bound_evidence, bound_model
from gpsift.gp.sparse.engine import local_rows
from gpsift.gp.sparse.variational import VariationalEngine
from gpsift.likelihoods import Probit

SECTIONS = ("agreement", "exact", "measures", "default", "sparse", "classes")
# Rows and features of one value with gradient of the exact log evidence.
EXACT = ((10_000, 100), (20_000, 20), (40_000, 20))
# Rows and features of a ranking after a fit, for KL and for VAR.
KL_SIZES, VAR_SIZES = ((10_000, 100), (40_000, 20)), ((10_000, 20),)
# Rows and features of a fit of which nothing is said but the device.
DEFAULT = {"n": 1_000_000, "p": 20}
SPARSE = {"n": 10_000_000, "p": 20, "m": 512}
CLASSES = {"n": 1_000_000, "p": 20, "m": 256}
NOISE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=SECTIONS, help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--device", default="cuda")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", gs.GPSiftWarning)
    if chosen.device == "cuda":
        print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    run = {
        "agreement": agreement,
        "exact": exact,
        "measures": measures,
        "default": default,
        "sparse": sparse,
        "classes": classes,
    }
    for section in chosen.sections:
        run[section](chosen.device)


def agreement(device: str) -> None:
    """NumPy against torch on the device."""
    X, y = toy(1000, 6)
    for inference in ("exact", gs.Sparse(m=100)):
        here = gs.GP(hyper=fixed(6), inference=inference).fit(X, y)
        gp = gs.GP(hyper=fixed(6), inference=inference, device=device).fit(X, y)
        evidence = abs(gp.log_marginal_likelihood / here.log_marginal_likelihood - 1.0)
        parts = [f"evidence {evidence:.1e}"]
        for measure in (gs.KL(), gs.VAR(conditional="normal")):
            one, other = gs.rank(here, measure=measure).scores, gs.rank(gp, measure=measure).scores
            parts.append(f"{measure.label} {np.abs(other / one - 1.0).max():.1e}")
        print(f"{inference}: largest relative difference to NumPy: {', '.join(parts)}", flush=True)


def exact(device: str) -> None:
    for n, p in EXACT:
        torch.cuda.empty_cache()
        exact_evaluation(device, n, p)


def exact_evaluation(device: str, n: int, p: int) -> None:
    X, y = (like(array_on(device), a) for a in toy(n, p))
    kernel = gs.SquaredExponential(np.full(p, np.sqrt(p))) + gs.Constant(0.1)
    torch.cuda.reset_peak_memory_stats()
    spent = best(lambda: exact_evidence(kernel, X, y, NOISE))
    print(f"exact, n {n}, p {p}: value and gradient {spent:.3f} s, {peak():.0f} GiB", flush=True)


def measures(device: str) -> None:
    for measure, sizes in ((gs.KL(), KL_SIZES), (gs.VAR(conditional="normal"), VAR_SIZES)):
        for n, p in sizes:
            torch.cuda.empty_cache()
            ranking(device, measure, n, p)


def ranking(device: str, measure: gs.Measure, n: int, p: int) -> None:
    X, y = toy(n, p)
    torch.cuda.reset_peak_memory_stats()
    gp = gs.GP(hyper=fixed(p), inference="exact", device=device).fit(X, y)
    first = seconds(lambda: gs.rank(gp, measure=measure))
    again = best(lambda: gs.rank(gp, measure=measure))
    scores = best(lambda: measure.relevance(gp, gp.inputs.training_points))
    print(
        f"{measure.label}, n {n}, p {p}: scores of all rows {scores:.4f} s; `rank` {first:.4f} s first, {again:.4f} s "
        f"later, {peak():.0f} GiB",
        flush=True,
    )


def default(device: str) -> None:
    """A fit by default to many rows, and both measures at all of them."""
    X, y = toy(**DEFAULT)
    y = y + 0.5 * X[:, 3]
    fitted: list[gs.FittedGP] = []
    whole = seconds(lambda: fitted.append(gs.GP(device=device).fit(X, y)))
    report = fitted[0].report
    print(
        f"default, n {len(y)}, p {X.shape[1]}: fit {whole:.0f} s, {report.n_evaluations} evaluations, "
        f"{report.n_inducing} points, {report.n_blocks} blocks, R2 {fitted[0].quality.loo_r2:.4f}",
        flush=True,
    )
    for measure in (gs.KL(), gs.VAR()):
        answer: list[gs.Ranking] = []
        spent = seconds(lambda: answer.append(gs.rank(fitted[0], measure=measure)))  # noqa: B023
        whole += spent
        print(f"{measure.label} at all rows: {spent:.1f} s, scores {answer[0].scores.round(3)}", flush=True)
    print(f"fit and both: {whole:.0f} s", flush=True)


def sparse(device: str) -> None:
    n, p, m = SPARSE["n"], SPARSE["p"], SPARSE["m"]
    generator = torch.Generator(device).manual_seed(0)
    X = torch.randn(n, p, dtype=torch.float64, device=device, generator=generator)
    y = torch.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    y += NOISE**0.5 * torch.randn(n, dtype=torch.float64, device=device, generator=generator)
    model = bound_model(gs.SquaredExponential(np.full(p, np.sqrt(p))), X[:m, :], NOISE)
    source = LocalRows(Rows(X, y), m, 2**30)
    torch.cuda.reset_peak_memory_stats()
    spent = best(lambda: bound_evidence(model, source), 2)
    print(f"sparse, n {n}, p {p}, m {m}: value and gradient {spent:.2f} s, {peak():.1f} GiB", flush=True)
    fitted: list[gs.FittedGP] = []
    spent = seconds(lambda: fitted.append(gs.GP(hyper=gs.ML2(starts=1), inference=gs.Sparse(m=m)).fit(X, y)))
    report = fitted[0].report
    print(
        f"sparse fit: {spent:.0f} s, {report.n_evaluations} evaluations, {report.n_inducing} points, "
        f"converged {report.converged}, R2 {fitted[0].quality.loo_r2:.3f}, noise variance "
        f"{float(fitted[0].noise_var):.4f}",
        flush=True,
    )
    points = X[:1_000_000, :].cpu().numpy()
    for measure in (gs.KL(), gs.VAR(conditional="normal")):
        answer: list[gs.Ranking] = []
        spent = seconds(lambda: answer.append(gs.rank(fitted[0], points, measure=measure)))  # noqa: B023
        print(f"{measure.label} at 10^6 rows: {spent:.1f} s, scores {answer[0].scores.round(3)}", flush=True)


def classes(device: str) -> None:
    """Two classes, here and on the device: one value with gradient, and a fit."""
    n, p, m = CLASSES["n"], CLASSES["p"], CLASSES["m"]
    X, f = toy(n, p)
    y = (f > 0.0).astype(float)
    kernel = gs.SquaredExponential(np.full(p, np.sqrt(p)))
    for name, beside in (("NumPy", np.empty(0)), (device, array_on(device))):
        rows = Rows(like(beside, X), like(beside, y))
        engine = VariationalEngine(local_rows(rows, gs.Sparse(m=m)), X[:m], like(beside, X[:m]), gs.Sparse(m=m))
        found: list[float] = []
        spent = seconds(lambda: found.append(engine.stateless().evidence(kernel, Probit()).value))  # noqa: B023
        print(f"classes, n {n}, p {p}, m {m}, {name}: value and gradient {spent:.2f} s, {found[0]:.8f}", flush=True)
    fitted: list[gs.FittedGP] = []
    model = gs.GP(likelihood="bernoulli", hyper=gs.ML2(starts=1), inference=gs.Sparse(m=m), device=device)
    spent = seconds(lambda: fitted.append(model.fit(X, y)))
    print(f"classes, fit: {spent:.0f} s, {fitted[0].report.n_evaluations} evaluations", flush=True)
    for measure in (gs.KL(), gs.VAR(conditional="normal")):
        answer: list[gs.Ranking] = []
        spent = seconds(lambda: answer.append(gs.rank(fitted[0], measure=measure)))  # noqa: B023
        print(f"{measure.label} at all rows: {spent:.1f} s, scores {answer[0].scores.round(3)}", flush=True)


def toy(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + NOISE**0.5 * rng.normal(size=n)


def fixed(p: int) -> gs.Fixed:
    return gs.Fixed(lengthscale=np.sqrt(p), signal_var=1.0, noise_var=NOISE, constant_var=0.1)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def best(call: Callable[[], object], repeats: int = 4) -> float:
    return min(seconds(call) for _ in range(repeats))


def peak() -> float:
    """The most memory that torch had on the device, in GiB."""
    return torch.cuda.max_memory_allocated() / 2**30


if __name__ == "__main__":
    main()
