"""Numbers as people see them: nothing that rounds to zero has a minus sign, and per cents are written in one way."""

import dataclasses
import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import gpsift as gs
from gpsift.app.cli import terminal_answer
from gpsift.app.html import text

SOURCE = Path(gs.__file__).parent
# Where answers are shown.
ROOMS = ("app", "decomposition", "gp", "relevance", "selection")
# Per cents by Python's own format, as in f"{x:.0%}".
PER_CENT = re.compile(r":[^{}\"']*%\}")
# A fixed number of places, as in f"{x:>9.1f}", or a sign in any case, as in f"{x:+.3g}".
ROUNDED = re.compile(r":([<>]?(?:\+?z?\d*\.(?:\d+|\{[^{}]+\})[f%]|\+z?\.\d+g))\}")


@pytest.fixture(scope="module")
def nearly_equal():
    """A path whose submodels are behind the reference by 0.04 in elpd, which rounds to zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    path = gs.search(X, X[:, 0], model=gs.GP(hyper=gs.Fixed(lengthscale=[1.0, 2.0], signal_var=1.0, noise_var=0.1)))
    behind = path.reference_lpd - 0.04 / path.reference_lpd.size
    return dataclasses.replace(path, lpd=np.tile(behind, (len(path.sizes), 1)))


@pytest.mark.parametrize("room", ROOMS)
def test_numbers_of_fixed_places_are_written_without_a_negative_zero(room):
    for file in sorted((SOURCE / room).rglob("*")):
        if file.suffix in (".py", ".html"):
            plain = [spec for spec in ROUNDED.findall(file.read_text()) if "z" not in spec]
            assert not plain, f"{file}: {plain}, which may read '-0.0'; put a z before the width, as in {{x:z.1f}}"


def test_a_difference_that_rounds_to_zero_has_no_sign_in_a_record(nearly_equal):
    np.testing.assert_allclose(nearly_equal.diff, -0.04)
    assert repr(nearly_equal).count(" 0.0 +- 0.0") == 3
    assert "-0.0" not in repr(nearly_equal)


def test_a_difference_that_rounds_to_zero_has_no_sign_in_the_terminal(nearly_equal):
    console = Console(file=io.StringIO(), width=100)
    terminal_answer._show_path(nearly_equal, console)
    assert console.file.getvalue().count(" 0.0 ± 0.0") == 3
    assert "-0.0" not in console.file.getvalue()


def test_a_number_that_rounds_to_zero_has_no_sign_on_the_page():
    assert text.percent(-0.001) == "0 %"
    assert text.align([-0.001, 5.0]) == ["0.00", "5.00"]
    assert text.value_text(-0.0) == "0"
    assert text.align([-0.01, 5.0]) == ["−0.01", "5.00"]


@pytest.mark.parametrize("room", ROOMS)
def test_per_cents_have_a_space_before_their_sign(room):
    for file in sorted((SOURCE / room).rglob("*.py")):
        found = PER_CENT.findall(file.read_text())
        assert not found, f"{file}: {found}, which reads '10%'; take `percent` of gpsift._utils.text"


def test_a_rate_keeps_its_digits():
    one = np.array([1.0])
    assert "at a rate of 2.5 %." in gs.Discoveries(("a",), one, one, one, 0.025, ("regression",)).told
