"""Put the results of `gpsift reproduce` into RESULTS.md: the tables between its marks, and the pictures.

python experiments/paper/write_results.py --long RESULTS --short RESULTS_WITH_THE_SHORT_PRIOR
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from gpsift.paper.reproduce.figures import TITLES
from gpsift.paper.reproduce.run import format_value, summarise

PAGE, FIGURES = Path(__file__).with_name("RESULTS.md"), Path(__file__).with_name("figures")
PICTURES = {
    "toy/functions.png": "functions.png",
    "toy/relevance.png": "relevance.png",
    "toy/relevance-50.png": "relevance-50.png",
    "delta/steps.png": "steps.png",
    "pointwise/pointwise.png": "pointwise.png",
    "cost/cost.png": "cost.png",
    "figure-mlpd.png": "mlpd.png",
    "figure-mse.png": "mse.png",
    "figure-entropy.png": "entropy.png",
    "housing/ranks.png": "ranks-housing.png",
    "pima/mlpd.png": "pima-mlpd.png",
    "pima/accuracy.png": "pima-accuracy.png",
    "pima/precision.png": "pima-precision.png",
    "pima/recall.png": "pima-recall.png",
    "pima/f1.png": "pima-f1.png",
    "concrete/mlpd-with-projection-and-rate.png": "beyond-concrete.png",
    "housing/mlpd-with-projection-and-rate.png": "beyond-housing.png",
    "automobile/mlpd-with-projection-and-rate.png": "beyond-automobile.png",
}


def main() -> None:
    """Decide all claims anew, write the tables of the page and copy its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", type=Path, required=True, help="results with the long prior")
    parser.add_argument("--short", type=Path, required=True, help="results with the short prior")
    options = parser.parse_args()
    long, short = (_summary(folder) for folder in (options.long, options.short))
    page = with_table(PAGE.read_text(encoding="utf-8"), "claims", _claims(long, short))
    PAGE.write_text(with_table(page, "gains", _gains(options.long, options.short)), encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for source, name in PICTURES.items():
        if (options.long / source).is_file():
            shutil.copy(options.long / source, FIGURES / name)


def with_table(page: str, name: str, table: str) -> str:
    """Return the page with another table between the two marks of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.split(start)
    return f"{before}{start}\n\n{table}\n{end}{rest.split(end)[1]}"


def _summary(folder: Path) -> dict[str, Any]:
    summarise(folder)
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def _claims(long: dict[str, Any], short: dict[str, Any]) -> str:
    """One row a claim: the statement, the numbers and the verdict under both priors."""
    second = {claim["claim"]: claim for claim in short["claims"]}
    lines = ["| claim | the paper says | numbers | long prior | short prior |", "|---|---|---|---|---|"]
    for claim in long["claims"]:
        other = second.get(claim["claim"])
        verdicts = [_verdict(claim), "" if other is None else _verdict(other)]
        lines.append(
            f"| {claim['claim']} | {claim['statement']} | {format_value(claim['numbers'])} | {' | '.join(verdicts)} |"
        )
    return "\n".join(lines) + "\n"


def _verdict(claim: dict[str, Any]) -> str:
    answer = "holds" if claim["holds"] else "**does not hold**"
    return f"{answer}; {claim['remark']}" if claim.get("remark") else answer


def _gains(long: Path, short: Path) -> str:
    """Mean gain of KL and VAR over ARD in mlpd by size, both priors, with standard errors over the splits."""
    lines = ["| data set | prior | method | size 1 | 2 | 3 | 4 | 5 |", "|---|---|---|---|---|---|---|---|"]
    for name in TITLES:
        for prior, folder in (("long", long), ("short", short)):
            file = folder / name / "curves.csv"
            if not file.is_file():
                continue
            table = pd.read_csv(file).pivot_table(index="split", columns=["method", "size"], values="mlpd")
            for method in ("KL", "VAR"):
                cells = []
                for size in range(1, 6):
                    gain = table[method][size] - table["ARD"][size]
                    cells.append(f"{gain.mean():+.2f} ± {1.96 * gain.std() / len(gain) ** 0.5:.2f}")
                lines.append(f"| {TITLES[name]} | {prior} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
