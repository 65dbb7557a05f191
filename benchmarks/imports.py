"""What `import gpsift` costs beyond NumPy and SciPy, and that nothing heavy comes with it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from table import Below, Row, duration

BASE = "import numpy, scipy.linalg, scipy.optimize"
HEAVY = ("matplotlib", "torch", "jax", "dask", "typer")
# Timed inside the new process: starting Python is not part of it.
CLOCK = "import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"


def import_rows(repeats: int) -> list[Row]:
    base, whole = np.empty(repeats), np.empty(repeats)
    _import_seconds("import gpsift")  # writes the byte code, fills the file cache
    for repeat in range(repeats):
        base[repeat] = _import_seconds(BASE)
        whole[repeat] = _import_seconds("import gpsift")
    extra = float(np.median(whole - base))
    medians = duration(float(np.median(whole))), duration(float(np.median(base)))
    mark = Below(0.5, " s")
    loaded = loaded_with_gpsift()
    print(f"import gpsift loads of {', '.join(HEAVY)}: {', '.join(loaded) or 'none'}")
    return [
        Row("import gpsift, seconds beyond NumPy and SciPy", "NumPy and SciPy", *medians, extra, mark, unit=" s"),
        Row(f"import gpsift, loads of {len(HEAVY)} heavy libraries", "-", "", "", len(loaded), Below(1, ""), ""),
    ]


def loaded_with_gpsift() -> list[str]:
    """Which of the heavy libraries a plain import loads."""
    code = f"import sys, gpsift; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return _run(code).split()


def _import_seconds(statement: str) -> float:
    return float(_run(CLOCK.format(statement=statement)))


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
