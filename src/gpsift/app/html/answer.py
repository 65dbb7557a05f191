"""What was asked and answered, in two sentences, and one more of a test."""

from __future__ import annotations

from markupsafe import Markup

from gpsift._utils.words import percent_as_given
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.cautions import leaders
from gpsift.app.html.sheet import predicts
from gpsift.app.html.words import count, listed, tag
from gpsift.relevance.ranking import Ranking


def answer(analysis: Analysis) -> list[Markup]:
    """Which columns matter most and how many are enough; first of all, whether the model explains anything."""
    target = tag(analysis.target)
    if not analysis.model.quality.explains:
        return [
            Markup(
                "The model explains nothing of {}: rows that it has not seen are predicted no better than without any "
                "inputs, or not by more than fitting noise would give."
            ).format(target),
            Markup("The order of the columns below therefore says how this model reacts, and little about the data."),
        ]
    ranking = analysis.leading
    names = leaders(ranking)
    if not names:
        first = Markup("The prediction of {} reacts to none of the {}.").format(target, _columns(ranking))
    else:
        verb = "matters" if len(names) == 1 else "matter"
        first = Markup("For {}, {} {} most among {}.").format(target, listed(names), verb, _columns(ranking))
    return [first, Markup("{}, {}.").format(_enough(analysis), predicts(analysis))]


def tested(analysis: Analysis) -> Markup:
    """What a test has shown, with its rate; empty where there was none."""
    found = analysis.tested
    if found is None:
        return Markup("")
    n, rate = int(found.found.sum()), percent_as_given(found.rate)
    if n == 0:
        text = Markup("Tested column by column, none of {} is shown to matter given all others, at a rate of {}.")
        return text.format(count(found.n_features, "column"), rate)
    verb = "is" if n == 1 else "are"
    text = Markup(
        "Tested column by column, {} {} shown to matter given all others; of such columns at most {} are "
        "expected to be false."
    )
    return text.format(listed(found.discoveries, 8), verb, rate)


def _columns(ranking: Ranking) -> str:
    return count(len(ranking.names), "column")


def _enough(analysis: Analysis) -> Markup:
    path, names = analysis.path, analysis.selected
    if path is None:
        return Markup("How many are enough was not searched")
    if names is None:
        return Markup("No smaller model on the path predicts as well as the one with all {}").format(path.n_units)
    if not path.explains:
        return Markup("None of the {} is shown to help").format(path.n_units)
    if not names:
        return Markup("None of the {} is needed to predict as well as all of them do").format(path.n_units)
    if len(names) == path.n_units:
        return Markup("All {} are needed").format(path.n_units)
    verb = "is" if len(names) == 1 else "are"
    return Markup("{} of the {} {} enough ({})").format(len(names), path.n_units, verb, listed(names, 8))
