"""Read the surrogate model that Ax fitted last, in the units of the search space.

Ax's adapter transforms the parameters of an experiment for its BoTorch model: logarithms, codes of choices,
standardised metrics. This file reads and undoes these transforms; `gpsift.adapters.botorch` reads the model itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ax.adapter.base import Adapter
from ax.adapter.torch import TorchAdapter
from ax.adapter.transforms.bilog_y import BilogY
from ax.adapter.transforms.cast import Cast
from ax.adapter.transforms.choice_encode import ChoiceToNumericChoice, OrderedChoiceToIntegerRange
from ax.adapter.transforms.derelativize import Derelativize
from ax.adapter.transforms.fill_missing_parameters import FillMissingParameters
from ax.adapter.transforms.int_to_float import IntToFloat
from ax.adapter.transforms.log import Log
from ax.adapter.transforms.log_y import LogY
from ax.adapter.transforms.logit import Logit
from ax.adapter.transforms.map_key_to_float import MapKeyToFloat
from ax.adapter.transforms.one_hot import OneHot
from ax.adapter.transforms.power_transform_y import PowerTransformY
from ax.adapter.transforms.remove_fixed import RemoveFixed
from ax.adapter.transforms.standardize_y import StandardizeY
from ax.adapter.transforms.unit_x import UnitX
from ax.adapter.transforms.winsorize import Winsorize
from ax.core.experiment import Experiment
from ax.core.parameter import ChoiceParameter, FixedParameter
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator

from gpsift.adapters.botorch.models import combine_outputs, read_outputs
from gpsift.adapters.botorch.outputs import OutcomeMap
from gpsift.adapters.gpytorch.models import Derivatives
from gpsift.adapters.reading import Options
from gpsift.reference.affine import Affine
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble, map_members
from gpsift.reference.inputs import Inputs
from gpsift.reference.wrappers.mapped import ColumnMapped, CoordinateMap, Coordinatewise

# Transforms that change neither the numbers of a parameter nor those of a metric that the model was fitted to.
SILENT = (FillMissingParameters, Cast, RemoveFixed, MapKeyToFloat, IntToFloat, Derelativize, Winsorize)
ENCODERS = (ChoiceToNumericChoice, OrderedChoiceToIntegerRange)
# Nonlinear transforms of a metric; the model then predicts the transformed metric.
NONLINEAR = {BilogY: "metric_to_bound", LogY: "metric_signatures", PowerTransformY: "metric_signatures"}
KNOWN = (*SILENT, *ENCODERS, *NONLINEAR, OneHot, Log, Logit, UnitX, StandardizeY)


def reference_of(model: Any, *, metric: str | None = None, **options: Any) -> Reference | Ensemble:
    """Read the surrogate model of an Ax experiment as one that can be ranked.

    Parameters
    ----------
    model : Client, AxClient, GenerationStrategy or TorchAdapter
        It must have fitted a BoTorch model, which Ax does when it suggests trials after the first, random ones.
    metric : str, optional
        Which metric. By default all of them together; the reference then has ``outputs``, a mapping from metrics to
        references.
    **options
        ``noise`` and ``derivatives`` of `gpsift.adapters.botorch.reference_of`.

    Returns
    -------
    Reference
        Its features are the parameters of the search space that are not fixed, by their names and in their units. A
        parameter with a logarithmic scale is replaced by its logarithm, ``log10(rate)``, and a choice among words by
        the position of the word in its list of values.
    """
    unknown = sorted(set(options) - {"noise", "derivatives"})
    if unknown:
        raise TypeError(
            f"`as_reference` has no option {', '.join(unknown)} for Ax; it takes metric, noise, derivatives."
        )
    adapter = _find_adapter(model)
    space = SearchSpaceMap(adapter)
    metrics = {name: read_metric(adapter, name) for name in adapter.outcomes}
    known = Options(output_names=adapter.outcomes, **options).check(Derivatives)
    parts, units = read_outputs(adapter.botorch_model, known, metrics)
    outputs = {name: map_members(part, space.wrap) for name, part in parts.items()}
    return combine_outputs(outputs, units, metric)


def _find_adapter(model: Any) -> TorchAdapter:
    """Find the adapter of Ax that holds the fitted BoTorch model of an experiment."""
    if isinstance(model, Experiment):
        raise TypeError(
            "An Experiment holds data but no model. Pass the Client or the GenerationStrategy that runs it, or fit a "
            "model: `as_reference(Generators.BOTORCH_MODULAR(experiment=experiment))`."
        )
    found = model
    if not isinstance(model, Adapter | GenerationStrategy):
        # The attribute of Ax's Client is private, that of its older AxClient public.
        found = getattr(model, "generation_strategy", None) or getattr(model, "_generation_strategy", None)
        if found is None:
            raise TypeError(
                f"{type(model).__name__} of Ax is not known here. Known are Client, AxClient, GenerationStrategy and "
                "TorchAdapter."
            )
    adapter = found.adapter if isinstance(found, GenerationStrategy) else found
    if not isinstance(adapter, TorchAdapter) or not isinstance(adapter.generator, BoTorchGenerator):
        kind = "nothing" if adapter is None else type(adapter.generator).__name__
        raise ValueError(
            f"This {type(model).__name__} has no BoTorch model yet, but {kind}: Ax fits one when it suggests trials "
            "after the first, random ones. Ask it for the next trial first."
        )
    unknown = [type(step).__name__ for step in adapter.transforms.values() if type(step) not in KNOWN]
    if unknown:
        raise TypeError(
            f"The transform {unknown[0]} of Ax is not known here. Rank the model itself, in its own units: "
            "`as_reference(adapter.botorch_model, feature_names=adapter.parameters)`."
        )
    return adapter


class SearchSpaceMap(CoordinateMap):
    """The map from the parameters of a search space to the columns of the model.

    Attributes
    ----------
    parameters : tuple of str
        The parameters that are not fixed.
    labels : tuple of str
        Their names, with their scale: log10(rate).
    levels : dict of str to list
        The values of choices that are not numbers; points have the positions in that list.
    one_hot : dict of str to list of str
        The columns of choices for which the model has one column for each value.
    """

    names = "one column for each choice"

    def __init__(self, adapter: TorchAdapter):
        space = {name: p for name, p in adapter.model_space.parameters.items() if not isinstance(p, FixedParameter)}
        self.parameters = tuple(space)
        self._columns = list(adapter.parameters)
        self._label = {name: name for name in space}
        self._affine = dict.fromkeys(space, (0.0, 1.0))
        self._is_whole = {name: p.parameter_type.name == "INT" for name, p in space.items()}
        self.levels: dict[str, list[Any]] = {}
        self.one_hot: dict[str, list[str]] = {}
        for step in adapter.transforms.values():
            self._read(step)
        unknown = set(self._columns) - set(space) - {name for names in self.one_hot.values() for name in names}
        if unknown:
            raise TypeError(
                f"The model has columns that are no parameters of the search space: {', '.join(sorted(unknown))}. "
                "Rank the model itself: `as_reference(adapter.botorch_model, feature_names=adapter.parameters)`."
            )
        self.labels = tuple(self._label.values())
        self.categorical = tuple(
            j for j, p in enumerate(space.values()) if isinstance(p, ChoiceParameter) and not p.is_ordered
        )

    def _read(self, step: Any) -> None:
        if isinstance(step, ENCODERS):
            self.levels.update({name: list(codes) for name, codes in step.encoded_parameters.items()})
        elif isinstance(step, OneHot):
            for name, columns in step.encoded_parameters.items():
                self.one_hot[name] = columns
                # Numbers without an order are treated as codes, too.
                self.levels.setdefault(name, list(step.encoded_values[name]))
        elif isinstance(step, Log | Logit):
            # The user chose this scale, so equal steps on it are comparable.
            for name in step.transform_parameters:
                self._label[name] = f"{'log10' if isinstance(step, Log) else 'logit'}({name})"
                self._is_whole[name] = False
        elif isinstance(step, UnitX):
            for name, (lower, upper) in step.bounds.items():
                if name in self._affine:  # columns of a choice are 0 or 1 already
                    self._affine[name] = (lower, upper - lower)

    @property
    def column_map(self) -> Affine | None:
        """The map as shifts and scales of columns; None where a choice becomes several columns."""
        if self.one_hot:
            return None
        columns = [self.parameters.index(name) for name in self._columns]
        center, scale = np.array([self._affine[name] for name in self._columns]).T
        return Affine(center, scale, columns=np.array(columns))

    def position(self, j: int) -> int | None:
        name = self.parameters[j]
        return None if name in self.one_hot else self._columns.index(name)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        Z = np.empty((len(X), len(self._columns)))
        for x, name in zip(X.T, self.parameters, strict=True):
            if name in self.one_hot:
                code = np.clip(np.rint(x), 0, len(self.levels[name]) - 1)
                for value, column in enumerate(self.one_hot[name]):
                    Z[:, self._columns.index(column)] = code == value
            else:
                center, scale = self._affine[name]
                Z[:, self._columns.index(name)] = (x - center) / scale
        return Z

    def slopes(self, X: np.ndarray) -> np.ndarray:
        slopes = [0.0 if name in self.one_hot else 1.0 / self._affine[name][1] for name in self.parameters]
        return np.broadcast_to(slopes, X.shape)

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        """Return the parameters of which Z is the transform."""
        X = np.empty((len(Z), len(self.parameters)))
        for x, name in zip(X.T, self.parameters, strict=True):
            if name in self.one_hot:
                x[:] = np.argmax(Z[:, [self._columns.index(column) for column in self.one_hot[name]]], axis=1)
            else:
                center, scale = self._affine[name]
                values = center + scale * Z[:, self._columns.index(name)]
                x[:] = np.rint(values) if self._is_whole[name] else values
        return X

    def wrap(self, reference: Reference) -> Reference:
        """Change the inputs of a model to the parameters of the search space."""
        seen, column_map = reference.inputs.X, self.column_map
        inputs = Inputs(self.labels, True, None if seen is None else self.inverse(seen))
        if column_map is None or self.categorical:
            return Coordinatewise.wrap(reference, self, inputs)
        return ColumnMapped.wrap(reference, self, column_map, inputs)


def read_metric(adapter: TorchAdapter, metric: str) -> OutcomeMap:
    """Read the map from the target of the model to a metric, or to a nonlinear transform of the metric."""
    center, scale = 0.0, 1.0
    for step in reversed(list(adapter.transforms.values())):
        if isinstance(step, StandardizeY):
            mean, sd = float(step.Ymean[metric]), float(step.Ystd[metric])
            center, scale = mean + sd * center, sd * scale
        elif type(step) in NONLINEAR and metric in (getattr(step, NONLINEAR[type(step)]) or ()):
            return OutcomeMap(center, scale, "the transformed metric")
    return OutcomeMap(center, scale)
