"""What the experiment found: means with intervals, differences to ARD, chosen sizes, and the picture.

Reads the tidy tables that `recovery.py` writes; computes nothing that is not in them.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from gpsift.paper.reproduce.claims import plain_interval

METHOD_ORDER = ("KL", "VAR", "DGSM", "RATE", "ARD", "projection", "SHAP", "permutation, training", "permutation, fresh")
AGAINST = ("ARD", "KL")
SCORES = {"share": "share of the true features among the first k", "auc": "area under the ROC curve"}
START, END = "<!-- tables -->", "<!-- end of tables -->"  # around the tables of RESULTS.md
STYLES = {"ML2": ("C0", -0.15), "MAP": ("C1", 0.15)}  # colour, and how far above its line


def report(scores: pd.DataFrame, chosen: pd.DataFrame, fits: pd.DataFrame, out: Path) -> None:
    """Tidy tables, the same in words, and the picture."""
    packages = ("gpsift", "numpy", "scipy", "scikit-learn")
    text = [
        f"Made by experiments/recovery/recovery.py with {', '.join(f'{name} {version(name)}' for name in packages)}."
    ]
    for name, table in (("scores", scores), ("sizes", chosen), ("fits", fits)):
        if len(table):
            table.convert_dtypes().to_csv(out / f"{name}.csv", index=False, float_format="%.4g")
    if len(fits):
        means = fits.drop(columns="seed").groupby(["hyper", "setting"], sort=False).mean()
        text.append(f"## The fits\n\n```text\n{means.round(2).to_string()}\n```")
        found = summary(scores)
        for hyper in dict.fromkeys(found.hyper):
            for score, words in SCORES.items():
                text.append(f"## {hyper}: {words}\n\n{score_table(found, hyper, score)}")
                for other in AGAINST:
                    text.append(f"Difference to {other}:\n\n{score_table(found, hyper, score, against=other)}")
            for setting in dict.fromkeys(found.setting):
                text.append(f"## {hyper}, {setting}: each feature\n\n{feature_table(scores, hyper, setting)}")
        text.append("## Was it as expected?\n\n" + "\n".join(f"- {line}" for line in verdicts(found)))
        picture(found, out / "recovery.png")
    for hyper in dict.fromkeys(chosen["hyper"] if len(chosen) else ()):
        text.append(f"## {hyper}: mean size, share within 1 of the truth, share without\n\n{size_table(chosen, hyper)}")
    write_tables(out / "RESULTS.md", "\n\n".join(text))
    print("\n\n".join(text))


def write_tables(page: Path, tables: str) -> None:
    """Write the tables between the marks of the page, or into a new page."""
    before, _, rest = page.read_text().partition(START) if page.exists() else ("", "", "")
    after = rest.partition(END)[2] or "\n"
    page.write_text(f"{before}{START}\n\n{tables}\n\n{END}{after}")


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean and 95 % interval of each score, and of its paired differences to ARD and KL, by fit, setting and method."""
    rows = []
    for (hyper, setting), part in scores.groupby(["hyper", "setting"], sort=False):
        for score in SCORES:
            wide = part.pivot(index="seed", columns="method", values=score)
            for method in (name for name in METHOD_ORDER if name in wide):
                values = wide[method].dropna()
                row = {"hyper": hyper, "setting": setting, "score": score, "method": method, "seeds": len(values)}
                row |= vars(plain_interval(values.to_numpy()))
                for other in AGAINST:
                    paired = plain_interval((values - wide.loc[values.index, other]).to_numpy())
                    row |= {f"{name}_{other}": value for name, value in vars(paired).items()}
                rows.append(row)
    return pd.DataFrame(rows)


def score_table(found: pd.DataFrame, hyper: str, score: str, *, against: str | None = None) -> str:
    """Methods by settings: mean +- half of the interval; differences clear of 0 are bold."""
    part = found[(found.hyper == hyper) & (found.score == score) & (found.method != against)]
    settings = list(dict.fromkeys(part.setting))
    lines = [f"| | data sets | {' | '.join(settings)} |", "|---|---|" + "---|" * len(settings)]
    for method, own in part.groupby("method", sort=False):
        cells = [_cell(row, score, against) for row in own.set_index("setting").loc[settings].to_dict("records")]
        lines.append(f"| {method} | {own.seeds.max()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any], score: str, against: str | None) -> str:
    digits = 3 if score == "auc" else 2  # most AUC are near 1
    if against is None:
        return f"{row['mean']:.{digits}f} ± {row['high'] - row['mean']:.{digits}f}"
    mean, low, high = (row[f"{name}_{against}"] for name in ("mean", "low", "high"))
    text = f"{mean:+.{digits}f} ± {high - mean:.{digits}f}"
    return f"**{text}**" if low > 0 or high < 0 else text


def feature_table(scores: pd.DataFrame, hyper: str, setting: str) -> str:
    """Methods by true features: the share of data sets in which the feature is among the first k."""
    part = scores[(scores.hyper == hyper) & (scores.setting == setting)]
    k = max(int(number) for found in part.found for number in found.split())
    lines = [f"| | {' | '.join(str(number) for number in range(1, k + 1))} |", "|---|" + "---|" * k]
    for method in (name for name in METHOD_ORDER if name in set(part.method)):
        found = [each.split() for each in part[part.method == method].found]
        shares = [np.mean([str(number) in each for each in found]) for number in range(1, k + 1)]
        lines.append(f"| {method} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    return "\n".join(lines)


def size_table(chosen: pd.DataFrame, hyper: str) -> str:
    """Rules by settings: mean size where there is one; share within 1 of the truth; share without a size."""
    part = chosen[chosen.hyper == hyper]
    settings = list(dict.fromkeys(part.setting))
    lines = [f"| held out | rule | data sets | {' | '.join(settings)} |", "|---|---|---|" + "---|" * len(settings)]
    for (cv, rule), own in part.groupby(["cv", "rule"], sort=False):
        cells = []
        for setting in settings:
            rows = own[own.setting == setting]
            near = (rows["size"] - rows.truth).abs() <= 1  # no size is not near
            mean = "none" if rows["size"].isna().all() else f"{rows['size'].mean():.1f}"
            cells.append(f"{mean}, {near.mean():.0%}, {rows['size'].isna().mean():.0%}")
        lines.append(f"| {cv} | {rule} | {own.seed.nunique()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdicts(found: pd.DataFrame) -> list[str]:
    """On how many settings KL and VAR are above, or below, ARD with the interval clear of 0."""
    lines = []
    for (hyper, score, method), rows in found.groupby(["hyper", "score", "method"], sort=False):
        if method in ("KL", "VAR"):
            above, below = (rows.low_ARD > 0).sum(), (rows.high_ARD < 0).sum()
            lines.append(f"{hyper}, {score}: {method} above ARD on {above} of {len(rows)} settings, below on {below}")
    return lines


def picture(found: pd.DataFrame, path: Path) -> None:
    """Dots with 95 % intervals: a panel for each score and setting, a row for each method, a colour for each fit."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    settings = list(dict.fromkeys(found.setting))
    methods = [method for method in METHOD_ORDER if method in set(found.method)]
    figure, axes = plt.subplots(
        2,
        len(settings),
        figsize=(2.9 * len(settings), 5.6),
        sharey=True,
        sharex="row",
        squeeze=False,
        layout="constrained",
    )
    panels = {(score, setting): axes[i, j] for i, score in enumerate(SCORES) for j, setting in enumerate(settings)}
    for (score, setting, hyper), part in found.groupby(["score", "setting", "hyper"], sort=False):
        ax, colour, shift = panels[score, setting], *STYLES[hyper]
        y = np.array([methods.index(method) for method in part.method]) + shift
        error = np.abs(part[["low", "high"]].sub(part["mean"], axis=0)).to_numpy().T
        ax.errorbar(part["mean"], y, xerr=error, fmt="o", ms=4, lw=1.2, color=colour, label=f"{hyper}()")
        ax.axvline(part["mean"][part.method == "ARD"].item(), color=colour, lw=0.8, ls=":", zorder=0)
        ax.grid(axis="y", color="0.92")
        ax.set(title=setting, xlabel="share found" if score == "share" else "AUC")
    axes[0, 0].set(xlim=(0.3, 1.02), yticks=range(len(methods)), yticklabels=methods)
    axes[1, 0].set(xlim=(0.7, 1.02))
    axes[0, 0].invert_yaxis()
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=130)
