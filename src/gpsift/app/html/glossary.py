"""Words of the field that the page explains to whoever asks."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, str] = {
    "strength": "How much the prediction shifts when the column moves by one of its standard deviations and all others "
    "stay, in standard deviations of the prediction itself: the measure KL.",
    "matters": "Each column was put in the place of values that it could have had, given all others, on rows that the "
    "models had not seen. It is shown to matter if its own values predict better than those by more than chance "
    "allows. Of the columns named like this, on average at most the rate is wrong. One that others can stand in for "
    "may be strong and not be shown to matter by itself.",
    "KL": "Kullback-Leibler divergence: how far two predictions are apart. The score is how fast they part as the "
    "column moves.",
    "VAR": "The variance of the predicted mean as the column takes the values that it could have, given the others.",
    "ARD": "Automatic relevance determination: the inverse length-scale, how quickly the function may bend.",
    "elpd": "Expected log predictive density: the sum, over rows that the model has not seen, of the logarithm of how "
    "probable it had called what was seen. Higher is better.",
}
