"""Conditions on rows such as ``age > 60 and sex == "f"``, evaluated safely: no other code can be run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.text import join_names

COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda values, choices: values.isin(choices),
    ast.NotIn: lambda values, choices: ~values.isin(choices),
}
ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
QUOTED_NAME = re.compile(r"`([^`]+)`")
PLACEHOLDER = "quoted_column_"
QUOTING = "Texts stand in quotes, names of columns that are no words in backquotes."


def select_rows(frame: pd.DataFrame, condition: str) -> np.ndarray:
    """Return which rows satisfy a condition, (n,) booleans.

    A condition compares columns, numbers and texts by ``<, <=, >, >=, ==, !=, in [...]``, combined by ``and``, ``or``,
    ``not``, ``+ - * /`` and brackets. Names with blanks or other signs are put in backquotes.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [50, 70, 80], "blood pressure": [120, 130, 110]})
    >>> select_rows(frame, "age > 60 and `blood pressure` < 120")
    array([False, False,  True])
    """
    quoted = list(dict.fromkeys(QUOTED_NAME.findall(condition)))
    plain = QUOTED_NAME.sub(lambda match: f"{PLACEHOLDER}{quoted.index(match[1])}", condition)
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(
            f'The condition {condition!r} cannot be read ({why}). Write it like "age > 60". {QUOTING}'
        ) from None
    found = _Evaluator(frame, quoted, condition).evaluate(tree)
    if not isinstance(found, pd.Series) or found.dtype != bool:
        raise ValueError(f'The condition {condition!r} is no comparison; write it like "age > 60".')
    return found.to_numpy()


class _Evaluator:
    """Evaluates a syntax tree on the columns of a table. Any node that `evaluate` does not list is an error."""

    def __init__(self, frame: pd.DataFrame, quoted: list[str], condition: str):
        self._frame, self._quoted, self._condition = frame, quoted, condition

    def evaluate(self, node: ast.expr) -> Any:
        match node:
            case ast.BoolOp(op=op, values=values):
                combine = operator.and_ if isinstance(op, ast.And) else operator.or_
                return reduce(combine, [self._evaluate_truth(value) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._evaluate_truth(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.evaluate(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return self._apply(ARITHMETIC[type(op)], self.evaluate(left), self.evaluate(right))
            case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(op) in COMPARISONS for op in ops):
                return self._compare([self.evaluate(left), *map(self.evaluate, comparators)], ops)
            case ast.Name(id=name):
                return self._get_column(name)
            case ast.Constant(value=value) if isinstance(value, int | float | str):
                return value
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.evaluate(element) for element in elements]
        raise ValueError(
            f"The condition {self._condition!r} holds {ast.unparse(node)!r}, which is not allowed: only columns, "
            "numbers, texts, comparisons, arithmetic, and, or, not."
        )

    def _compare(self, values: list[Any], ops: list[ast.cmpop]) -> Any:
        result: Any = True
        for left, op, right in zip(values, ops, values[1:], strict=False):
            result = result & self._apply(COMPARISONS[type(op)], left, right)
        return result

    def _apply(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        try:
            return function(left, right)
        except (TypeError, AttributeError):
            raise ValueError(
                f"The condition {self._condition!r} compares what does not compare, such as a text with a number. "
                f"{QUOTING}"
            ) from None

    def _evaluate_truth(self, node: ast.expr) -> Any:
        value = self.evaluate(node)
        if isinstance(value, pd.Series) and value.dtype == bool:
            return value
        raise ValueError(f"The condition {self._condition!r} uses {ast.unparse(node)!r} as true or false; compare it.")

    def _get_column(self, name: str) -> pd.Series[Any]:
        if name.startswith(PLACEHOLDER) and name.removeprefix(PLACEHOLDER).isdigit():
            name = self._quoted[int(name.removeprefix(PLACEHOLDER))]
        if name not in self._frame:
            known = join_names(self._frame.columns, 12)
            raise ValueError(
                f"The condition {self._condition!r} names the column {name!r}; there are {known}. {QUOTING}"
            )
        return self._frame[name]
