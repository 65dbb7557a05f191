"""All methods, the cheap ones first: in that order they are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.battery import gaussian_processes, rivals
from benchmarks.battery.answers import Answer
from benchmarks.battery.tasks import DataSet, Task


@dataclass(frozen=True)
class Method:
    """A method, the package beside the usual ones that it needs, and the most inputs that it is asked about."""

    name: str
    answer: Callable[[DataSet], Answer]
    needs: str | None = None
    most_inputs: int | None = None

    @property
    def is_installed(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None

    def takes(self, task: Task) -> bool:
        return self.most_inputs is None or task.p <= self.most_inputs


ALL = (
    Method("mutual information", rivals.mutual_information),
    Method("lasso", rivals.lasso),
    Method("LightGBM", rivals.lightgbm_shap, needs="lightgbm"),
    Method("LightGBM permutation", rivals.lightgbm_permutation, needs="lightgbm"),
    Method("MAP", gaussian_processes.map_fit),
    Method("Sift", gaussian_processes.sift),
    Method("ML2", gaussian_processes.ml2),
    Method("GP permutation", rivals.gp_permutation),
    Method("forest permutation", rivals.forest_permutation),
    Method("MAP linear", gaussian_processes.map_linear),
    Method("Sift linear", gaussian_processes.sift_linear),
    Method("search", gaussian_processes.search, most_inputs=gaussian_processes.MOST_SEARCHED),
    Method("Boruta", rivals.boruta, needs="boruta"),
)
METHODS = {method.name: method for method in ALL}
