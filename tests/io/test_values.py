"""Values of any nesting through JSON and back, and what is refused on the way."""

import json
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from storage_cases import assert_same

import gpsift as gs
from gpsift.io.archive import CorruptFile
from gpsift.io.coding import SCALARS, Decoder, Encoder
from gpsift.kernels import SquaredExponential
from gpsift.selection.path import Baseline

numbers = st.one_of(st.integers(), st.floats(), st.booleans())
scalars = st.sampled_from([np.dtype(scalar) for name, scalar in SCALARS.items() if name != "str"]).flatmap(
    lambda dtype: hnp.arrays(dtype, ()).map(lambda array: array[()])
)
leaves = st.one_of(
    st.none(),
    numbers,
    st.text(st.characters()),
    scalars,
    st.text().map(np.str_),
    hnp.scalar_dtypes()
    .filter(lambda dtype: dtype.kind in "biufU" and dtype.itemsize <= 8)
    .flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)))
    .map(lambda array: array.astype(array.dtype.newbyteorder("="))),
    st.builds(Baseline, st.none() | st.integers(), st.text()),
)
keys = st.one_of(st.text(), st.integers(), st.tuples(st.integers(), st.text()))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=12,
)


def through_json(value):
    encoder = Encoder()
    coded = encoder.encode(value, "value")
    text = json.dumps({"value": coded, "objects": encoder.objects}, allow_nan=False)
    read = json.loads(text)
    decoder = Decoder(encoder.arrays.__getitem__)
    for record in read["objects"]:
        decoder.add(record)
    return decoder.decode(read["value"])


@given(values)
def test_values_come_back_the_same(value):
    assert_same(through_json(value), value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 0.1, 2**70, "\ud800", ""])
def test_numbers_and_text_that_json_makes_hard(value):
    assert_same(through_json(value), value)


def test_one_thing_met_twice_is_one_thing_again():
    kernel, array = SquaredExponential(), np.arange(3.0)
    first, second, a, b = through_json([kernel, kernel, array, array])
    assert first is second
    assert a is b


def test_equal_things_stay_apart():
    first, second = through_json([np.zeros(2), np.zeros(2)])
    assert first is not second


@dataclass(frozen=True)
class OwnKernel(SquaredExponential):
    pass


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        1j,
        OrderedDict(),
        lambda: 0,
        print,
        OwnKernel(),
        np.ma.array([1.0]),
        np.array([None]),
        np.zeros(2, "c16"),
        np.zeros(2, "datetime64[s]"),
        np.zeros(2, [("a", float)]),
        np.longdouble(1),
        np.zeros(2, np.longdouble),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold_is_refused_with_its_place(value, tmp_path):
    ranking = gs.Ranking("KL()", np.ones(1), None, ("a",), "", np.ones((1, 1)), np.arange(1), details={"x": (value,)})
    with pytest.raises(TypeError, match=r"Ranking\.details\['x'\]\[0\] is"):
        ranking.save(tmp_path / "ranking.gpsift")
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_a_kernel_of_ones_own_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    gp = gs.GP(OwnKernel(), gs.Fixed(noise_var=0.1)).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"FittedGP\.inferred\.posterior\.kernel is of type .*OwnKernel, which cannot"):
        gp.save(tmp_path / "model.gpsift")


@pytest.mark.parametrize(
    ("thing", "advice"),
    [(3, "Models and answers can"), ({}, "Models and answers can"), (gs.KL(), "Models"), (gs.Ranking, "Models")],
)
def test_what_is_no_model_or_answer_is_refused(thing, advice, tmp_path):
    with pytest.raises(TypeError, match=f"cannot be saved. {advice}"):
        gs.save(thing, tmp_path / "thing.gpsift")


def test_an_estimator_is_told_what_to_save(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    estimator = gs.GPRegressor(hyper=gs.Fixed(noise_var=0.1)).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="Save its `gp_`"):
        gs.save(estimator, tmp_path / "model.gpsift")


@pytest.mark.parametrize(
    "coded",
    [
        {},
        {"tuple": [], "array": "arrays/0.npy"},
        {"set": []},
        {"tuple": "ab"},
        {"tuple": {"tuple": []}},
        {"mapping": [[1]]},
        {"mapping": [[[1], 2]]},
        {"mapping": {"a": 1}},
        {"float": "1.0"},
        {"float": ["nan"]},
        {"numpy": ["object", 1]},
        {"numpy": ["float64", "1"]},
        {"numpy": ["float64", 1]},
        {"numpy": ["int8", 300]},
        {"numpy": ["bool", 1]},
        {"numpy": "float64"},
        {"array": 0},
        {"array": ["arrays/0.npy"]},
        {"object": 0},
        {"object": -1},
        {"object": True},
        {"object": "a"},
    ],
    ids=str,
)
def test_values_of_another_form_are_refused(coded):
    with pytest.raises(CorruptFile):
        Decoder({}.__getitem__).decode(coded)


KNOWN = {"rule": "one-se", "features": {"tuple": []}}


def suggestion(**changes):
    return {"class": "Suggestion", "fields": {**KNOWN, "by_rule": {"mapping": []}}, **changes}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (suggestion(**{"class": "os.system"}), "of the class 'os.system', which this gpsift does not know"),
        (suggestion(**{"class": "gpsift.results.Suggestion"}), "does not know"),
        (suggestion(**{"class": ["Suggestion"]}), "does not know"),
        (suggestion(fields=KNOWN), "a Suggestion, lacks the fields by_rule"),
        (
            suggestion(fields={**KNOWN, "by_rule": 1, "b": 1, "a": 2}),
            r"fields that this gpsift does not know \(a newer one may\): a, b",
        ),
        (suggestion(fields=[]), r"\[\] stands where a dict is expected"),
        (suggestion(more=1), "has no class and fields"),
        ("Suggestion", "has no class and fields, but is 'Suggestion'"),
        (suggestion(fields={**KNOWN, "by_rule": {"object": 0}}), "refers to object 0, which is not before it"),
        ({"class": "prior.HalfT", "fields": {"df": -1.0}}, "impossible values .*must be positive"),
        ({"class": "prior.HalfT", "fields": {"df": "4"}}, "impossible values"),
    ],
)
def test_objects_of_another_form_are_refused(record, message):
    with pytest.raises(CorruptFile, match=message):
        Decoder({}.__getitem__).add(record)


def test_fields_that_a_file_lacks_take_their_defaults():
    """So that a class can get a field without a new version of the format."""
    prior = Decoder({}.__getitem__).add({"class": "prior.HalfT", "fields": {"scale": 2.0}})
    assert prior == gs.HalfT(scale=2.0)
