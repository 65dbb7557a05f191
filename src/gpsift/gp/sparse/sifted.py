"""A sift of many rows: it is made on a sample of them, and what that has left off is tried again with more.

A few thousand rows hardly see an effect of a percent of the variance, and a hundred thousand see it clearly. So the
features that a sift has left off are brought back before the evidence of more rows is maximised, and those that do not
pay for themselves there are let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpsift._utils.grouping import read_groups
from gpsift.gp.hyperparameters import Estimate, Problem, Sift
from gpsift.gp.hyperparameters.optimize import SiftReport, SwitchedOn
from gpsift.gp.hyperparameters.restarts import reactivate, weak_start
from gpsift.gp.hyperparameters.stepwise import owed_by

# How many units in a row have to pay for shorter length-scales to be taken as paying, too.
ENOUGH_PAYING = 3


class Tried:
    """The units of a sift that more rows are to decide on: all, or those that are on and the steepest of the others."""

    def __init__(self, hyper: Sift, problem: Problem, first: Estimate):
        assert first.sift is not None
        self.hyper, self.problem, self.report = hyper, problem, first.sift
        self.names, self.columns = read_groups(hyper.groups, problem.names)
        features = [feature or "" for _, feature in problem.labels]
        self.params = [np.isin(features, [problem.names[j] for j in each]) for each in self.columns]
        slopes = [max(first.sift.slopes[j] for j in each) for each in self.columns]
        on = [unit for unit, name in enumerate(self.names) if name in first.sift.active]
        others = [int(unit) for unit in np.argsort(slopes)[::-1] if unit not in on]
        self.units = [*on, *others][: max(len(on), hyper.max_active)]

    def on(self, log_params: np.ndarray) -> list[int]:
        """The units that are on with these parameters."""
        return [unit for unit, own in enumerate(self.params) if np.isfinite(log_params[own]).all()]

    def brought_back(self, log_params: np.ndarray) -> np.ndarray:
        """Log parameters with all of these units on, and none of those that are on idle."""
        owned = np.any([self.params[unit] for unit in self.units], axis=0)
        on = np.where(owned & ~np.isfinite(log_params), weak_start(self.problem), log_params)
        return reactivate(self.problem, on)

    def let_go(self, problem: Problem, estimate: Estimate) -> Estimate:
        """The estimate without units that owe more than they bring, beginning with the longest length-scale."""
        is_length, log_params = problem.kinds == "lengthscale", estimate.log_params
        in_units = log_params - problem.log_units
        lengths = {unit: float(in_units[self.params[unit] & is_length].min()) for unit in self.on(log_params)}
        value, paying = problem.log_evidence(log_params), 0
        for unit in sorted(lengths, key=lengths.__getitem__, reverse=True):
            fewer, k = self.without([unit], log_params), len(self.on(log_params))
            left = problem.log_evidence(fewer)
            if value - left <= self.owed(k) - self.owed(k - 1):
                log_params, value, paying = fewer, left, 0
            elif (paying := paying + 1) == ENOUGH_PAYING:
                break
        return replace(estimate, log_params=log_params, sift=self.told(problem, log_params, value))

    def without(self, units: Sequence[int], log_params: np.ndarray) -> np.ndarray:
        """Log parameters with these units off."""
        off = np.where(self.problem.kinds == "lengthscale", np.inf, -np.inf)
        return np.where(np.any([self.params[unit] for unit in units], axis=0), off, log_params)

    def owed(self, k: int) -> float:
        return owed_by(k, len(self.names), self.hyper.toll)

    def told(self, problem: Problem, log_params: np.ndarray, value: float) -> SiftReport:
        """The sift's report with what more rows have switched on, all in one step."""
        report, on = self.report, self.on(log_params)
        new = [unit for unit in on if self.names[unit] not in report.active]
        steps = report.steps
        if new:
            gain = value - problem.log_evidence(self.without(new, log_params))
            names = tuple(self.names[unit] for unit in new)
            steps = (*steps, SwitchedOn(names, gain, self.owed(len(on)) - self.owed(len(on) - len(new))))
        active = tuple(self.names[unit] for unit in on)
        close = tuple(each for each in report.close if each[0] not in active)
        columns = [j for unit in on for j in self.columns[unit]]
        slopes = tuple(-np.inf if j in columns else slope for j, slope in enumerate(report.slopes))
        return SiftReport(steps, active, close, slopes)
