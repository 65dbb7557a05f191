"""The whole reproduction in small: every experiment runs, resumes and decides."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from optional import need
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.cli import app
from gpsift.paper.datasets import Dataset, load
from gpsift.paper.reproduce import EXPERIMENTS, Settings, figures, run
from gpsift.paper.reproduce.experiments import random_split

REFERENCE = Path(__file__).parents[3] / "experiments" / "paper" / "gpy_reference.json"


def made(name, *, n=40, n_train=30, classes=False):
    """A small data set with the names of a real one."""
    rng = np.random.default_rng(0)
    names = {
        "concrete": ["cement", "superplasticizer", "coarse_aggregate"],
        "housing": ["RM", "LSTAT", "DIS", "NOX"],
    }.get(name, ["a", "b", "c"])
    X = pd.DataFrame(rng.normal(size=(n, len(names))), columns=names)
    f = np.sin(2 * X.iloc[:, 0]) + X.iloc[:, 1]
    y = (f + 0.3 * rng.normal(size=n) > 0).astype(float) if classes else f + 0.2 * rng.normal(size=n)
    return Dataset(
        name=name,
        title=name,
        X=X,
        y=pd.Series(y, name="target"),
        n_train=n_train,
        is_classification=classes,
        coding="default",
        citation="",
        caveat="",
        origin="made",
    )


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Quick runs on made data and few toys, without the sampler."""
    module = sys.modules["gpsift.paper.reproduce.run"]  # the package's name `run` is the function
    monkeypatch.setattr(module, "load", lambda name, **_: made(name, classes=name == "pima"))
    # Two toys are averaged, as three are.
    return Settings(out=tmp_path / "out", quick=True, toys=2, nuts_splits=0, work=gs.Work(jobs=1, progress=False))


@pytest.fixture
def bare(settings, monkeypatch):
    """The same without what takes most of a quick run: pictures are drawn and thrown away, no projection is tried."""
    monkeypatch.setattr(figures, "save", lambda figure, *_: plt.close(figure))
    return replace(settings, extra_splits=0)


def test_everything_gives_tables_pictures_and_verdicts(settings, monkeypatch):
    said, drawn, save = [], [], figures.save

    def save_some(figure, folder, name):
        """All are drawn; those of data sets that differ in their numbers alone are not written, which takes longest."""
        drawn.append((folder.name, name))
        if folder.name in ("concrete", "automobile", "crime"):
            plt.close(figure)
        else:
            save(figure, folder, name)

    monkeypatch.setattr(figures, "save", save_some)
    run("all", settings, report=said.append)
    for name in ("concrete", "housing", "automobile", "crime", "pima"):
        curves = pd.read_csv(settings.out / name / "curves.csv")
        assert set(curves.method) >= {"ARD", "KL", "VAR"}
        assert curves.split.nunique() == 2
        assert {(name, "mlpd"), (name, "entropy"), (name, "ranks")} <= set(drawn)
    for name in ("housing", "pima"):
        assert_pictures(settings.out / name, "mlpd", "entropy", "ranks")
    assert_pictures(settings.out, "figure-mlpd", "figure-mse", "figure-entropy")
    for name, *pictures in (
        ("toy", "functions", "relevance", "relevance-50"),
        ("delta", "steps"),
        ("pointwise", "pointwise"),
        ("cost", "cost"),
    ):
        assert_pictures(settings.out / name, *pictures)
    toys = pd.read_csv(settings.out / "toy" / "toy.csv")
    assert toys.groupby("p").relevant.sum().gt(0).all()
    summary = json.loads((settings.out / "summary.json").read_text())
    claims = [verdict["claim"].split()[0] for verdict in summary["claims"]]
    assert list(dict.fromkeys(claims)) == [str(number) for number in range(1, 11)]
    assert all(isinstance(verdict["holds"], bool) for verdict in summary["claims"])
    text = (settings.out / "summary.md").read_text()
    assert "| Concrete | 3 | 40 | 30 | 2 |" in text
    assert any("claims hold" in line for line in said)


def assert_pictures(folder, *names):
    for name in names:
        for suffix in ("png", "svg"):
            assert (folder / f"{name}.{suffix}").stat().st_size > 1000


def test_claims_are_decided_for_what_there_is(bare):
    for name in ("delta", "pointwise", "cost"):
        run(name, bare, report=lambda _: None)
    summary = json.loads((bare.out / "summary.json").read_text())
    assert [verdict["claim"] for verdict in summary["claims"]] == ["4", "9", "10"]


def test_the_same_seed_gives_the_same_tables(bare):
    def curves(seed):
        run("housing", replace(bare, seed=seed, splits=1, extra_splits=1), report=lambda _: None)
        table = pd.read_csv(bare.out / "housing" / "curves.csv")
        shutil.rmtree(bare.out)
        return table

    first = curves(seed=0)
    # The seed decides everything but the last bits of sums, which belong to BLAS.
    pd.testing.assert_frame_equal(curves(seed=0), first, rtol=1e-9, atol=1e-12)
    assert not np.allclose(curves(seed=1).mlpd, first.mlpd, rtol=1e-3)


def test_finished_splits_are_not_made_again(bare, monkeypatch):
    import gpsift.paper.reproduce.experiments as datasplits

    run("housing", bare, report=lambda _: None)
    before = (bare.out / "housing" / "curves.csv").read_bytes()

    def refuse(*_):
        raise AssertionError("a finished split was made again")

    monkeypatch.setattr(datasplits, "compare_rankings", refuse)
    run("housing", replace(bare, resume=True), report=lambda _: None)
    assert (bare.out / "housing" / "curves.csv").read_bytes() == before
    with pytest.raises(AssertionError, match="made again"):
        run("housing", bare, report=lambda _: None)


def test_other_settings_do_not_resume(bare):
    run("housing", bare, report=lambda _: None)
    with pytest.raises(ValueError, match="hyperparameters was"):
        run("housing", replace(bare, resume=True, prior="short"), report=lambda _: None)


def test_variability_runs_what_is_missing(bare):
    run("concrete", bare, report=lambda _: None)
    said = []
    run("variability", bare, report=said.append)
    assert [line.split(":")[0] for line in said[:-1]] == ["housing", "automobile", "crime"]


def test_the_sampled_full_model_is_there(bare):
    need("nutpie")
    run("concrete", replace(bare, nuts_splits=1), report=lambda _: None)
    reference = pd.read_csv(bare.out / "concrete" / "reference.csv")
    assert {"mlpd", "mse", "r_hat", "ess"} <= set(reference.columns)
    assert len(reference) == 1


def test_a_missing_sampler_is_said_before_the_work(settings, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match="--sampled 0"):
        run("concrete", replace(settings, nuts_splits=1), report=lambda _: None)
    assert not (settings.out / "concrete" / "checkpoint.sqlite").exists()


def test_splits_do_not_depend_on_their_number():
    train, test = random_split(20, 12, 3, seed=5)
    assert sorted([*train, *test]) == list(range(20))
    assert len(train) == 12
    assert not np.array_equal(train, random_split(20, 12, 4, seed=5)[0])
    np.testing.assert_array_equal(train, random_split(20, 12, 3, seed=5)[0])


def test_the_command(bare):
    out = bare.out
    result = CliRunner().invoke(app, ["reproduce", "pointwise", "--quick", "--jobs", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "of 1 claims hold" in result.output
    record = CliRunner().invoke(app, ["reproduce", "pointwise", "--quick", "--jobs", "1", "--json", "--out", str(out)])
    assert json.loads(record.stdout) == json.loads((out / "summary.json").read_text())
    assert "of 1 claims hold" in record.stderr
    assert json.loads(record.stdout)["schema"] == "gpsift-reproduction/1"
    assert CliRunner().invoke(app, ["reproduce", "everything"]).exit_code == 2
    assert set(EXPERIMENTS) >= {"toy", "all", "variability"}


def test_missing_data_are_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("GPSIFT_DATA", raising=False)
    monkeypatch.setenv("GPSIFT_CACHE", str(tmp_path / "cache"))
    arguments = [
        "reproduce",
        "concrete",
        "--quick",
        "--sampled",
        "0",
        "--out",
        str(tmp_path / "out"),
        "--data",
        str(tmp_path / "nothing"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "Traceback" not in result.output


@pytest.mark.skipif(not os.environ.get("GPSIFT_DATA"), reason="needs GPSIFT_DATA")
def test_scores_agree_with_loops_over_another_library():
    """gpy_reference.json: two splits of Housing, GPy's predictions, loops over points and inputs."""
    housing = load("housing")
    measures = Settings(out=Path()).measures
    for stored in json.loads(REFERENCE.read_text()):
        train, _ = random_split(len(housing.y), housing.n_train, stored["split"], 0)
        X, y = housing.X.iloc[train], housing.y.iloc[train]
        values = stored["hyperparameters"]
        lengthscale = [values[f"lengthscale[{name}]"] for name in X.columns]
        others = {name: values[name] for name in ("signal_var", "noise_var", "constant_var")}
        gp = gs.GP(hyper=gs.Fixed(lengthscale=lengthscale, **others)).fit(X, y)
        for method, measure in measures.items():
            # Ours are in the units of the target; the loops ran on a standardised one.
            unit = float(y.var(ddof=0)) if method == "VAR" else 1.0
            scores = gs.rank(gp, measure=measure).scores / unit
            np.testing.assert_allclose(scores, stored["scores"][method], rtol=1e-3)
