"""Rules that suggest a size, on curves made by hand."""

import numpy as np
import pytest

import gpsift as gs
from gpsift.selection.path import Path


def made(elpd_by_size, *, noise=0.0, n=100, kl=None, validated=False, level=0.0):
    """A path whose submodels differ from the reference by given sums, with some spread between rows."""
    rng = np.random.default_rng(0)
    reference = rng.normal(size=n) + level / n
    wobble = rng.normal(size=n)
    wobble -= wobble.mean()
    lpd = np.array([reference + diff / n + noise * wobble for diff in elpd_by_size])
    lpd[-1] = reference
    sizes = np.arange(len(lpd))
    p = len(lpd) - 1
    return Path(
        measure="KL()",
        names=tuple(f"x{j + 1}" for j in range(p)),
        members=tuple((f"x{j + 1}",) for j in range(p)),
        order=np.arange(p),
        sizes=sizes,
        scheme="leave-one-out",
        validated=validated,
        rows=np.arange(n),
        y=np.zeros(n),
        lpd=lpd,
        reference_lpd=reference,
        mean=np.zeros_like(lpd),
        reference_mean=np.zeros(n),
        metrics={"rmse": np.zeros(len(lpd))},
        reference_metrics={"rmse": 0.0},
        kl=kl,
    )


def test_one_standard_error():
    # sd of the differences is about 1, so the standard error of their sum is about 10
    path = made([-100, -30, -9, -5, 0], noise=1.0)
    suggestion = gs.suggest_size(path)
    assert path.diff_se[2] == pytest.approx(10, rel=0.2)
    assert suggestion.size == 2
    assert suggestion.rule == "one-se"
    assert suggestion.features == ("x1", "x2")
    assert "one standard error" in suggestion.reason
    assert "2 of 4" in suggestion.reason


def test_a_hair_is_no_difference():
    path = made([-100, -0.05, -0.05, 0])
    assert path.diff_se[1] == pytest.approx(0.0, abs=1e-9)
    assert gs.suggest_size(path).size == 1
    assert gs.suggest_size(made([-100, -0.2, -0.05, 0])).size == 2


def test_of_thousands_of_nats_a_hair_is_more():
    assert gs.suggest_size(made([-1000.0, -0.25, 0.0], level=3000.0)).size == 1
    assert gs.suggest_size(made([-1000.0, -0.35, 0.0], level=3000.0)).size == 2


def test_negligible_difference():
    path = made([-100, -30, -9, -3.9, 0])
    assert gs.suggest_size(path, "negligible").size == 3
    assert gs.suggest_size(path, "negligible", negligible=10).size == 2


def test_share_of_what_the_reference_gains():
    path = made([-100, -30, -9, -4, 0])
    assert gs.suggest_size(path, "explained").size == 3  # 96 %
    assert gs.suggest_size(path, "explained", share=0.7).size == 1
    assert gs.suggest_size(path, "explained", share=0.701).size == 2


def test_share_of_divergence_where_there_is_one():
    path = made([-100, -90, -80, -70, 0], kl=np.array([50.0, 10.0, 2.0, 0.1, 0.0]))
    assert gs.suggest_size(path, "explained").size == 2
    assert "KL divergence" in gs.suggest_size(path, "explained").reason


def test_the_empty_model_is_an_answer():
    path = made([-1, 0, 0], noise=0.5)
    for rule in ("one-se", "negligible"):
        suggestion = gs.suggest_size(path, rule)
        assert suggestion.size == 0
        assert suggestion.features == ()
        assert suggestion.reason.startswith("no feature is needed: the empty model is")
    worse = made([3, 0, 0])
    assert gs.suggest_size(worse, "explained").size == 0
    assert "gains nothing" in gs.suggest_size(worse, "explained").reason


def overfitted(validated=True):
    """Size 2 predicts far better than the reference; the empty model is a little better than it, too."""
    return made([5, -20, 60, 30, 0], noise=0.3, validated=validated)


@pytest.mark.parametrize("rule", ["one-se", "negligible", "explained"])
def test_a_reference_that_overfits_is_no_yardstick(rule):
    suggestion = gs.suggest_size(overfitted(), rule)
    assert suggestion.size == 2
    assert "the best submodel (size 2, better than the reference by 60.0 +- 2.9)" in suggestion.reason
    assert gs.suggest_size(overfitted(), rule, baseline="reference").size == 0


@pytest.mark.parametrize("rule", ["one-se", "negligible", "explained"])
def test_a_path_that_chose_by_its_own_rows_proves_nothing(rule):
    assert gs.suggest_size(overfitted(validated=False), rule).size == 0
    assert gs.suggest_size(overfitted(validated=False), rule, baseline="best").size == 2


def test_a_submodel_that_may_be_better_by_chance_is_no_yardstick():
    path = made([-100, -6, 10, 0, 0], noise=1.0, validated=True)  # 10 +- 10
    assert gs.suggest_size(path, "negligible").size == 2
    assert "the reference" in gs.suggest_size(path).reason
    assert gs.suggest_size(path).size == 1
    assert "the best submodel" in gs.suggest_size(path, baseline="best").reason
    assert gs.suggest_size(path, baseline="best", rule="negligible").size == 2


def test_differences_to_a_submodel_are_paired():
    path = overfitted()
    diff, se = path.elpd_differences(2)
    np.testing.assert_allclose(diff, path.elpd - path.elpd[2])
    np.testing.assert_allclose(se, np.std(path.lpd - path.lpd[2], axis=1, ddof=1) * 10, atol=1e-12)
    assert se[2] == 0


def test_no_size_is_an_answer():
    path = made([-100, -60, -50, 0])
    short = Path(**{**vars(path), "sizes": path.sizes[:-1], "lpd": path.lpd[:-1]})
    for rule in ("one-se", "negligible", "explained"):
        suggestion = gs.suggest_size(short, rule)
        assert suggestion.size is None
        assert suggestion.features == ()
    assert "no size qualifies" in repr(gs.suggest_size(short))


def test_all_rules_are_shown():
    text = repr(gs.suggest_size(made([-100, -30, -9, -5, 0]), "negligible"))
    assert all(rule in text for rule in ("one-se", "* negligible", "explained"))
    assert "size 4 by the rule 'negligible'" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "`rule`"),
        ({"baseline": "worst"}, "`baseline`"),
        ({"share": 0}, "`share`"),
        ({"share": 2}, "`share`"),
        ({"negligible": 0}, "positive"),
    ],
)
def test_bad_choices_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gs.suggest_size(made([-1, 0]), **options)
