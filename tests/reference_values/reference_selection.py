"""Searches, samples, projections, analyses, estimators, and models whose hyperparameters are found or drawn."""

import numpy as np
import pandas as pd
import reference_internals as internals
from reference_data import (
    COUNTS,
    EXPOSURE,
    FEW_MEASURES,
    KERNEL,
    LIKELIHOODS,
    NORMAL_VAR,
    REALS,
    SUCCESSES,
    THREE_CLASSES,
    TRIALS,
    TWO_CLASSES,
    X_NEW,
    N,
    X,
    case,
    predictions,
    prefixed,
    scores,
    sheet,
    stored_name,
)

import gpsift as gs

GIVEN = gs.Fixed(lengthscale=1.5, signal_var=1.4, noise_var=0.1, constant_var=0.3)
LATENT_GIVEN = gs.Fixed(lengthscale=1.5, signal_var=1.4, constant_var=0.3)
# Priors as densities of the parameters themselves, said in full: stored numbers do not move with a default.
MAP = gs.MAP(lengthscale=gs.InverseGamma(1.0, 10.0), noise=gs.HalfT(4.0, 1.0))
MAP_ONCE = MAP.with_one_start()
GROUPS = {"groups": {"both": [0, 2]}, "force": ["x2"]}


def path_values(path):
    found = {
        "order": path.order,
        "elpd": path.elpd,
        "elpd_se": path.elpd_se,
        "diff": path.diff,
        "diff_se": path.diff_se,
        "reference elpd": path.reference_elpd,
        "lpd": path.lpd.T,
        "reference lpd": path.reference_lpd,
        "mean": np.moveaxis(path.mean, 0, -1),
        "proportions": path.proportions,
        # The area under the curve counts pairs of predictions that differ by rounding only.
        **{f"metric {name}": values for name, values in path.metrics.items() if name != "auc"},
        **prefixed("suggested", suggested(path.suggestion)),
    }
    for rule in ("one-se", "negligible", "explained"):
        for baseline in ("reference", "best"):
            found |= prefixed(f"{rule}, {baseline}", suggested(gs.suggest_size(path, rule, baseline=baseline)))
    return found if path.kl is None else {**found, "kl": path.kl}


def suggested(suggestion):
    """Sizes, -1 where none qualifies."""
    return {rule: -1.0 if verdict.size is None else verdict.size for rule, verdict in suggestion.by_rule.items()}


def search_case(section, name, y, measure=None, likelihood="gaussian", hyper=None, **options):
    hyper = (GIVEN if likelihood == "gaussian" else LATENT_GIVEN) if hyper is None else hyper

    @case(section, f"search: {name}")
    def compute():
        model = gs.GP(likelihood=likelihood, hyper=hyper)
        return path_values(internals.search(X, y, measure, model=model, **options))


search_case("fixed", "leave-one-out", REALS)
search_case("fixed", "folds", REALS, NORMAL_VAR, cv=3, seed=1)
search_case("fixed", "an order of all rows", REALS, "ard", cv=3, validate_search=False)
search_case("fixed", "ranked anew", REALS, gs.Derivative(), refit=True)
search_case("fixed", "groups and a forced feature", REALS, **GROUPS)
search_case("fixed", "a category", REALS, "kl", categorical=["x3"], sizes=[0, 1, 3])
search_case("fixed", "other rows", REALS, cv=(X[::2] + 0.1, REALS[::2]))
search_case("fixed", "known noise", REALS, noise_var=np.linspace(0.1, 0.4, N), hyper=LATENT_GIVEN)
search_case("iterated", "probit", TWO_CLASSES, likelihood="bernoulli", cv=3)
search_case("iterated", "softmax", THREE_CLASSES, likelihood="softmax")
search_case("iterated", "poisson", COUNTS, likelihood="poisson", exposure=EXPOSURE)
search_case("iterated", "binomial, folds", SUCCESSES, likelihood="binomial", trials=TRIALS, cv=3)
search_case("fits", "projection", REALS, "projection")
search_case("fits", "maximum a posteriori", REALS, hyper=MAP)


def stability_case(section, name, y, measure=None, likelihood="gaussian", hyper=None, **options):
    hyper = (GIVEN if likelihood == "gaussian" else LATENT_GIVEN) if hyper is None else hyper

    @case(section, f"stability: {name}")
    def compute():
        model = gs.GP(likelihood=likelihood, hyper=hyper)
        found = internals.stability(X, y, measure, model=model, n_splits=4, **options)
        return {"scores": found.scores, "counts": found.counts, "entropy": found.entropy}


stability_case("fixed", "kl", REALS)
stability_case("fixed", "groups", REALS, NORMAL_VAR, groups={"both": [0, 2]}, train_size=20, seed=2)
stability_case("iterated", "binomial, a category", SUCCESSES, likelihood="binomial", trials=TRIALS, categorical=["x3"])
stability_case("fits", "maximum likelihood", REALS, hyper=gs.ML2(starts=2))


def projection_values(fitted):
    two = gs.project(fitted, [0, 1])
    inside = gs.project(fitted, ["x1"], left_out=False)
    path = internals.forward_projection(fitted)
    forced = internals.forward_projection(fitted, force=["x3"], groups={"both": ["x1", "x2"]})
    return {
        "path kl": path.kl,
        "path explained": path.explained,
        "forced kl": forced.kl,
        "inside: kl": inside.kl,
        "inside: kl_empty": inside.kl_empty,
        "two: kl": two.kl,
        "two: kl_empty": two.kl_empty,
        "two: explained": two.explained,
        **prefixed("two", predictions(two.gp, X_NEW[:, list(two.features)])),
        **prefixed("two", scores(two.gp, None, (gs.KL(), NORMAL_VAR))),
    }


def projection_case(likelihood, inference):
    name, y, sizes, params = LIKELIHOODS[likelihood]

    @case("fits", f"projections: {likelihood}, {inference}")
    def compute():
        hyper = gs.Fixed(**KERNEL, **params)
        return projection_values(gs.GP(likelihood=name, inference=inference, hyper=hyper).fit(X, y, **sizes))


projection_case("gaussian", "exact")
projection_case("probit", "ep")
projection_case("logit", "laplace")


def table():
    """Rows with a number, a colour, a yes or no, and idle numbers."""
    random = np.random.RandomState(3)
    colour = random.choice(["red", "green", "blue"], 40)
    frame = pd.DataFrame({"bend": random.normal(size=40), "colour": colour, "sex": random.choice(["f", "m"], 40)})
    frame["idle"] = random.normal(size=40)
    frame["y"] = 2 * np.sin(frame["bend"]) + 2 * (frame["colour"] == "red") + 0.2 * random.normal(size=40)
    frame["kind"] = np.where(frame["y"] > 0.5, "high", "low")
    return frame


def analysis_values(answer):
    found = {
        "selected": -1.0 if answer.selected is None else len(answer.selected),
        **prefixed("path", path_values(answer.path)),
    }
    options = {"groups": answer.groups, "categorical": list(answer.groups)}
    by_var = gs.rank(answer.model, measure=NORMAL_VAR, **options)
    for name, ranking in {**answer.rankings, "VAR": by_var}.items():
        found[f"{name} scores"] = ranking.scores
        if ranking.pointwise is not None:
            found[f"{name} pointwise"] = ranking.pointwise
    if answer.stability is not None:
        found["stability"] = answer.stability.scores
    return {**found, **prefixed("left out", sheet(answer.model))}


@case("fixed", "analysis: regression")
def analysis_of_numbers():
    return analysis_values(internals.analyse(table().drop(columns="kind"), "y", hyper=GIVEN, samples=3))


@case("iterated", "analysis: classes")
def analysis_of_classes():
    return analysis_values(
        internals.analyse(table().drop(columns="y"), "kind", hyper=LATENT_GIVEN, cv=3, measure=NORMAL_VAR)
    )


@case("fits", "analysis: maximum a posteriori")
def analysis_by_default():
    return analysis_values(internals.analyse(table().drop(columns="kind"), "y", hyper=MAP))


@case("fits", "estimators")
def estimators():
    regressor = gs.GPRegressor(hyper=gs.ML2()).fit(X, REALS)
    classifier = gs.GPClassifier(hyper=MAP).fit(X, TWO_CLASSES)
    several = gs.GPClassifier(hyper=MAP).fit(X, THREE_CLASSES)
    mean, sd = regressor.predict(X_NEW, return_std=True)
    selector = gs.GPSelector(regressor).fit(X, REALS)
    return {
        "mean": mean,
        "sd": sd,
        "probabilities": classifier.predict_proba(X_NEW),
        "several": several.predict_proba(X_NEW),
        "support": selector.get_support().astype(float),
        "selected": selector.transform(X_NEW).sum(),
        **scores(regressor, None, FEW_MEASURES),
        **prefixed("classes", scores(classifier, None, FEW_MEASURES)),
        **prefixed("several", scores(several, None, FEW_MEASURES)),
    }


def fit_values(fitted, points):
    return {
        "log evidence": fitted.log_marginal_likelihood,
        **prefixed("left out", sheet(fitted)),
        **prefixed("new", predictions(fitted, points)),
        **scores(fitted, None, FEW_MEASURES),
    }


def fit_case(name, likelihood, hyper, inference="auto", section="fits", **choices):
    kind, y, sizes, _ = LIKELIHOODS[likelihood]

    @case(section, f"fit: {name}")
    def compute():
        fitted = gs.GP(likelihood=kind, hyper=hyper, inference=inference, **choices).fit(X, y, **sizes)
        return fit_values(fitted, X_NEW)


fit_case("gaussian, maximum likelihood", "gaussian", gs.ML2())
fit_case("gaussian, maximum a posteriori", "gaussian", MAP)
fit_case("known noise", "known noise", MAP_ONCE)
fit_case("Matern 5/2 and linear", "gaussian", MAP_ONCE, kernel=gs.Matern52() + gs.Linear(1.0))
fit_case("shared length-scale", "gaussian", MAP_ONCE, kernel=gs.RationalQuadratic(shared=True))
fit_case("in the user's units", "gaussian", MAP_ONCE, standardize=False)
fit_case("probit", "probit", MAP_ONCE)
fit_case("softmax", "softmax", MAP_ONCE)
fit_case("poisson", "poisson", MAP_ONCE)
fit_case("negative binomial", "negative binomial", MAP_ONCE)
fit_case("gamma", "gamma", MAP_ONCE)
fit_case("student-t", "student-t", MAP_ONCE, section="long")  # which has several modes near each other
fit_case("sparse gaussian", "gaussian", MAP_ONCE, gs.Sparse(m=9))
fit_case("sparse poisson", "poisson", MAP_ONCE, gs.Sparse(m=9))


def many_rows(n):
    random = np.random.RandomState(8)
    inputs = random.normal(size=(n, 3))
    latent = np.sin(2.0 * inputs[:, 0]) + 0.5 * inputs[:, 1]
    return inputs, latent + 0.2 * random.normal(size=n), random.poisson(np.exp(latent)).astype(float)


def many_values(n, likelihood, inference):
    inputs, reals, counts = many_rows(n)
    y = reals if likelihood == "gaussian" else counts
    fitted = gs.GP(hyper=gs.ML2(starts=1), likelihood=likelihood, inference=inference).fit(inputs, y)
    found = {"log evidence": fitted.log_marginal_likelihood, "elpd": fitted.quality.elpd}
    for measure in (gs.KL(), NORMAL_VAR, gs.Derivative(), gs.ARD()):
        found[stored_name(measure)] = gs.rank(fitted, inputs[:20], measure).scores
    return {**found, **predictions(fitted, inputs[:8] + 0.05)}


MANY = {
    "sparse": ("gaussian", gs.Sparse(m=60, near_rows=0)),
    "sparse, cells": ("gaussian", gs.Sparse(m=8)),
    "sparse poisson": ("poisson", gs.Sparse(m=15)),
}


def many_case(name):
    @case("searches", f"300 rows, by samples: {name}")
    def by_samples():
        with internals.small_samples():
            return many_values(300, *MANY[name])

    @case("long", f"1500 rows: {name}")
    def all_rows():
        return many_values(1500, *MANY[name])


for name in MANY:
    many_case(name)


@case("searches", "fit: dask collections", "dask.array")
def distributed_fit():
    from dask import array

    inputs, reals, _ = many_rows(300)
    model = gs.GP(hyper=gs.ML2(starts=1), inference=gs.Sparse(m=60))
    with internals.small_samples():
        fitted = model.fit(array.from_array(inputs, chunks=(90, 3)), array.from_array(reals, chunks=90))
    return {
        "log evidence": fitted.log_marginal_likelihood,
        "elpd": fitted.quality.elpd,
        **predictions(fitted, inputs[:8] + 0.05),
        "KL": gs.rank(fitted).scores,
        "VAR": gs.rank(fitted, measure=NORMAL_VAR).scores,
    }


def drawn_case(likelihood, inference="auto"):
    kind, y, sizes, _ = LIKELIHOODS[likelihood]

    @case("sampled", f"drawn hyperparameters: {likelihood}", "nutpie", "arviz")
    def compute():
        hyper = gs.NUTS(draws=12, tune=20, chains=2, keep=5, cores=1, progress=False, prior=MAP_ONCE, target_accept=0.7)
        fitted = gs.GP(likelihood=kind, hyper=hyper, inference=inference).fit(X, y, **sizes)
        return {
            "log params": fitted.trace.posterior["log_params"].values.reshape(24, -1),
            "lpd": fitted.quality.lpd,
            "elpd": fitted.quality.elpd,
            **predictions(fitted, X_NEW),
            **scores(fitted, None, FEW_MEASURES),
        }


drawn_case("gaussian")
drawn_case("known noise")
drawn_case("probit")
drawn_case("poisson")


@case("sampled", "functions and observations")
def functions():
    found = {}
    for likelihood in ("gaussian", "poisson", "softmax"):
        kind, y, sizes, params = LIKELIHOODS[likelihood]
        fitted = gs.GP(likelihood=kind, hyper=gs.Fixed(**KERNEL, **params)).fit(X, y, **sizes)
        found[f"{likelihood} observations"] = fitted.predict(X_NEW).sample(4, seed=1)
        if likelihood != "softmax":
            found[f"{likelihood} functions"] = fitted.sample(X_NEW, 4, seed=1)
    return found
