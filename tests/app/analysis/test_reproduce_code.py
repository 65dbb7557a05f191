"""Code that has the same analysis again."""

import numpy as np
import pandas as pd
import pytest

import gpsift as gs
from gpsift.app.analysis.options import code_of, reproduce_code

CHOICES = [
    gs.MAP(),
    gs.NUTS(draws=100, seed=3),
    gs.Sift(toll=2.0, then=gs.NUTS(chains=2)),
    gs.KL(delta=0.1),
    gs.VAR(conditional="normal"),
    gs.Selection(cv=10, rule="explained"),
    gs.Reading(drop=["it's"], missing="drop"),
]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: type(choice).__name__)
def test_code_of_a_choice_makes_the_same_choice(choice):
    assert repr(eval(code_of(choice), {"gs": gs})) == repr(choice)


def test_a_call_names_the_file_the_target_and_what_was_chosen():
    code = reproduce_code("a 'b'.csv", "y", {"samples": 3, "hyper": gs.MAP(seed=1)})
    begin, call = code.split("\n\n")
    assert begin == "import gpsift as gs"
    assert call == """gs.report("a 'b'.csv", 'y', path='page.html', samples=3, hyper=gs.MAP(seed=1))"""
    assert reproduce_code(pd.DataFrame(), None, {}).endswith("gs.report(table, path='page.html')")


def test_an_analysis_says_how_it_was_made():
    X = np.random.default_rng(0).normal(size=(30, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]})
    hyper = gs.Fixed(lengthscale=1.0, noise_var=0.1)
    found = gs.analyse(table, "y", select=False, hyper=hyper, seed=2, work=gs.Work(progress=False))
    call = found.command.splitlines()[-1]
    expected = (
        "gs.report(table, 'y', path='page.html', select=False, hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1), seed=2)"
    )
    assert call == expected
