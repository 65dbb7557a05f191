"""One spelling, British, in what people read: pages, comments, docstrings, messages. Names in code keep theirs."""

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

AMERICAN = re.compile(
    r"\b(?:\w*(?:standardi|normali|optimi|regulari|initiali|parametri|parameteri|summari|minimi|maximi|recogni|generali|"
    r"factori|vectori|marginali|penali|randomi)z(?:e|ing|ation)\w*"
    r"|color\w*|behavior\w*|neighbor\w*|favor\w*|center(?:s|ed|ing)?|gray|analyz\w+|modeled|modeling|labeled|labeling|"
    r"canceled|canceling|traveling|catalog)\b",
    re.IGNORECASE,
)
# Titles of publications and data sets, and names of other libraries.
QUOTED = (
    "Rank-normalization",
    "Modeling slump",
    "Unnormalized",
    "normalized-losses",
    "Standardize",
    "without normalizer",
    "A randomized Halton",
    "Bayesian optimization with sparse",
    "Numerical Optimization",
    "Inference for the generalization error",
    "for the generalized Pareto",
)
# Code within text: `names`, calls, arguments, attributes, and terms of formulas.
CODE = re.compile(
    r"`[^`]*`|[\w.]*(?:\w_|_\w|\w\.\w)[\w.]*|\b\w+(?=[=(])|(?<=[.(])\w+|https?://\S+|(?<=[-+*/] )\w+|\b\w+(?= [-+*/] )"
)
FIELDS = re.compile(r"^\s*[\w, ]+ : .*$", re.MULTILINE)  # of a numpydoc list: "center, sd : array (p,)"


def american(text):
    for quoted in QUOTED:
        text = text.replace(quoted, "")
    return AMERICAN.findall(CODE.sub("", FIELDS.sub("", text)))


def prose(path):
    """Comments, and strings of more than one word, without examples."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
                yield token.start[0], re.sub(r"^\s*(?:>>>|\.\.\. ).*$", "", token.string, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_is_in_british_spelling(page):
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert american(text) == []


def test_source_is_in_british_spelling():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(words)}"
        for path in SOURCES
        for line, text in prose(path)
        if (words := american(text))
    ]
    assert not found, "\n".join(found)
