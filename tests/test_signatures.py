"""How many things a caller of the package has to say at once."""

import inspect

import pytest

import gpsift as gs

MOST_PARAMETERS = 10


def public_callables():
    """Functions, and methods as they are written: constructors of records and choices are their fields."""
    for name in gs.__all__:
        value = getattr(gs, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for member, method in vars(value).items():
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and not member.startswith("_"):
                    yield f"{name}.{member}", method


@pytest.mark.parametrize(("name", "function"), list(public_callables()))
def test_no_public_function_has_more_than_ten_parameters(name, function):
    parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
    assert len(parameters) <= MOST_PARAMETERS, name
