"""The page as text: what it says, that it is safe, and how large it is. `test_page_browser.py` opens it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import page_cases
import pandas as pd
import pytest
from optional import need

from gpsift._utils.parallel import Work
from gpsift.app.analysis.cautions import find_ard_disagreements, find_uneven_columns, leaders
from gpsift.app.analysis.parts import add_effects
from gpsift.app.analysis.rows import color_rank, subsample
from gpsift.app.findings import Finding, FindingKind, ordinal
from gpsift.app.html import page_text, write_page
from gpsift.app.html.charts import ramp, swarm
from gpsift.app.html.render import script_data
from gpsift.app.html.table import relevance_table
from gpsift.app.html.text import align, number, percent, sentence, shorten, tag, value_text

VOID = {"meta", "img", "br", "hr", "input", "link"}


class Outline(HTMLParser):
    """Elements, attributes and text of a page; text of scripts and styles is kept apart."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: dict[str, str] = {}
        self.sections: dict[str, str] = {}
        self.scripts: list[str] = []
        self._section = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self._section = dict(attrs)["id"]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} closes something else"

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.sections[self._section] = self.sections.get(self._section, "") + data

    def words(self, section: str) -> str:
        return " ".join(self.sections[section].split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for each, attrs in self.elements if each == tag]

    @property
    def data(self):
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def page():
    return Outline(page_text(page_cases.regression()))


def outline(analysis):
    return Outline(page_text(analysis))


def test_every_element_is_closed_and_parts_come_in_order(page):
    assert page.open == []
    parts = [attrs["id"] for attrs in page.all("section")]
    assert parts == ["answer", "data", "relevance", "pointwise", "sizes", "stability", "local", "repeat"]


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1


def test_ids_are_unique_and_references_lead_somewhere(page):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attribute in ("aria-labelledby", "aria-controls", "for"):
        for _, attrs in page.elements:
            assert attrs.get(attribute) is None or attrs[attribute] in ids
    assert {attrs["href"][1:] for attrs in page.all("a")} <= set(ids)


def test_table_headings_have_a_scope_and_the_first_says_how_it_is_sorted(page):
    heads = page.all("th")
    assert heads
    assert {attrs.get("scope") for attrs in heads} == {"col", "row"}
    assert [attrs["aria-sort"] for attrs in heads if "aria-sort" in attrs][:3] == ["ascending", "none", "none"]


def test_pictures_have_words(page):
    plots = [attrs for attrs in page.all("div") if attrs.get("class") == "plot"]
    assert len(plots) == 3
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 40 for attrs in plots)


def test_nothing_is_asked_of_anywhere(page):
    for _, attrs in page.elements:
        assert not {"src", "srcset", "action", "poster", "data"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
    policy = next(attrs["content"] for attrs in page.all("meta") if "http-equiv" in attrs)
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 3
    assert "unsafe-eval" not in policy


def test_answer_names_the_columns_the_size_and_the_quality(page):
    analysis = page_cases.regression()
    words = page.words("answer")
    assert all(name in words for name in leaders(analysis.leading))
    assert f"{len(analysis.selected)} of the 8 are enough" in words
    assert f"{100 * analysis.model.quality.loo_r2:.0f} % of the variance" in words


def test_a_model_that_explains_nothing_says_so_first():
    found = outline(page_cases.noise())
    words = found.words("answer").removeprefix("Which columns matter, and how sure is that? ")
    assert words.startswith("The model explains nothing of y")
    assert "Do not act on the order of the columns" in words
    assert not [attrs for attrs in found.all("ul") if attrs.get("class") == "columns"]


def test_sheet_has_rows_kernel_quality_and_cautions(page):
    words = page.words("data")
    for expected in ("Rows90", "Columns8", "squared exponential + constant", "normal noise", "exact"):
        assert expected in words.replace("Rows 90", "Rows90").replace("Columns 8", "Columns8")
    assert "Columns that go together. x1 and x2 (+0.97). Each can stand in for the other" in words


def test_relevance_table_holds_the_scores_of_the_rankings():
    analysis = page_cases.regression()
    table = relevance_table(analysis)
    ranking = analysis.leading
    assert [column.name for column in table.columns] == [ranking.names[j] for j in ranking.order]
    np.testing.assert_allclose([c.score.value for c in table.columns], ranking.scores[ranking.order])
    heads = [head.text for head in table.heads]
    assert heads == ["moves mean", "moves variance", "share", "√VAR", "ARD", "ARD rank", "max / mean"]
    roots = [column.cells[heads.index("√VAR")].value for column in table.columns]
    np.testing.assert_allclose(roots, np.sqrt(analysis.rankings["VAR"].scores[ranking.order]))
    shares = [column.cells[heads.index("share")].value for column in table.columns]
    np.testing.assert_allclose(shares, analysis.rankings["VAR"].effect_shares[ranking.order])
    first = table.columns[0]
    assert sum(width for _, width in first.bars) == pytest.approx(100, abs=0.02)
    assert first.cells[0].value + first.cells[1].value == pytest.approx(1)


def test_ard_is_flagged_where_it_disagrees_with_all_others():
    analysis = page_cases.regression()
    names, p = analysis.leading.names, len(analysis.leading.names)
    scores = np.linspace(1.0, 0.3, p)
    kl = replace(analysis.leading, scores=scores)
    var = replace(analysis.rankings["VAR"], scores=scores**2)
    ard = replace(analysis.rankings["ARD"], scores=np.where(np.arange(p) == 0, 0.05, scores))
    found = find_ard_disagreements({"KL": kl, "VAR": var, "ARD": ard})
    assert [each.data["column"] for each in found] == [names[0]]
    assert found[0].detail.startswith("ARD places it 8th, KL 1st and VAR 1st: a long length-scale")
    ard = replace(ard, scores=np.where(np.arange(p) == p - 1, 2.0, scores))
    found = {each.data["column"]: each for each in find_ard_disagreements({"KL": kl, "VAR": var, "ARD": ard})}
    assert "short length-scale with a small effect" in found[names[-1]].detail
    # One of the others on ARD's side: nothing to flag.
    assert find_ard_disagreements({"KL": kl, "VAR": replace(var, scores=ard.scores), "ARD": ard}) == []


def test_columns_that_matter_for_few_rows_are_named():
    analysis = page_cases.regression()
    pointwise = np.full_like(analysis.leading.pointwise, 0.1)
    pointwise[:, 0] = 1.0
    pointwise[7, 3] = 2.0
    pointwise[7, 4] = 0.45  # uneven too, but small beside the others
    ranking = replace(analysis.leading, pointwise=pointwise, scores=pointwise.mean(axis=0), terms={})
    assert [each.data["column"] for each in find_uneven_columns(ranking)] == ["x4"]
    words = outline(replace(analysis, rankings={"KL": ranking})).words("relevance")
    assert "x4 matters much for few rows and little for most." in words
    assert "x4: it matters for few rows: its largest value is 17 times its mean." in words


def test_draws_give_intervals_and_probabilities():
    need("nutpie")
    analysis = page_cases.drawn()
    table = relevance_table(analysis)
    heads = [head.text for head in table.heads]
    assert heads[2:5] == ["strength", "90 % interval", "P(rank ≤ 1)"]
    chances = [column.cells[4].value for column in table.columns]
    assert sum(chances) == pytest.approx(1)
    assert "8 draws from their posterior" in outline(analysis).words("data")


def test_a_column_that_is_not_used_has_an_interval_and_nothing_else():
    analysis = page_cases.regression()
    leading = analysis.leading
    used = leading.scores > leading.scores.min()
    draws = leading.scores * np.linspace(0.5, 1.5, 11)[:, None]
    drawn = replace(leading, draws=draws, used=used, slopes=np.zeros(len(used)))
    table = relevance_table(replace(analysis, rankings={"KL": drawn}))
    last = table.columns[-1]
    shown = [head.text for head, cell in zip(table.heads, last.cells, strict=True) if cell.text != "–"]
    assert last.score.text == "not used"
    assert shown == ["strength", "90 % interval", f"P(rank ≤ {analysis.n_first})"]


def test_dots_are_the_pointwise_scores(page):
    ranking = page_cases.regression().leading
    rows = page.data["rows"]
    assert rows["names"] == [ranking.names[j] for j in ranking.order]
    np.testing.assert_allclose(np.array(rows["relevance"]).T, ranking.pointwise[:, ranking.order], rtol=6e-3)
    shares = ranking.terms["mean"] / (ranking.terms["mean"] + ranking.terms["variance"])
    np.testing.assert_allclose(np.array(rows["meanShare"]).T, shares[:, ranking.order], atol=6e-3)


def test_rows_show_values_prediction_and_observation(page):
    analysis = page_cases.regression()
    rows = page.data["rows"]
    prediction = analysis.model.predict(analysis.X[3:4])
    assert rows["predictions"][3].startswith(f"{number(prediction.mean[0])} (90 % between")
    assert rows["observed"][3] == value_text(analysis.y[3])
    assert rows["values"][0][3] == value_text(analysis.rows[rows["names"][0]][3])


def test_a_ranking_at_some_rows_shows_those_rows():
    analysis = page_cases.regression()
    chosen = np.array([5, 20, 80])
    leading = page_cases.rankings(analysis.model, analysis.X, points=chosen)["KL"]
    rows = outline(replace(analysis, rankings={"KL": leading})).data["rows"]
    assert rows["labels"] == ["5", "20", "80"]
    assert rows["observed"] == [value_text(value) for value in analysis.y[chosen]]


def test_search_and_stability_are_shown_or_explained(page):
    analysis = page_cases.regression()
    words = page.words("sizes")
    assert "By the rule one-se" in words
    assert "±" in words
    assert "+-" not in words
    assert "6 random samples of 60 rows" in page.words("stability")
    assert set(page.data["figures"]) == {"strips", "curve", "ranks"}
    bare = outline(replace(analysis, path=None, stability=None))
    assert "gs.search(X, y)" in bare.words("sizes")
    assert "gs.stability(X, y)" in bare.words("stability")
    assert set(bare.data["figures"]) == {"strips"}
    assert "was not searched" in bare.words("answer")


def test_a_search_that_was_not_made_says_why():
    unsearched = Finding(FindingKind.NOT_SEARCHED, {"n_columns": "<many>", "most": 300})
    analysis = replace(page_cases.regression(), path=None, unsearched=unsearched)
    words = Outline(page_text(analysis)).words("sizes")
    assert "No submodels were searched: this order tries every column, and there are <many>, more than 300." in words
    assert "gpsift select" not in words


def test_sizes_that_are_no_number_of_columns():
    analysis = page_cases.regression()
    suggestion = analysis.path.suggestion
    for size, expected in ((None, "No size qualifies"), (0, "No column is needed")):
        verdict = replace(suggestion.by_rule[suggestion.rule], size=size)
        changed = replace(suggestion, features=(), by_rule={suggestion.rule: verdict})
        found = outline(replace(analysis, path=replace(analysis.path, suggestion=changed)))
        assert expected in found.words("sizes")
    found = outline(replace(analysis, path=replace(analysis.path, suggestion=None)))
    assert "No smaller model on the path predicts as well" in found.words("answer")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_and_categories(n_classes):
    analysis = page_cases.classes(n_classes)
    found = outline(analysis)
    assert "names the right class for" in found.words("answer")
    assert "low <i>" in found.words("data")
    assert "1 with categories: colour" in found.words("data")
    rows = found.data["rows"]
    assert set(rows["values"][rows["names"].index("colour")]) == {"blue", "green", "red"}
    assert re.fullmatch(r"(low <i>|middle|top) with probability [<>]?\d+ %", rows["predictions"][0])
    assert rows["meanShare"] is None


def test_counts():
    found = outline(page_cases.counts())
    assert "Poisson" in found.words("data")
    assert "90 % between" in found.data["rows"]["predictions"][0]


def test_words_say_what_the_leading_score_is():
    analysis = page_cases.regression()
    by_kl = outline(analysis)
    assert "The KL score says how strongly the prediction reacts to a column" in by_kl.words("relevance")
    assert "strength of reaction at the row" in json.dumps(by_kl.data["figures"]["strips"])
    by_var = outline(replace(analysis, rankings={"VAR": analysis.rankings["VAR"]}))
    assert "The VAR score says how much the predicted mean varies with a column" in by_var.words("relevance")
    assert "The share is one of variance" in by_var.words("relevance")
    assert "variance of the mean at the row" in json.dumps(by_var.data["figures"]["strips"])
    by_ard = outline(replace(analysis, rankings={"ARD": analysis.rankings["ARD"]}))
    assert "The ARD score says how relevant a column is" in by_ard.words("relevance")
    assert "share is one of variance" not in by_ard.words("relevance")


def test_a_measure_without_pointwise_scores_says_so():
    analysis = page_cases.regression()
    found = outline(replace(analysis, rankings={"ARD": analysis.rankings["ARD"]}))
    assert "ARD() scores the model as a whole" in found.words("pointwise")
    assert found.data["rows"] is None


def test_repetition_has_command_seed_versions_and_citation(page):
    words = page.words("repeat")
    for expected in (
        "gpsift analyse toy.csv --target outcome",
        "numpy",
        "1.25 seconds",
        "PMLR 89, 1743–1752",
        "Paananen",
    ):
        assert expected in words


def test_hostile_names_and_values_stay_text():
    analysis = page_cases.hostile()
    text = page_text(analysis)
    found = Outline(text)
    assert found.open == []
    assert len(found.all("script")) == 4
    assert not found.all("img")
    assert not [attrs for attrs in found.all("b") if attrs]
    assert "alert(" not in "".join(found.scripts[1:])
    assert not [attrs for _, attrs in found.elements if any(key.startswith("on") for key in attrs)]
    assert sorted(found.data["rows"]["names"]) == sorted(page_cases.HOSTILE)
    assert "<script>alert(1)</script>" in found.words("relevance")
    assert "температура воздуха" in found.words("relevance")
    titles = [attrs.get("title") for attrs in found.all("span") if attrs.get("class") == "name"]
    assert page_cases.HOSTILE[3] in titles
    data = text.split('id="page-data">')[1].split("</script>")[0]
    assert "<" not in data


def test_script_data_has_no_bracket_and_reads_back():
    data = {"</script><!--": ["<b>&", "\u2028", 1.5, None]}
    text = script_data(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


def test_script_data_refuses_what_is_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_data([float("nan")])


def test_a_missing_value_of_a_row_is_a_dash():
    analysis = page_cases.regression()
    rows = analysis.rows.copy()
    rows.loc[4, "x1"] = np.nan
    found = outline(replace(analysis, rows=rows)).data["rows"]
    assert found["values"][found["names"].index("x1")][4] == "–"


def test_size_of_five_hundred_rows_and_a_hundred_columns(tmp_path):
    analysis = add_effects(page_cases.sized(500, 100, n_fit=60), work=Work(progress=False))
    assert analysis.column_effects is not None
    path = write_page(analysis, tmp_path / "page.html")
    assert path.stat().st_size < 4e6
    text = path.read_text(encoding="utf-8")
    assert "The 20 most relevant of 100 columns" in Outline(text).words("pointwise")


def test_many_rows_are_thinned_and_the_page_says_so(tmp_path):
    analysis = page_cases.sized(20_000, 12)
    path = write_page(analysis, tmp_path / "page.html")
    assert path.stat().st_size < 4e6
    found = Outline(path.read_text(encoding="utf-8"))
    assert "2,000 of 20,000 rows are shown, drawn at random with seed 0" in found.words("pointwise")
    rows = found.data["rows"]
    assert len(rows["labels"]) == 2000
    np.testing.assert_allclose(sorted(rows["average"]), sorted(analysis.leading.scores), rtol=6e-3)


def test_thinning_keeps_order_and_follows_the_seed():
    assert subsample(100, 5, 0).tolist() == list(range(100))
    first = subsample(5000, 5, 0)
    assert np.all(np.diff(first) > 0)
    assert np.array_equal(first, subsample(5000, 5, 0))
    assert not np.array_equal(first, subsample(5000, 5, 1))
    assert len(subsample(5000, 1000, 0)) == 30


def test_file_is_replaced_whole_and_nothing_is_left_behind(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_page(page_cases.counts(), path)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    monkeypatch.undo()
    assert write_page(page_cases.counts(), str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_numbers_as_a_reader_meets_them():
    assert [number(v) for v in (0.0, 0.1234, -12.345, 1234.5, 2e-7, 3e6, np.nan)] == [
        "0", "0.123", "−12.3", "1234", "2.00e−7", "3.00e6", "–",
    ]  # fmt: skip
    assert [percent(v) for v in (0, 0.001, 0.5, 0.999, 1, -0.2)] == ["0 %", "<1 %", "50 %", ">99 %", "100 %", "−20 %"]
    assert align([0.5, 0.0301, 1e-6, 0.0, np.nan]) == ["0.500", "0.030", "<0.001", "0.000", "–"]
    assert [value_text(v) for v in (1200.0, 3, True, 0.12345678, 1234.56, "a\nb")] == [
        "1200",
        "3",
        "True",
        "0.1235",
        "1234.6",
        "a b",
    ]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)] == ["1st", "2nd", "3rd", "4th", "11th", "22nd", "113th"]
    assert sentence("x1 is -0.6 +- 1.3 behind") == "x1 is −0.6 ± 1.3 behind."


def test_names_are_shortened_in_the_middle_with_the_whole_in_the_title():
    assert shorten("a" * 30 + "b" * 30, 12) == "aaaaaaa…bbbb"
    assert tag("x<y") == '<span class="name">x&lt;y</span>'
    assert tag('"' * 40).count("&#34;") == 40 + 31


def test_swarm_keeps_equal_values_apart_and_inside_the_strip():
    assert len(set(swarm(np.zeros(5), 1.0))) == 5
    assert np.abs(swarm(np.zeros(999), 1.0)).max() <= 0.4 + 1e-12
    assert np.all(swarm(np.array([0.1, 0.5, 0.9]), 1.0) == 0)


def test_shades_go_by_rank_and_by_level():
    assert color_rank(pd.Series([1.0, 1000.0, 2.0])).tolist() == [0, 1, 0.5]
    assert color_rank(pd.Series(["b", "a", "c"])).tolist() == [0.5, 0, 1]
    assert color_rank(pd.Series([2.0, 2.0])).tolist() == [0.5, 0.5]


def test_colours_of_the_legend_are_those_of_the_dots():
    from gpsift.app.html.render import read_asset

    colours = ramp(3)
    assert f"linear-gradient(90deg, {', '.join(colours)})" in read_asset("page.css")
    lightness = [0.2126 * int(c[1:3], 16) + 0.7152 * int(c[3:5], 16) + 0.0722 * int(c[5:], 16) for c in ramp()]
    assert np.all(np.diff(lightness) > 0)
