"""Ax: from a client to a ranking of the parameters of its search space."""

import copy
import logging

import numpy as np
import pytest
from model_points import at
from numpy.testing import assert_allclose
from optional import need

from gpsift import KL, VAR, as_reference, rank
from gpsift.reference.wrappers.outputs import Outputs

need("ax.api.client")

from ax.adapter.registry import Generators  # noqa: E402
from ax.adapter.transforms.standardize_y import StandardizeY  # noqa: E402
from ax.adapter.transforms.trial_as_task import TrialAsTask  # noqa: E402
from ax.adapter.transforms.unit_x import UnitX  # noqa: E402
from ax.api.client import Client  # noqa: E402
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig  # noqa: E402
from ax.core.observation import ObservationFeatures  # noqa: E402

# Ax and what it imports warn of their own affairs.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

RANGES = [
    RangeParameterConfig(name="rate", bounds=(1e-4, 1e-1), parameter_type="float", scaling="log"),
    RangeParameterConfig(name="depth", bounds=(1, 8), parameter_type="int"),
    RangeParameterConfig(name="width", bounds=(-5.0, 5.0), parameter_type="float"),
]
CHOICES = [
    ChoiceParameterConfig(name="solver", values=["sgd", "adam", "rms"], parameter_type="str", is_ordered=False),
    ChoiceParameterConfig(name="batch", values=[16, 32, 64], parameter_type="int", is_ordered=True),
]


def client_of(parameters):
    """An experiment with twelve trials that somebody ran."""
    logging.getLogger("ax").setLevel(logging.ERROR)
    client = Client(random_seed=0)
    client.configure_experiment(parameters=parameters)
    client.configure_optimization(objective="-loss")
    rng = np.random.default_rng(0)
    for _ in range(12):
        values = {
            "rate": float(10 ** rng.uniform(-4, -1)),
            "depth": int(rng.integers(1, 9)),
            "width": float(rng.uniform(-5, 5)),
            "solver": str(rng.choice(["sgd", "adam", "rms"])),
            "batch": int(rng.choice([16, 32, 64])),
        }
        loss = np.log10(values["rate"]) ** 2 + 0.3 * values["depth"] + 2.0 * (values["solver"] == "adam")
        trial = client.attach_trial(parameters={parameter.name: values[parameter.name] for parameter in parameters})
        client.complete_trial(trial, raw_data={"loss": float(loss), "time": 0.5 * values["depth"]})
    return client


def adapter_of(client, **options):
    return Generators.BOTORCH_MODULAR(experiment=client._experiment, **options)


@pytest.fixture(scope="module")
def numbers():
    return adapter_of(client_of(RANGES))


@pytest.fixture(scope="module")
def client():
    return client_of(RANGES[1:])


@pytest.fixture(scope="module")
def everything():
    return adapter_of(client_of(RANGES + CHOICES))


def predicted(adapter, metric, rows):
    """Ax's own mean and variance of the noise-free metric."""
    mean, cov = adapter.predict([ObservationFeatures(parameters=dict(row)) for row in rows])
    return np.array(mean[metric]), np.array(cov[metric][metric])


ROWS = [{"rate": 1e-2, "depth": 3, "width": 0.5}, {"rate": 3e-4, "depth": 7, "width": -4.0}]
POINTS = np.array([[-2.0, 3.0, 0.5], [np.log10(3e-4), 7.0, -4.0]])


def test_predictions_are_those_of_ax(numbers):
    reference = as_reference(numbers, metric="loss")
    assert reference.inputs.names == ("log10(rate)", "depth", "width")
    assert reference.how.startswith("closed form")
    found = at(reference, POINTS).distribution(latent=True)
    for value, expected in zip((found.mean, found.var), predicted(numbers, "loss", ROWS), strict=True):
        assert_allclose(value, expected, rtol=1e-7)


def test_training_inputs_are_the_trials(numbers):
    X = as_reference(numbers).inputs.X
    arms = numbers.get_training_data().arm_data
    assert_allclose(X[:, 0], np.log10(arms["rate"].astype(float)))
    assert_allclose(X[:, 1:], arms[["depth", "width"]].astype(float))


def test_all_metrics_together_or_one(numbers):
    reference = as_reference(numbers)
    assert isinstance(reference, Outputs)
    assert set(reference.outputs) == {"loss", "time"}
    squares = sum(rank(output).pointwise ** 2 for output in reference.outputs.values())
    assert_allclose(rank(numbers).pointwise, np.sqrt(squares), rtol=1e-9)
    observed = numbers.get_training_data().observation_data["mean"]
    for name, scale in zip(reference.outputs, reference.scale, strict=True):
        assert_allclose(scale, observed[name].std(ddof=0), rtol=1e-6)


def test_derivatives_match_differences_of_the_predictions_of_ax(numbers):
    gradients = at(as_reference(numbers, metric="loss"), POINTS).gradients()
    h = 1e-3
    moves = {
        0: lambda row, by: {**row, "rate": row["rate"] * 10**by},
        2: lambda row, by: {**row, "width": row["width"] + by},
    }
    for j, moved in moves.items():
        up, down = (predicted(numbers, "loss", [moved(row, by) for row in ROWS]) for by in (h, -h))
        for gradient, above, below in zip(gradients, up, down, strict=True):
            assert_allclose(gradient[:, j], (above - below) / (2 * h), rtol=1e-4, atol=1e-6)


def test_choices_are_positions_in_their_list(everything):
    reference = as_reference(everything, metric="loss")
    assert reference.inputs.names == ("log10(rate)", "depth", "width", "solver", "log10(batch)")
    assert reference.inputs.categorical == (3,)
    rows = [{**row, "solver": solver, "batch": 32} for row, solver in zip(ROWS, ("rms", "adam"), strict=True)]
    X = np.column_stack([POINTS, [2.0, 1.0], np.log10([32.0, 32.0])])
    found = at(reference, X).distribution(latent=True)
    for value, expected in zip((found.mean, found.var), predicted(everything, "loss", rows), strict=True):
        assert_allclose(value, expected, rtol=1e-7)
    assert all((gradient[:, 3] == 0).all() for gradient in at(reference, X).gradients())
    for measure in (KL(), KL(delta=0.01), VAR()):
        assert np.isfinite(rank(reference, measure=measure).scores).all()


def test_steps_and_sections_move_the_right_column(everything):
    reference = as_reference(everything, metric="loss")
    X = reference.inputs.X[:4]
    response, here = at(reference, X), at(reference, X).distribution(latent=True)
    for j, by in ((0, 0.3), (1, 0.3), (4, 0.3), (3, 1.0)):
        moved = X.copy()
        moved[:, j] += by
        there = at(reference, moved).distribution(latent=True)
        mean_change, var_change = response.step(j, by)
        assert_allclose(mean_change, there.mean - here.mean, atol=1e-10)
        assert_allclose(var_change, there.var - here.var, atol=1e-10)
        section = response.section(j, X[:, j], np.array([0.0, by]))
        assert_allclose(section[:, 1] - section[:, 0], mean_change, atol=1e-9)


def test_the_unit_cube_is_undone(client):
    adapter = adapter_of(client, transforms=[UnitX, StandardizeY])
    reference = as_reference(adapter, metric="loss")
    rows = [{name: row[name] for name in ("depth", "width")} for row in ROWS]
    found = at(reference, POINTS[:, 1:]).distribution(latent=True)
    assert_allclose(found.mean, predicted(adapter, "loss", rows)[0], rtol=1e-7)
    assert_allclose(reference.inputs.X[:, 1], adapter.get_training_data().arm_data["width"].astype(float))


def test_a_bent_metric_is_one_of_what_the_model_sees(client):
    bounded = copy.deepcopy(client)
    bounded.configure_optimization(objective="-loss", outcome_constraints=["time <= 3.0"])
    reference = as_reference(adapter_of(bounded))
    assert reference.outputs["loss"].mean_of == "the target"
    assert reference.outputs["time"].mean_of == "the transformed metric"


def test_a_client_is_ranked_once_it_has_a_model(client):
    client.configure_generation_strategy(initialization_budget=5, initialize_with_center=False)
    with pytest.raises(ValueError, match="This Client has no BoTorch model yet"):
        as_reference(client)
    client.get_next_trials(max_trials=1)
    ranking = rank(as_reference(client, metric="time"))
    assert ranking.names[ranking.order[0]] == "depth"


def test_what_has_no_model_is_refused(numbers):
    experiment = numbers._experiment
    with pytest.raises(TypeError, match="An Experiment holds data but no model"):
        as_reference(experiment)
    with pytest.raises(ValueError, match="has no BoTorch model yet, but SobolGenerator"):
        as_reference(Generators.SOBOL(experiment=experiment))
    with pytest.raises(TypeError, match="SearchSpace of Ax is not known here"):
        as_reference(experiment.search_space)


def test_unknown_transforms_and_options_are_refused(numbers):
    with pytest.raises(TypeError, match="no option output for"):
        as_reference(numbers, output=1)
    with pytest.raises(ValueError, match="must be one of 'loss', 'time'"):
        as_reference(numbers, metric="speed")
    adapter = copy.copy(numbers)
    adapter.transforms = {**numbers.transforms, "TrialAsTask": object.__new__(TrialAsTask)}
    with pytest.raises(TypeError, match="The transform TrialAsTask of Ax is not known here"):
        as_reference(adapter)
