"""New rows take the form of the table that a model was fitted to."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift._utils.recipe import CleaningRecipe
from gpsift.app.analysis.saved_model import table_to_inputs, user_columns
from gpsift.app.tables.clean import clean
from gpsift.app.tables.new_rows import apply_recipe
from gpsift.app.tables.steps import RawTable


def messy(n=120, seed=0):
    """Dates, money, holes in a number, a date and a category, many levels, codes, an infinite cell."""
    rng = np.random.default_rng(seed)
    day = pd.Series(pd.date_range("2020-01-01", periods=n, freq="5D"))
    frame = pd.DataFrame(
        {
            "day": day.dt.strftime("%d.%m.%Y"),
            "price": [f"€ {value:.2f}".replace(".", ",") for value in rng.uniform(1, 9, n)],
            "size": rng.normal(size=n),
            "shop": rng.choice(["a", "b", "c"], n),
            "place": [f"p{k}" for k in np.minimum(rng.geometric(0.2, n), 33 + np.arange(n) % 20)],
            "code": rng.integers(1, 4, n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    frame.loc[5, "size"] = np.inf
    frame.loc[::9, "shop"] = np.nan
    frame.loc[3::11, "day"] = None
    frame["y"] = 0.02 * np.arange(n) + 0.3 * rng.normal(size=n)
    return frame


@pytest.mark.parametrize("missing", ["auto", "mean"])
def test_the_table_of_the_fit_takes_the_form_that_it_had(missing):
    frame = messy()
    prepared = clean(RawTable(frame), "y", categorical=["code"], missing=missing).table
    again = apply_recipe(frame.drop(columns="y"), list(prepared.X.columns), prepared.recipe).X
    assert list(again.columns) == list(prepared.X.columns)
    assert_allclose(again.loc[prepared.X.index].to_numpy(), prepared.X.to_numpy(), rtol=1e-12, atol=1e-12)
    assert {"size", "day"} <= set(prepared.recipe.fills)


def test_rare_levels_are_joined_as_before():
    frame = messy(200).drop(columns=["day", "shop"])
    frame["place"] = [f"p{k % 28:02d}" if k < 168 else f"rare{k}" for k in range(200)]
    prepared = clean(RawTable(frame), "y").table
    assert "place" in prepared.recipe.levels
    new = frame.iloc[:4].assign(place=["p00", "never seen", "rare199", "p00"])
    tidied = apply_recipe(new, list(prepared.X.columns), prepared.recipe)
    again = tidied.X
    (joined,) = [step for step in tidied.steps if step.kind == "levels-joined-as-before"]
    assert (joined.columns, joined.count) == (("place",), 2)
    assert joined.finding.detail.startswith(
        "2 values of 'place', rare in the table of the fit or new, such as 'never seen'"
    )
    assert_array_equal(again["place=(other)"], [0, 1, 1, 0])
    assert_array_equal(again["place=p00"], [1, 0, 0, 1])


def test_time_is_counted_from_the_first_date_of_the_fit():
    frame = messy()
    prepared = clean(RawTable(frame), "y").table
    again = apply_recipe(frame.iloc[50:60].drop(columns="y"), list(prepared.X.columns), prepared.recipe).X
    assert_allclose(again["day: days"], prepared.X["day: days"].iloc[50:60])


def test_every_step_with_a_new_table_is_told():
    frame = messy().assign(sex=["f", "m"] * 60)
    prepared = clean(RawTable(frame), "y", categorical=["code"]).table
    new = frame.iloc[:30].assign(shop=["a", "never seen", *frame["shop"][2:30]], sex="x", id=range(30))
    new["size"] = [np.nan, np.inf, *frame["size"][2:30]]
    features = list(prepared.X.columns)
    told = {step.kind: step.finding for step in apply_recipe(new, features, prepared.recipe).steps}
    assert told["columns-set-aside"].data["columns"] == ("y", "id")
    assert told["numbers-read"].data["columns"] == ("price",)
    assert told["infinite-emptied"].data["count"] == 2  # one was in the first table
    fills = told["filled-as-before"].data["fills"]
    assert fills["size"] == prepared.recipe.fills["size"]
    assert told["filled-as-before"].data["count"] == int(
        new["size"].replace(np.inf, np.nan).isna().sum() + new["day"].isna().sum()
    )
    assert f"'size' by {fills['size']:.4g}" in told["filled-as-before"].detail
    assert "size missing" in told["missing-marked"].data["columns"]
    assert told["filled-with-level"].data["column"] == "shop"
    assert told["dates-taken-apart"].data["parts"] == {"day": ["days", "month", "weekday"]}
    unknown = [
        step.finding for step in apply_recipe(new, features, prepared.recipe).steps if step.kind == "levels-unknown"
    ]
    assert [(each.data["columns"], each.data["count"], each.data["taken_for"]) for each in unknown] == [
        (("shop",), 1, None),
        (("sex",), 30, "f"),
    ]
    assert "such as 'never seen': taken for none of the levels that it had." in unknown[0].detail
    assert unknown[1].detail.endswith("such as 'x': taken for 'f'.")


def test_nothing_is_told_of_a_table_as_the_model_has_it():
    frame = pd.DataFrame({"a": np.arange(20.0), "sex": ["f", "m"] * 10, "y": np.arange(20.0) ** 2})
    prepared = clean(RawTable(frame), "y").table
    assert apply_recipe(frame[["a", "sex"]], list(prepared.X.columns), prepared.recipe).steps == ()
    # a file that does not say what the second level was
    old = replace(prepared.recipe, base_levels={})
    assert apply_recipe(frame[["a", "sex"]], list(prepared.X.columns), old).steps == ()


def test_what_was_not_learned_is_refused():
    features, recipe = ["a", "b"], CleaningRecipe()
    table = pd.DataFrame({"a": [1.0, np.nan], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'a' has 1 missing values; .* has not learned what stands for them"):
        apply_recipe(table, features, recipe)
    with pytest.raises(ValueError, match=r"fitted on the column 'b', which the table lacks; it has a\."):
        apply_recipe(table[["a"]].fillna(0.0), features, recipe)
    with pytest.raises(ValueError, match=r"'b' holds texts such as 'x'; the model was fitted on numbers"):
        apply_recipe(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), features, recipe)
    with pytest.raises(ValueError, match=r"'day' holds no dates, such as 'x'"):
        apply_recipe(
            pd.DataFrame({"day": ["x", "y"]}), ["day: days"], CleaningRecipe(first_dates={"day": "2020-01-01"})
        )


def test_a_saved_model_keeps_what_was_done(tmp_path):
    frame = messy().drop(columns="place")
    hyper = gs.Fixed(lengthscale=3.0, noise_var=0.1)
    found = gs.analyse(frame, "y", select=False, hyper=hyper, work=gs.Work(progress=False))
    found.save_model(tmp_path / "model.gpsift")
    model = gs.load(tmp_path / "model.gpsift")
    assert model.inputs.recipe == found.recipe
    again = table_to_inputs(RawTable(frame.drop(columns="y")), model).X.loc[found.X.index]
    assert_allclose(model.predict(again).mean, found.model.predict(found.X).mean)
    units = user_columns(model)
    assert set(units.groups) == {"day", "shop"}
    assert set(units.categorical) == {"shop"}
    bare = replace(model, inputs=replace(model.inputs, recipe=None))
    with pytest.raises(ValueError, match=r"lacks|missing values or texts"):
        table_to_inputs(RawTable(frame.drop(columns="y")), bare)
