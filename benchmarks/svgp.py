"""Time to accuracy on many rows: our sparse fit against GPyTorch's stochastic variational one (SVGP), in one run.

python benchmarks/svgp.py --out folder            # nycflights; needs GPSIFT_DATA, the folder with scale/
python benchmarks/svgp.py --epochs 2 --rows 20000 # a short one

Both have the same number of inducing points, the squared exponential kernel with a length-scale for each feature and a
constant mean, and the same training and test rows. What the test predictions take is not counted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import gpytorch
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scale import data_set

import gpsift as gs
from gpsift.gp.inference.base import Evidence
from gpsift.gp.sparse.bound import BoundEngine, Passes, bound_model
from gpsift.kernels import Kernel
from gpsift.likelihoods import Gaussian
from gpsift.likelihoods.distributions.gaussian import gaussian_log_density

BATCH = 1024
RATES = (0.01, 0.1)
TEST_SHARE = 0.1
# Of our evaluations, so many are turned into predictions of the test rows.
SHOWN = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="nycflights", help="a file of scale/")
    parser.add_argument("--rows", type=int, help="a sample of so many rows")
    parser.add_argument("--m", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, help="a folder for the table and the picture")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    train, test = split(chosen.name, chosen.rows)
    print(f"{len(train[1])} training rows, {len(test[1])} test rows, {chosen.m} points", flush=True)
    found = [ours(train, test, chosen.m)]
    found += [svgp(train, test, chosen.m, rate, chosen.epochs) for rate in RATES]
    table = pd.concat(found, ignore_index=True)
    summarise(table)
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(chosen.out / "svgp.csv", index=False)
        picture(table).savefig(chosen.out / "svgp.png", dpi=150, bbox_inches="tight")


Data = tuple[np.ndarray, np.ndarray]


def split(name: str, rows: int | None) -> tuple[Data, Data]:
    """Standardised training and test rows."""
    X, y = data_set(name, rows)
    is_test = np.random.default_rng(1).random(len(y)) < TEST_SHARE
    X = (X - X[~is_test].mean(axis=0)) / X[~is_test].std(axis=0)
    y = (y - y[~is_test].mean()) / y[~is_test].std()
    return (X[~is_test], y[~is_test]), (X[is_test], y[is_test])


class Evaluation(NamedTuple):
    """One evaluation of our search."""

    engine: BoundEngine
    kernel: Kernel
    noise_var: float
    value: float

    @property
    def rows(self) -> int:
        return self.engine.source.n


def ours(train: Data, test: Data, m: int) -> pd.DataFrame:
    """The best evaluation so far has a posterior at any time: afterwards, some of them predict the test rows."""
    incumbents: list[Evaluation] = []
    spent: list[float] = []
    evidence = BoundEngine.evidence
    began = time.perf_counter()

    def recorded(engine: BoundEngine, kernel: Kernel, likelihood: Gaussian) -> Evidence:
        answer = evidence(engine, kernel, likelihood)
        now = Evaluation(engine, kernel, float(likelihood.noise_var), answer.value)
        spent.append(time.perf_counter() - began)
        incumbents.append(
            max(now, incumbents[-1], key=attrgetter("value")) if incumbents and incumbents[-1].rows == now.rows else now
        )
        return answer

    BoundEngine.evidence = recorded
    gp = gs.GP(inference=gs.Sparse(m=m), hyper=gs.ML2(starts=1), standardize=False).fit(*train)
    total = time.perf_counter() - began
    BoundEngine.evidence = evidence
    rows = []
    for i in np.unique(np.linspace(0, len(incumbents) - 1, SHOWN).astype(int)):
        best = incumbents[i]
        posterior = Passes(bound_model(best.kernel, best.engine.Z, best.noise_var), best.engine.source).posterior()
        latent = posterior.at(test[0])
        rows.append((spent[i], mlpd(test[1], latent.mean, latent.var + best.noise_var)))
    rows.append((total, float(np.mean(gp.predict(test[0]).log_density(test[1])))))
    print(f"ours: {total:.0f} s, {len(incumbents)} evaluations, MLPD {rows[-1][1]:.4f}", flush=True)
    return pd.DataFrame(rows, columns=["seconds", "mlpd"]).assign(method="gpsift")


def svgp(train: Data, test: Data, m: int, rate: float, epochs: int) -> pd.DataFrame:
    torch.manual_seed(0)
    X, y = (torch.tensor(a, dtype=torch.float32) for a in train)
    new = torch.tensor(test[0], dtype=torch.float32)
    model, likelihood = Variational(X[torch.randperm(len(y))[:m]]), gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=rate)
    spent, rows = 0.0, []
    for _ in range(epochs):
        began = time.perf_counter()
        model.train()
        for batch in torch.randperm(len(y)).split(BATCH):
            optimiser.zero_grad()
            loss = -objective(model(X[batch]), y[batch])
            loss.backward()
            optimiser.step()
        spent += time.perf_counter() - began
        model.eval()
        with torch.no_grad():
            parts = [likelihood(model(part)) for part in new.split(4096)]
        mean, var = (torch.cat([getattr(p, name) for p in parts]).double().numpy() for name in ("mean", "variance"))
        rows.append((spent, mlpd(test[1], mean, var)))
        print(f"SVGP, Adam {rate}: {spent:.0f} s, MLPD {rows[-1][1]:.4f}", flush=True)
    return pd.DataFrame(rows, columns=["seconds", "mlpd"]).assign(method=f"SVGP, Adam {rate:g}")


class Variational(gpytorch.models.ApproximateGP):
    """GPyTorch's own example of a stochastic variational model, with a length-scale for each feature."""

    def __init__(self, points: torch.Tensor):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        strategy = gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True)
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=points.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def mlpd(y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> float:
    return float(np.mean(gaussian_log_density(y, mean, var)))


def summarise(table: pd.DataFrame) -> None:
    """When each method reaches the final MLPD of the better SVGP."""
    final = table.groupby("method", sort=False).last()
    goal = final.drop("gpsift").mlpd.max()
    for method, part in table.groupby("method", sort=False):
        reached = part[part.mlpd >= goal].seconds
        when = f"{reached.iloc[0]:.0f} s" if len(reached) else "never"
        print(f"{method:16s} ends at {part.mlpd.iloc[-1]:.4f} after {part.seconds.iloc[-1]:.0f} s; {goal:.4f}: {when}")


def picture(table: pd.DataFrame) -> plt.Figure:
    figure, axis = plt.subplots(figsize=(6.0, 3.6))
    for method, part in table.groupby("method", sort=False):
        axis.plot(part.seconds, part.mlpd, marker=".", label=method)
    axis.set(xscale="log", xlabel="seconds", ylabel="test MLPD")
    axis.set_ylim(table.mlpd.quantile(0.1), table.mlpd.max() + 0.005)
    axis.legend()
    return figure


if __name__ == "__main__":
    main()
