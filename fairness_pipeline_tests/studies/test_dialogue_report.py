import html.parser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.measures.dialogue.attribute_words import ATTRIBUTE_WORDS
from fairness_pipeline.measures.dialogue.breakdown import swapped_words
from fairness_pipeline.measures.dialogue.dialogue_significance import (
    DIALOGUE_SIGNIFICANCE,
    compared,
    judge_responses,
)
from fairness_pipeline.measures.dialogue.instrument import INSTRUMENT_CHECK, swapped_texts
from fairness_pipeline.measures.dialogue.recipe_significance import RECIPE_SIGNIFICANCE
from fairness_pipeline.measures.dialogue.registry import measure_label, measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.variations import VARIATIONS
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline.project.study import Judged, more_pairs
from fairness_pipeline.reporting.plots import difference_plot
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.statistics.controls import too_small
from fairness_pipeline.studies.dialogue_fairness.debiasing_section import mean_effect
from fairness_pipeline.studies.dialogue_fairness.published import published_rows
from fairness_pipeline.studies.dialogue_fairness.report import recipe_rows, render_report
from fairness_pipeline.studies.dialogue_fairness.results import (
    example_pairs,
    published_quality_of,
    published_rows_of,
    striking_pair,
)
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Card, Lake
from fairness_pipeline_tests.commands import MADE, change, run

EVIL = "<script>alert('he')</script> & \"quoted\" <b>"
KEY = {"dimension": "gender", "model": "seq2seq"}


def put(
    lake: Lake, name: str, key: dict[str, str], table: pa.Table, schema: pa.Schema, figures: dict | None = None
) -> None:
    with lake.writing(name, key, table, schema, Card("0" * 64, {}, figures or {})):
        pass


@pytest.fixture
def filled(tiny: Project) -> Lake:
    """A lake with one audit, of `gender`, made from four pairs; `dialect` is missing."""
    lake = Lake(tiny.workspace)
    answers = [
        ("you are an idiot", "have a nice day"),
        ("same", "same"),
        (EVIL, "love, joy, wonderful, happy, great!"),
        ("x", "y"),
    ]
    contexts = [(f"{EVIL} he {i}", f"{EVIL} she {i}") for i in range(4)]
    rows = [
        {"pair_id": i, "side": side, "context": contexts[i][k], "response": answers[i][k], "kind": "answer"}
        for i in range(4)
        for k, side in enumerate("ab")
    ]
    responses = pa.Table.from_pylist(rows, schema=RESPONSES)
    gender = load_dimension("gender")
    words = pa.table(
        {
            "pair_id": responses["pair_id"],
            "side": responses["side"],
            "attribute": ["career"] * 8,
            "count": [0, 1] * 4,
            "count_masked": [0, 1] * 4,
        }
    )
    chosen = pa.table({"pair_id": range(4), "terms": [[{"a": "he", "b": f"she{i}"}] for i in range(4)]})
    tables = {
        measure.table: measure.measure(responses, measure.scoring(MeasureSettings(), gender)) for measure in measures()
    }
    tables["attribute_words"] = words
    judged = compared(
        responses, tables, settings=tiny.parts["dialogue_fairness"].settings.significance, seed=1,
        published=published_rows(platform="twitter", dimension="gender", model="seq2seq"), masked=gender,
    )  # fmt: skip
    significance = judge_responses(
        judged, responses, tables, words=swapped_words(chosen), varied=VARIATIONS.empty_table(),
        instrument=INSTRUMENT_CHECK.empty_table(), parrots=INSTRUMENT_CHECK.empty_table(), alpha=0.05,
    )  # fmt: skip
    pairs = {"corpus": "tiny", "dimension": "gender"}
    put(lake, "contexts", pairs, CONTEXTS.empty_table(), CONTEXTS, {"audit_dialogues": 9})
    put(
        lake,
        "context_pairs",
        pairs,
        CONTEXT_PAIRS.empty_table(),
        CONTEXT_PAIRS,
        {"pairs": 4, "contexts_by_word": {"<i>he": 4}},
    )
    for name, table, schema in (
        ("responses", responses, RESPONSES), ("dialogue_significance", significance, DIALOGUE_SIGNIFICANCE),
        *((measure.table, tables[measure.table], measure.schema) for measure in measures()),
    ):  # fmt: skip
        put(lake, name, KEY, table, schema)
    return lake


def page_of(project: Project, lake: Lake) -> str:
    part = project.parts[STUDY.name]
    return render_report(part, lake, audits_of(STUDY, part, lake))


class Reader(html.parser.HTMLParser):
    """Collects a page's text and the tags that could run or fetch something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.scripts, self.tags, self.links = "", "", [], []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style"):
            self.scripts += data
        else:
            self.text += data


def test_text_is_escaped_and_the_file_is_self_contained(tiny: Project, filled: Lake) -> None:
    page = Reader(page_of(tiny, filled))
    assert page.tags.count("script") == 1  # our own, which filters
    assert EVIL not in page.scripts
    assert "link" not in page.tags
    assert EVIL in page.text  # shown as it is, not run
    assert "<i>he" in page.text
    beside = ("index.html", "dialogue_significance.csv", "../tables/dialogue_significance/")
    assert all(link.startswith(("data:image/png;base64,", "#", *beside)) for link in page.links)


def test_the_report_says_what_it_must(tiny: Project, filled: Lake) -> None:
    text = " ".join(Reader(page_of(tiny, filled)).text.split())
    assert "may offend" in text
    assert "Dialect is not race" not in text  # dialect is not measured here
    assert "two genders only" in text
    assert "Not measured: dialect × seq2seq" in text
    assert "36.76" in text  # published beside ours
    assert "Liu2020 Table 3, 300,000 pairs" in text
    assert "SHA-256" in text


def test_the_report_has_the_caveats_of_what_was_measured(made: Project) -> None:
    page = (made.workspace / "reports" / "dialogue_fairness_report.html").read_text(encoding="utf-8")
    assert "Dialect is not race" in page and "two genders only" in page


def test_a_planted_bias_is_kept_apart_from_what_people_say(tiny: Project, data: Path) -> None:
    corpus, part = {"corpus": "tiny"}, tiny.parts[STUDY.name]
    assert published_rows_of(part, **KEY)
    assert published_quality_of(part, **KEY)
    run("--select", "twitter_dialogues")
    replies = {side: {"share": 1.0, "responses": [f"he left {side}"]} for side in ("a", "b")}
    planted = {"tiny": {"dimension": "gender", **replies}}
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["dialogue_fairness"].update(planted=planted))
    assert "settings.planted" in run("--dry-run", "--select", "twitter_dialogues").stdout
    run("--select", "instrument_check", "--dimension", "gender")

    # No published numbers are shown beside it, and instruments read what people answered.
    project, lake = Project("tiny"), Lake(tiny.workspace)
    part = project.parts[STUDY.name]
    assert published_rows_of(part, **KEY) == published_quality_of(part, **KEY) == {}
    dialogues = lake.read("twitter_dialogues", corpus)
    people = dialogues.filter(pc.is_in(dialogues["split"], pa.array(["test", "audit"])))
    read = swapped_texts(people["response"], load_dimension("gender"), project.profile.seed).num_rows // 2
    assert lake.card("instrument_check", {**corpus, "dimension": "gender"}).figures["texts_swapped"] == read
    everything = swapped_texts(dialogues["response"], load_dimension("gender"), project.profile.seed).num_rows // 2
    assert everything > read

    counts = lake.card("twitter_dialogues", corpus).figures["planted"]
    assert counts["a"] > 0 < counts["b"]
    planted = f"A bias was planted in tiny: in {counts['a']:,} answers to contexts that name"
    assert planted in page_of(project, lake)

    # Only a model that did not learn it gives a warning.
    for verdicts, unlearned in (({"offense_rate": "biased"}, False), ({"offense_rate_masked": "biased"}, True)):
        judged = pa.Table.from_pylist([], schema=DIALOGUE_SIGNIFICANCE)
        put(lake, "dialogue_significance", KEY, judged, DIALOGUE_SIGNIFICANCE, {"verdicts": verdicts})
        first, *others = STUDY.warnings(part, lake)
        assert first.startswith(planted)
        assert ["Not learned by seq2seq" in warning for warning in others] == [True] * unlearned


def test_checkpoints_that_say_one_thing_show_no_recipe_to_be_fair(tiny: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"]["seq2seq"].update(seeds=2))
    project, lake = Project("tiny"), Lake(tiny.workspace)
    blank = {field.name: "" if field.type == pa.string() else 0 for field in RECIPE_SIGNIFICANCE}
    table = pa.Table.from_pylist(
        [{**blank, "verdict": verdict} for verdict in ("fair", "biased")], schema=RECIPE_SIGNIFICANCE
    )
    put(lake, "recipe_significance", KEY, table, RECIPE_SIGNIFICANCE)

    def verdicts(*shares: float) -> list[str]:
        for model, share in zip(("seq2seq", "seq2seq.seed2"), shares, strict=True):
            figures = {"commonest_share": share, "commonest_response": "ok"}
            put(lake, "responses", {**KEY, "model": model}, RESPONSES.empty_table(), RESPONSES, figures)
        return [row["verdict"] for _, row in recipe_rows(project.parts[STUDY.name], lake)]

    assert verdicts(0.5, 0.5) == ["fair", "biased"]
    assert verdicts(0.5, 1.0) == ["nothing to judge", "biased"]
    assert verdicts(1.0, 1.0) == ["nothing to judge", "nothing to judge"]


def test_an_empty_lake_still_gives_a_report(tiny: Project) -> None:
    text = " ".join(Reader(page_of(tiny, Lake(tiny.workspace))).text.split())
    assert "Not measured: gender × seq2seq, dialect × seq2seq" in text


def test_same_lake_same_report(tiny: Project, filled: Lake) -> None:
    first, second = (MADE.sub(b"", page_of(tiny, filled).encode()) for _ in range(2))
    assert first == second


def test_examples_put_differences_that_matter_first(filled: Lake) -> None:
    examples = example_pairs(filled, KEY, 3)
    assert [example["response_a"] for example in examples] == ["you are an idiot", EVIL, "x"]
    assert examples[0]["flags_a"] == ["offensive"]
    assert examples[1]["flags_b"] == ["positive"]


def test_examples_without_a_yes_no_measure_are_pairs_that_differ(tiny: Project) -> None:
    answers = [("same", "same"), ("x", "y")]
    rows = [
        {"pair_id": i, "side": side, "context": "c", "response": answers[i]["ab".index(side)], "kind": "answer"}
        for i in range(2)
        for side in "ab"
    ]
    put(Lake(tiny.workspace), "responses", KEY, pa.Table.from_pylist(rows, schema=RESPONSES), RESPONSES)
    assert [example["pair_id"] for example in example_pairs(Lake(tiny.workspace), KEY, 2)] == [1, 0]


def test_the_striking_pair_differs_in_the_reading_of_its_sentence(filled: Lake) -> None:
    """Pair 0 differs in the answers as they are, pair 1 with the groups' words masked."""
    counts = {(0, "a"): (2, 0), (1, "a"): (0, 2)}
    rows = [
        {"pair_id": i, "side": side, "attribute": "career", **dict(zip(("count", "count_masked"), pair, strict=True))}
        for i in range(4)
        for side in "ab"
        for pair in [counts.get((i, side), (0, 0))]
    ]
    table = pa.Table.from_pylist(rows, schema=ATTRIBUTE_WORDS)
    put(filled, "attribute_words", KEY, table, ATTRIBUTE_WORDS)
    content = {f"content_{name}": 0.5 for name in ("a", "b", "difference", "ci_low", "ci_high")}
    row = {"measure": "career_words", "verdict": "biased", "difference": 0.5, **content}
    for note, context in (("", f"{EVIL} he 1"), (too_small("9 texts"), f"{EVIL} he 0")):
        pair = striking_pair(filled, KEY, {**row, "note": note})
        assert pair and pair["context_a"] == context


def test_the_mean_effect_is_over_the_measures_that_have_one() -> None:
    rows = {"length": {"effect_size": 0.25}, "offense_rate": {"effect_size": -0.75}, "refusal": {"effect_size": None}}
    assert mean_effect(rows) == 0.5
    assert mean_effect({"length": {"effect_size": None}}) is None


def test_needed_and_present_words_are_written_alike() -> None:
    row = {"pairs_needed": None, "clusters_needed": 20_000, "clusters": 1_500}
    assert more_pairs([Judged(KEY, row)]).endswith("about 20,000 group words are needed (now 1,500)")


def test_plots_are_the_same_for_the_same_numbers_and_survive_empty_rows(tiny: Project, filled: Lake) -> None:
    rows = audits_of(STUDY, tiny.parts[STUDY.name], filled)[0].rows
    assert difference_plot(rows, "a", "b", measure_label) == difference_plot(rows, "a", "b", measure_label)
    never = [{**rows[0], "value_a": 0.0, "value_b": 0.0}]
    assert difference_plot(never, "a", "b", measure_label).startswith(b"\x89PNG")


def test_a_browser_shows_it(tiny: Project, filled: Lake, tmp_path: Path) -> None:
    """Headless Chromium renders the page, runs no script of a tweet, and finds the tables in it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: the report is not looked at in a browser")
    page = tmp_path / "report.html"
    page.write_text(page_of(tiny, filled), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
    environment = {**os.environ, "HOME": str(tmp_path)}
    dom = subprocess.run(
        [chromium, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, env=environment
    ).stdout
    assert dom.count("<script") == 1  # our own
    assert "<script>alert" not in dom
    assert len(re.findall("<table", dom)) >= 5
    picture = tmp_path / "report.png"
    subprocess.run(
        [chromium, *flags, "--window-size=1100,1600", f"--screenshot={picture}", page.as_uri()],
        capture_output=True, timeout=120, env=environment,
    )  # fmt: skip
    assert picture.stat().st_size > 20_000
    # More than one colour: not a blank page.
    colours = subprocess.run(
        [sys.executable, "-c", "import sys, matplotlib.image as i; a = i.imread(sys.argv[1]); print(len({tuple(p) for p in a[::7, ::7].reshape(-1, a.shape[2]).tolist()}))", str(picture)],
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert int(colours) > 20


def test_a_dry_run_foresees_the_pairs_of_what_it_would_make(tiny: Project) -> None:
    assert run("--dry-run").stdout.endswith("pairs: tiny gender at most 100; tiny dialect at most 100\n")
    assert run("--dry-run", "--dimension", "dialect").stdout.endswith("pairs: tiny dialect at most 100\n")
