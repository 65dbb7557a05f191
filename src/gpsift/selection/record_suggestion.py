"""The answer of `suggest_size`: how many features are enough, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpsift._utils.text import TextRepr, percent
from gpsift.io.serializable import Serializable


@dataclass(frozen=True)
class Baseline(TextRepr):
    """What submodels are compared with: the reference, or a submodel that predicts better than it.

    `size` is None for the reference; otherwise `lead` and `se` say by how much the submodel is better, in elpd.
    """

    size: int | None = None
    lead: float = 0.0
    se: float = 0.0

    @property
    def name(self) -> str:
        """In words."""
        if self.size is None:
            return "the reference"
        return f"the best submodel (size {self.size}, better than the reference by {self.lead:z.1f} +- {self.se:z.1f})"


@dataclass(frozen=True)
class Verdict(TextRepr):
    """What one rule says.

    `gain` is what there is to explain. Where the baseline gains nothing over the smallest submodel, that one is enough.
    """

    rule: str  # "one-se", "negligible" or "explained"
    size: int | None  # the smallest that qualifies; None if none does
    n_units: int  # of the reference
    baseline: Baseline
    limit: float  # what the rule asks for: standard errors, a difference in elpd, or a share
    diff: float | None = None  # to the baseline, in elpd, of the submodel of this size
    se: float | None = None  # of `diff`
    of: str = "elpd"  # what a share is a share of; or "kl"
    gain: float = np.inf
    explains: bool = True  # whether any model of the path does; if not, the smallest is enough

    @property
    def reason(self) -> str:
        """In words."""
        if not self.explains:
            return (
                "no feature is shown to help: neither the reference nor a submodel predicts better than no inputs, or "
                "not by more than fitting noise would give"
            )
        if self.gain <= 0 and self.of == "elpd":
            return f"{self.baseline.name} gains nothing in elpd over the smallest submodel of the path"
        enough, none = self._phrases()
        if self.size is None:
            return none
        if self.size == 0:
            return f"no feature is needed: the empty model is {enough}"
        return f"{self.size} of {self.n_units} is the smallest size {enough}"

    def _phrases(self) -> tuple[str, str]:
        """How the smallest size that qualifies does, and that none does."""
        name = self.baseline.name
        beside = f"in elpd ({self.diff:z.1f} +- {self.se:z.1f})" if self.diff is not None else "in elpd"
        if self.rule == "one-se":
            near = f"within one standard error of {name}"
            return f"{near} {beside}", f"no submodel of the path comes {near} in elpd"
        if self.rule == "negligible":
            return (
                f"less than {self.limit:g} behind {name} {beside}",
                f"every submodel of the path is at least {self.limit:g} behind {name} in elpd",
            )
        gained = "KL divergence" if self.of == "kl" else f"elpd that {name} gains over the smallest submodel"
        share = percent(self.limit)
        return f"at {share} or more of the {gained}", f"no submodel of the path reaches {share} of the {gained}"


@dataclass(frozen=True, repr=False)
class Suggestion(TextRepr, Serializable):
    """A suggested size.

    Attributes
    ----------
    rule : str
        The rule that decides.
    size : int or None
        Its answer; None if no size qualifies.
    features : tuple of str
        The features of that submodel; empty if none is needed or none qualifies.
    reason : str
        In words.
    by_rule : mapping of str to Verdict
        What every rule says.
    """

    rule: str
    features: tuple[str, ...]
    by_rule: Mapping[str, Verdict]

    @property
    def size(self) -> int | None:
        return self.by_rule[self.rule].size

    @property
    def reason(self) -> str:
        return self.by_rule[self.rule].reason

    def __repr__(self) -> str:
        head = "no size qualifies" if self.size is None else f"size {self.size}"
        lines = [f"Suggestion: {head} by the rule {self.rule!r}"]
        if self.features:
            lines.append(f"  {', '.join(self.features)}")
        lines += [
            f"  {'*' if rule == self.rule else ' '} {rule:<10} {'none' if v.size is None else v.size!s:>4}  {v.reason}"
            for rule, v in self.by_rule.items()
        ]
        return "\n".join(lines)
