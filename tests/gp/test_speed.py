"""Up to how many rows "auto" is exact: the speed of the machine, coarse steps, memory, and what a user fixes."""

import numpy as np
import pytest

import gpsift as gs
from gpsift.gp import choose_inference
from gpsift.likelihoods import Gaussian

HOST = np.empty(0)


@pytest.fixture
def timed(monkeypatch):
    """Says what a factorisation takes, in the place of the clock."""
    monkeypatch.delenv(choose_inference.ROWS_VARIABLE, raising=False)
    monkeypatch.setattr(choose_inference, "available_bytes", lambda: None)

    def set_seconds(seconds):
        monkeypatch.setattr(choose_inference, "factor_seconds", lambda prototype: seconds)

    return set_seconds


@pytest.mark.parametrize(
    ("seconds", "largest"), [(10.0, 2000), (0.1, 2800), (0.026, 4000), (0.01, 5600), (0.004, 8000), (1e-6, 8000)]
)
def test_a_faster_machine_is_exact_up_to_more_rows(timed, seconds, largest):
    timed(seconds)
    assert choose_inference.largest_exact(10_000, HOST) == largest
    assert largest == 2000 or choose_inference.fit_seconds(largest, HOST) <= choose_inference.BEARABLE_SECONDS


def test_steps_are_so_coarse_that_a_noisy_clock_seldom_decides():
    ratios = np.concatenate(
        [np.divide(steps[1:], steps[:-1]) for steps in (choose_inference.STEPS, choose_inference.STEPS_ON_DEVICE)]
    )
    assert (ratios**3 > 2.6).all()  # in seconds


def test_the_time_of_a_fit_grows_with_the_third_power_of_the_rows(timed):
    timed(0.03)
    assert choose_inference.fit_seconds(1000, HOST) == pytest.approx(1.5)
    assert choose_inference.fit_seconds(4000, HOST) == pytest.approx(1.5 * 64)


def test_few_rows_need_no_clock(monkeypatch):
    def never(_):
        raise AssertionError("the clock was asked")

    monkeypatch.delenv(choose_inference.ROWS_VARIABLE, raising=False)
    monkeypatch.setattr(choose_inference, "factor_seconds", never)
    assert choose_inference.largest_exact(2000, HOST) == 2000
    with pytest.raises(AssertionError, match="the clock"):
        choose_inference.largest_exact(2001, HOST)


@pytest.mark.parametrize(
    ("free", "largest"), [(None, 28_000), (2**37, 28_000), (72 * 9000**2, 9000), (72 * 3000**2, 3000)]
)
def test_memory_is_a_bound_too(monkeypatch, timed, free, largest):
    timed(0.03)
    monkeypatch.setattr(choose_inference, "available_bytes", lambda: free)
    assert choose_inference.largest_exact(30_000, HOST) == min(4000, largest)
    monkeypatch.setattr(choose_inference, "_is_on_host", lambda _: False)
    assert choose_inference.largest_exact(30_000, HOST) == largest
    timed(10.0)
    assert choose_inference.largest_exact(30_000, HOST) == min(5000, largest)


def test_a_factorisation_is_timed_once_and_in_seconds(monkeypatch):
    monkeypatch.setattr(choose_inference, "_timed", {})
    asked = []
    monkeypatch.setattr(
        choose_inference,
        "jittered_cholesky",
        lambda A, old=choose_inference.jittered_cholesky: asked.append(1) or old(A),
    )
    first = choose_inference.factor_seconds(HOST)
    assert first > 0.0
    assert len(asked) == choose_inference.REPEATS
    assert choose_inference.factor_seconds(HOST) == first
    assert len(asked) == choose_inference.REPEATS


def test_a_device_is_timed_with_its_own_matrix(monkeypatch):
    monkeypatch.setattr(choose_inference, "TIMED_ROWS_ON_DEVICE", 200)
    asked = []
    monkeypatch.setattr(
        choose_inference,
        "jittered_cholesky",
        lambda A, old=choose_inference.jittered_cholesky: asked.append(A) or old(A),
    )
    assert choose_inference._device_seconds(HOST) > 0.0
    assert [A.shape for A in asked] == [(200, 200)] * choose_inference.REPEATS


def test_the_environment_fixes_the_rows(monkeypatch):
    monkeypatch.setenv(choose_inference.ROWS_VARIABLE, "123")
    assert choose_inference.largest_exact(10_000, HOST) == 123
    monkeypatch.setenv(choose_inference.ROWS_VARIABLE, "many")
    with pytest.raises(ValueError, match=r"GPSIFT_EXACT_ROWS must be a number of rows, got 'many'"):
        choose_inference.largest_exact(10_000, HOST)


def test_the_notice_tells_how_long_an_exact_fit_would_take(timed):
    timed(0.026)

    def chosen(n):
        return choose_inference.choose_inference("auto", Gaussian(), n, samples=False, prototype=HOST)

    with pytest.warns(
        gs.GPSiftWarning, match=r'With 6000 rows, more than 4000, .*"exact"\)` takes all rows, in about 5 m'
    ):
        assert chosen(6000) == gs.Sparse()
    assert chosen(4000) == "exact"


def test_the_record_says_what_was_taken(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.5))
    monkeypatch.setenv(choose_inference.ROWS_VARIABLE, "60")
    assert model.fit(X, y).inference == "exact"
    monkeypatch.setenv(choose_inference.ROWS_VARIABLE, "59")
    with pytest.warns(gs.GPSiftWarning, match="With 60 rows, more than 59, inference is sparse"):
        assert model.fit(X, y).inference == "sparse"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "1 second"),
        (40.0, "40 seconds"),
        (58.0, "1 minute"),
        (310.0, "5 minutes"),
        (5e3, "1 hour"),
        (1e6, "12 days"),
    ],
)
def test_durations_are_told_in_one_unit(seconds, words):
    assert choose_inference.duration_text(seconds) == words
