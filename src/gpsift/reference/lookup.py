"""Find the adapter of a fitted model, and read the model as a reference."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from gpsift._utils.warnings import warn
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# First part of a class's module -> the module that reads such models, imported when needed. For a class that inherits
# from several libraries the first of this table reads more: BoTorch's models are GPyTorch's with transforms.
LIBRARIES = {
    "ax": "gpsift.adapters.ax",
    "botorch": "gpsift.adapters.botorch",
    "gpytorch": "gpsift.adapters.gpytorch",
    "sklearn": "gpsift.adapters.sklearn",
    "GPy": "gpsift.adapters.gpy",
    "gpflow": "gpsift.adapters.gpflow",
    "gpjax": "gpsift.adapters.gpjax",
    "tinygp": "gpsift.adapters.tinygp",
    "pymc": "gpsift.adapters.pymc",
}
FUNCTIONS = "gpsift.adapters.functions"
# Other packages declare readers in this entry point group: the name of the library = "its.module:function".
ENTRY_POINTS = "gpsift.adapters"


def as_reference(model: Any, **options: Any) -> Reference | Ensemble:
    """Read a fitted model of a supported library, or a function that predicts, as a model that can be ranked.

    `rank` calls it; call it for options, or to look at the reference.

    Parameters
    ----------
    model : fitted model or callable
        A `Reference` or an `Ensemble` is returned unchanged, and for gpsift's estimators their ``gp_``. Models of
        scikit-learn (regressors, classifiers, pipelines) are read by `gpsift.adapters.sklearn.reference_of`, functions
        by `gpsift.adapters.functions.reference_of`.
    **options
        Options of the reader of that library, such as ``noise="alpha"`` for scikit-learn or ``family="gaussian"`` for a
        function.

    Returns
    -------
    Reference or Ensemble
        An ensemble where the model holds draws of its hyperparameters. Its ``how`` names the method of computing
        derivatives: closed form, or finite differences.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GaussianProcessRegressor(RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1), optimizer=None).fit(X, y)
    >>> reference = gs.as_reference(model)
    >>> reference.how
    'closed form: squared exponential'
    >>> ranking = gs.rank(reference)
    >>> ranking.names[ranking.order[0]]
    'x1'
    """
    own = model if isinstance(model, Reference | Ensemble) else getattr(model, "gp_", None)
    if isinstance(own, Reference | Ensemble):
        if options:
            raise TypeError(
                f"A {type(model).__name__} is read as it is and takes no options, got {', '.join(options)}."
            )
        return own
    if isinstance(model, type):
        raise TypeError(f"`model` must be a fitted model, got the class {model.__name__}: make one and fit it first.")
    reference_of = _find_reader(model)
    known = inspect.signature(reference_of).parameters
    unknown = [name for name in options if name not in known]
    if unknown and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        raise TypeError(
            f"`as_reference` has no option {', '.join(unknown)} for a {type(model).__name__}; it takes "
            f"{', '.join(list(known)[1:])}."
        )
    reference = reference_of(model, **options)
    for message in reference.notices:
        warn(message)
    return reference


def _find_reader(model: Any) -> Callable[..., Reference | Ensemble]:
    """Find the function that reads a model, by the library of its class or of a class that it inherits."""
    own = type(model).__module__
    if own.startswith("gpsift.") and not own.startswith("gpsift.adapters."):
        raise TypeError(
            f"This {type(model).__name__} holds no fitted Gaussian process: call its `fit(X, y)` and pass what that "
            "returns."
        )
    libraries = [cls.__module__.split(".")[0] for cls in type(model).__mro__]
    others = [name for name in libraries if name not in (*LIBRARIES, "builtins")]
    declared = _find_declared_reader(model, others) if others else None  # reading all entry points takes 30 ms
    if declared is not None:
        return declared
    for library, reader in LIBRARIES.items():
        if library in libraries:
            return importlib.import_module(reader).reference_of
    if callable(model):
        return importlib.import_module(FUNCTIONS).reference_of
    raise TypeError(
        f"Models of type {type(model).__module__}.{type(model).__qualname__} are not known here; known are those of "
        f"gpsift and {', '.join(LIBRARIES)}. Pass a function of X instead, such as `as_reference(lambda X: (mean, "
        'var), family="gaussian", X_train=X)`, or write a subclass of `gpsift.Reference`.'
    )


def _find_declared_reader(model: Any, libraries: Sequence[str]) -> Callable[..., Reference | Ensemble] | None:
    """Find the reader that an installed package declares for the first of these libraries that has one."""
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group=ENTRY_POINTS) if entry.name in libraries]
    if not found:
        return None
    entry = min(found, key=lambda entry: libraries.index(entry.name))
    packages = sorted({_package(other) for other in found if other.name == entry.name})
    if len(packages) > 1:
        raise TypeError(
            f"{' and '.join(packages)} each declare an adapter of {entry.name}, which a {type(model).__name__} is read "
            "by. Uninstall one."
        )
    return _load(entry)


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _load(entry: EntryPoint) -> Callable[..., Reference | Ensemble]:
    """Load the reader that an entry point names, and check its results."""
    package = _package(entry)
    where = f"The entry point {entry.name} = {entry.value} of {package} in the group {ENTRY_POINTS}"
    remedy = f"Update or uninstall {package}."
    try:
        reader = entry.load()
    except Exception as error:
        raise ImportError(
            f"{package} declares an adapter that cannot be imported. {where} fails with {type(error).__name__}: "
            f"{error}. {remedy}"
        ) from error
    if not callable(reader):
        raise TypeError(f"{where} must name a function of a model, but names a {type(reader).__name__}. {remedy}")

    @wraps(reader)
    def read_and_check(model: Any, **options: Any) -> Reference | Ensemble:
        reference = reader(model, **options)
        if not isinstance(reference, Reference | Ensemble):
            kind = type(reference).__name__
            raise TypeError(f"{where} must return a `gpsift.Reference`, but returned {kind}. {remedy}")
        return reference

    return read_and_check
