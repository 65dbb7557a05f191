"""Each rule on tables made by hand: one that satisfies it, and ones that just fail."""

import numpy as np
import pandas as pd
import pytest

from gpsift.paper.reproduce import claims
from gpsift.paper.reproduce.experiments import Tables


def toy_table(relative):
    """{(law, p): {method: relative scores}} -> the table of run_toys, two data sets around the means."""
    rows = []
    for (law, p), methods in relative.items():
        for method, values in methods.items():
            for data_set, factor in ((0, 0.9), (1, 1.1)):
                rows += [
                    {
                        "law": law,
                        "p": p,
                        "data_set": data_set,
                        "method": method,
                        "feature": j + 1,
                        "relevant": j < 8,
                        "score": factor * value,
                    }
                    for j, value in enumerate(values)
                ]
    return pd.DataFrame(rows)


def good_toys():
    idle = {"ARD": 0.5, "KL": 0.04, "VAR": 0.005}
    many = {method: [1.0] * 8 + [value] * 42 for method, value in idle.items()}
    return {
        ("uniform", 8): {
            "ARD": [0.02, 0.03, 0.05, 0.1, 0.5, 0.6, 0.8, 1.0],
            "KL": [0.45, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9, 1.0],
            "VAR": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0],
        },
        ("normal", 8): {
            "ARD": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0],
            "KL": [0.75] * 7 + [1.0],
            "VAR": [0.85] * 7 + [1.0],
        },
        ("uniform", 50): many,
        ("normal", 50): many,
    }


@pytest.mark.parametrize(
    ("where", "method", "feature", "value", "broken"),
    [
        (None, None, None, None, None),
        (("uniform", 8), "ARD", 3, 0.11, "1"),
        (("uniform", 8), "KL", 0, 0.44, "1"),
        (("uniform", 8), "VAR", 1, 0.19, "1"),
        (("normal", 8), "KL", 2, 0.69, "2"),
        (("normal", 8), "VAR", 2, 0.79, "2"),
        (("normal", 8), "ARD", 0, 0.36, None),  # feature 2 still at 0.3
        (("normal", 50), "KL", 30, 0.06, "3"),
        (("uniform", 50), "VAR", 49, 0.02, "3"),
        (("uniform", 50), "ARD", 49, 0.9, None),
    ],
)
def test_toys(where, method, feature, value, broken):
    toys = good_toys()
    if where is not None:
        toys[where] = {name: list(values) for name, values in toys[where].items()}
        toys[where][method][feature] = value
    verdicts = {verdict.claim: verdict.holds for verdict in claims.toy_claims(toy_table(toys))}
    assert verdicts == {claim: claim != broken for claim in ("1", "2", "3")}


@pytest.mark.parametrize(("change", "holds"), [(0.009, True), (0.011, False)])
def test_steps(change, holds):
    rows = [
        {"delta": delta, "data_set": 0, "feature": j, "score": 1 + (change if (delta, j) == (1e-7, 2) else 0)}
        for delta in (1e-9, 1e-7, 1e-4, 1e-2, 1.0)
        for j in (1, 2)
    ]
    rows[0]["score"] = 7.0  # outside the range, where the claim says nothing
    (verdict,) = claims.delta_claims(pd.DataFrame(rows))
    assert verdict.holds is holds


def splits(gains, *, n_splits=20, metric="mlpd", noise=0.01, sizes=6):
    """Curves where KL and VAR gain so much over ARD at each size."""
    rng = np.random.default_rng(0)
    rows = []
    for split in range(n_splits):
        for size in range(1, sizes + 1):
            base = rng.normal()
            for method in ("ARD", "KL", "VAR"):
                gain = 0.0 if method == "ARD" else gains.get(size, 0.0) + noise * rng.normal()
                point = {"mlpd": base, "mse": base, **dict.fromkeys(claims.CLASS_METRICS, base), metric: base + gain}
                rows.append({"split": split, "method": method, "size": size, **point})
    features = ["superplasticizer", "coarse_aggregate", "RM", "LSTAT", "DIS", "NOX"]
    ranks = pd.DataFrame(
        [
            {"split": s, "method": m, "feature": f, "score": 0.0, "rank": r}
            for s in range(n_splits)
            for m in ("ARD", "KL", "VAR")
            for r, f in enumerate(features, start=1)
        ]
    )
    return Tables(ranks, pd.DataFrame(rows), pd.DataFrame(), n_train=80, n_test=23)


@pytest.mark.parametrize(
    ("gains", "holds"),
    [
        ({1: 0.1}, True),
        ({4: 0.1}, True),
        ({5: 0.1}, False),  # too late
        ({1: 0.1, 6: -0.1}, False),  # a loss
        ({1: 0.001}, False),  # within the interval
        ({}, False),
    ],
)
def test_curves(gains, holds):
    by_metric = {v.claim: v.holds for v in claims.curve_claims("concrete", splits(gains))}
    assert by_metric["5 concrete mlpd"] is holds


@pytest.mark.parametrize(("gain", "holds", "remarks"), [(0.3, True, False), (0.05, False, True), (0.0, False, False)])
def test_a_gain_that_only_overlapping_splits_show_is_remarked_upon(gain, holds, remarks):
    (verdict,) = [
        v
        for v in claims.curve_claims("concrete", splits({2: gain}, n_splits=60, noise=0.06))
        if v.claim == "5 concrete mlpd"
    ]
    assert verdict.holds is holds
    assert bool(verdict.remark) is remarks
    if gain:
        assert verdict.numbers["KL"]["by uncorrected intervals"].startswith("gain at 2")


def test_squared_errors_gain_downwards():
    verdicts = {v.claim: v.holds for v in claims.curve_claims("housing", splits({2: -0.1}, metric="mse"))}
    assert verdicts["5 housing mse"] is True
    verdicts = {v.claim: v.holds for v in claims.curve_claims("housing", splits({2: 0.1}, metric="mse"))}
    assert verdicts["5 housing mse"] is False


def test_classes_have_their_own_metrics():
    verdicts = claims.curve_claims("pima", splits({1: 0.1}, metric="f1"))
    assert [v.claim for v in verdicts] == [f"6 pima {m}" for m in ("mlpd", *claims.CLASS_METRICS)]
    assert {v.claim for v in verdicts if v.holds} == {"6 pima f1"}


def with_orders(tables, orders):
    """{method: list of orders} -> the table of scores."""
    rows = [
        {"split": split, "method": method, "feature": feature, "score": 0.0, "rank": place + 1}
        for method, lists in orders.items()
        for split, order in enumerate(lists)
        for place, feature in enumerate(order)
    ]
    return Tables(pd.DataFrame(rows), tables.curves, tables.reference, tables.n_train, tables.n_test)


def test_variability_of_the_first_choice():
    steady, loose = [list("abcd")] * 4, [list("abcd"), list("bacd"), list("cabd"), list("dabc")]
    base = splits({1: 0.1, 2: 0.05}, n_splits=4, sizes=4)
    unsteady_ard = with_orders(base, {"ARD": loose, "KL": steady, "VAR": steady})
    steady_ard = with_orders(base, {"ARD": steady, "KL": loose, "VAR": steady})
    found = {v.claim: v for v in claims.variability_claims({"housing": unsteady_ard, "concrete": unsteady_ard})}
    assert found["7 first choice"].holds
    assert "concrete" not in found["7 first choice"].numbers
    assert found["7 concrete"].holds
    found = {v.claim: v.holds for v in claims.variability_claims({"housing": steady_ard, "crime": unsteady_ard})}
    assert not found["7 first choice"]


def test_low_variability_goes_with_gain():
    orders = {
        "ARD": [list("abcd"), list("bacd"), list("cabd"), list("dabc")],
        "KL": [list("abcd")] * 4,
        "VAR": [list("abcd")] * 4,
    }
    gains = with_orders(splits({1: 0.4, 2: 0.2, 3: 0.2, 4: 0.1}, n_splits=4, sizes=4), orders)
    losses = with_orders(splits({1: -0.4, 2: -0.2, 3: -0.2, 4: -0.1}, n_splits=4, sizes=4), orders)
    assert {v.claim: v.holds for v in claims.variability_claims({"housing": gains})}["7 gain"]
    assert not {v.claim: v.holds for v in claims.variability_claims({"housing": losses})}["7 gain"]


def test_first_and_last_features():
    first = {"KL": [["RM", "LSTAT", "DIS", "NOX"]] * 4, "VAR": [["RM", "LSTAT", "DIS", "NOX"]] * 4}
    spread = [
        ["LSTAT", "RM", "DIS", "NOX"],
        ["DIS", "RM", "LSTAT", "NOX"],
        ["NOX", "RM", "DIS", "LSTAT"],
        ["RM", "DIS", "NOX", "LSTAT"],
    ]
    tables = splits({})
    (verdict,) = claims.feature_claims("housing", with_orders(tables, {**first, "ARD": spread}))
    assert verdict.holds
    (verdict,) = claims.feature_claims("housing", with_orders(tables, {**first, "ARD": spread[:1] * 4}))
    assert not verdict.holds  # ARD always the same
    (verdict,) = claims.feature_claims("housing", with_orders(tables, {**first, "VAR": spread, "ARD": spread}))
    assert not verdict.holds
    good = [["cement", "water", "superplasticizer", "coarse_aggregate"]] * 9 + [
        ["cement", "superplasticizer", "water", "coarse_aggregate"]
    ]
    (verdict,) = claims.feature_claims("concrete", with_orders(tables, dict.fromkeys(("ARD", "KL", "VAR"), good)))
    assert verdict.holds
    (verdict,) = claims.feature_claims("concrete", with_orders(tables, dict.fromkeys(("ARD", "KL", "VAR"), good[4:])))
    assert not verdict.holds
    assert claims.feature_claims("crime", tables) == []


def test_pointwise_and_cost():
    x = np.linspace(-1, 1, 50)
    points = pd.concat(
        [
            pd.DataFrame({"feature": 1, "x": x, "relevance": 1.0 + 0.1 * x, "slope": 1.0}),
            pd.DataFrame({"feature": 8, "x": x, "relevance": np.abs(x) + 0.1, "slope": np.abs(x)}),
        ]
    )
    assert claims.pointwise_claims(points)[0].holds
    points.loc[points.feature == 1, "relevance"] = 1.0 + x
    assert not claims.pointwise_claims(points)[0].holds
    rows = [
        {"method": m, "n": n, "p": p, "seconds": 1e-9 * n**e * p}
        for m, e in (("KL", 2.0), ("VAR", 2.2))
        for n, p in ((100, 8), (200, 8), (300, 8), (300, 4), (300, 16))
    ]
    (verdict,) = claims.cost_claims(pd.DataFrame(rows))
    assert verdict.holds
    assert verdict.numbers["VAR, n"] == pytest.approx(2.2)
    assert verdict.numbers["KL, p"] == pytest.approx(1.0)
    for row in rows:
        row["seconds"] *= row["n"] if row["method"] == "VAR" else 1
    assert not claims.cost_claims(pd.DataFrame(rows))[0].holds
