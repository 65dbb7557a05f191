"""Summarise data and model: their kinds and sizes, and how well the model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.analysis.analysis import describe_removed, describe_selection
from gpsift.app.html.text import count, join_tags, number, percent, tag, use_minus, value_text

TASKS = {"regression": "a number (regression)", "classification": "a class (classification)", "counts": "a count"}
LIKELIHOODS = {
    "Gaussian": "normal noise",
    "StudentT": "Student-t noise",
    "Gamma": "gamma",
    "Probit": "Bernoulli, probit link",
    "Logit": "Bernoulli, logit link",
    "Binomial": "binomial",
    "Poisson": "Poisson",
    "NegativeBinomial": "negative binomial",
    "Softmax": "several classes, softmax",
}
INFERENCES = {
    "exact": "exact",
    "ep": "expectation propagation",
    "laplace": "Laplace's method",
    "sparse": "sparse, with inducing points",
}
# Calibration is judged by this central part of the predictive distribution.
LEVEL = 0.9
# A difference in elpd is clear if it is this many standard errors away from 0.
CLEAR = 2.0


@dataclass(frozen=True)
class Line:
    """A line of the summary: a name, its value, and a remark."""

    what: str
    value: str | Markup
    remark: str | Markup = ""


def data_lines(analysis: Analysis) -> list[Line]:
    """Return the lines about the data and the fitted model."""
    model, names, classes = analysis.model, analysis.categories, analysis.classes
    members = getattr(model, "members", ())
    one: Any = members[0] if members else model
    categories = Markup("{} with categories: {}").format(len(names), join_tags(names, 6)) if names else ""
    target: str | Markup
    if classes:
        target = Markup("{}: {}").format(count(len(classes), "class", "classes"), join_tags(classes, 8))
    else:
        low, high = value_text(float(min(analysis.y))), value_text(float(max(analysis.y)))
        target = f"{TASKS[analysis.task]}, {low} to {high}"
    kind = type(one.likelihood).__name__
    noise = LIKELIHOODS.get(kind, kind) + (" of known variance" if one.likelihood.knows_noise else "")
    report, inducing = one.report, ""
    if report.n_inducing or report.n_blocks:
        inducing = f"{count(report.n_inducing, 'point')} for all rows"
        if report.n_blocks:
            inducing = f"by the neighbours of {count(report.n_blocks, 'block')} of rows"
        if report.n_rows_searched:
            inducing += f"; hyperparameters from {count(report.n_rows_searched, 'row')}"
    lines = [
        Line("Source", analysis.source),
        Line("Rows", f"{len(analysis.X):,}"),
        Line("Columns", f"{analysis.n_columns:,}", categories),
        Line("Target", tag(analysis.target), target),
        Line("Kernel", one.kernel.title),
        Line("Likelihood", noise),
        Line("Inference", INFERENCES.get(one.inference, one.inference), inducing),
    ]
    if analysis.switched_on is not None:
        steps = analysis.switched_on
        n_on = len({column for step in steps if step.selected for column in step.columns})
        remark = " ".join(filter(None, [describe_selection(steps, None), describe_removed(steps)]))
        lines.append(Line("Switched on", count(n_on, "column"), remark))
    if members:
        found = model.diagnostics  # type: ignore[union-attr]  # a model with members has draws
        remark = f"r-hat {found['r_hat']:z.2f}, effective sample size {found['ess']:z.0f}"
        lines.append(Line("Hyperparameters", f"{len(members)} draws from their posterior", remark))
    return lines


def quality_lines(analysis: Analysis) -> list[Line]:
    """Return the lines about predictions of rows that were left out one at a time."""
    quality = analysis.model.quality
    lines = []
    if analysis.task == "classification":
        right, commonest = analysis.accuracy
        lines.append(Line("Classes right", percent(right), f"{percent(commonest)} by always naming the commonest"))
        probability, empty = (number(each, 2) for each in quality.mean_probability)
        lines.append(Line("Probability of what was seen", probability, f"{empty} without inputs (geometric mean)"))
    else:
        meaning = "1 minus squared error over that of one value for all"
        remark = "worse than one value for all rows" if quality.loo_r2 < 0 else meaning
        lines.append(Line("Variance explained (R²)", percent(quality.loo_r2), remark))
        level, inside = percent(LEVEL), percent(quality.coverage(LEVEL))
        lines.append(Line(f"Inside the {level} interval", inside, f"of the rows; {level} if calibrated"))
    difference, error = quality.elpd_diff, quality.diff_se
    remark = "the inputs help, by more than two standard errors"
    if difference <= 0:
        remark = "the inputs do not help"
    elif difference < CLEAR * error:
        remark = "the inputs may help; the difference is within two standard errors"
    lines.append(Line("elpd against no inputs", use_minus(f"{difference:+z.1f} ± {error:z.1f}"), remark))
    return lines


def quality_sentence(analysis: Analysis) -> str:
    """Say how well the model predicts, as the end of a sentence."""
    quality = analysis.model.quality
    if analysis.task == "classification":
        right, commonest = analysis.accuracy
        return (
            f"and the model names the right class for {percent(right)} of the rows that were left out "
            f"({percent(commonest)} by always naming the commonest)"
        )
    if quality.loo_r2 <= 0:
        return "and the model's mean predicts left-out rows no better than one value for all (R² below 0)"
    return f"and the model explains {percent(quality.loo_r2)} of the variance of rows that were left out"
