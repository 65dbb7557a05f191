"""The numbers of every model, measure and verb are those that were stored.

Whatever moves in the code, these stay; a change that is meant to move them stores them anew by `store.py`, and says
why.
"""

from pathlib import Path

import pytest
from optional import need
from reference_all import CASES, computed
from reference_file import read, versions

HERE = Path(__file__).parent
# Another machine, another BLAS and another NumPy differ in the last digits. Cancellations and the ends of iterations
# make more of them: these are some hundred times what was seen between instruction sets and between NumPy 1.26 and 2.
TOLERANCE = {
    "fixed": 1e-9,
    "iterated": 1e-8,
    "device": 1e-9,
    "distributed": 1e-9,
    "fits": 1e-4,
    "sampled": 0.0,
    "models": 1e-7,
    "peers": 1e-6,
    "ax": 1e-4,
    "gpflow": 1e-6,
}
STORED = {section: read(HERE / f"{section}.npz") for section in TOLERANCE}


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].section in TOLERANCE])
def test_numbers_are_those_that_were_stored(name):
    case = CASES[name]
    for library in case.needs:
        need(library)
    stored = STORED[case.section]
    if case.section == "sampled" and stored.about != versions() | {"date": stored.about["date"]}:
        pytest.skip(f"draws are the same digit by digit only with {stored.about}")
    difference, where = stored.worst(name, computed(name))
    assert difference <= TOLERANCE[case.section], where


def test_every_stored_case_is_computed():
    for section, stored in STORED.items():
        assert set(stored.cases) == {name for name in CASES if CASES[name].section == section}
