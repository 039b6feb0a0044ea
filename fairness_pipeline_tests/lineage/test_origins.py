"""Why two runs found different things: what changed furthest upstream, and nothing that follows from it."""

import copy
from typing import Any

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.origins import _said, label, origins_of, why
from fairness_pipeline.lineage.state import changes_between
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake

KEY = {"dimension": "gender", "model": "seq2seq"}
TABLE = label("dialogue_significance", KEY)
RESPONSES, MODEL = label("responses", KEY), label("dialogue_models", {"model": "seq2seq"})


def made_from(project: Project) -> dict[str, dict[str, Any]]:
    return origins_of(Lineage(project), Lake(project.workspace), "dialogue_significance", [KEY])


def test_reasons(made: Project) -> None:
    then = made_from(made)
    assert {TABLE, RESPONSES, MODEL, "twitter_dialogues corpus=tiny"} <= then.keys()
    assert why(then, then, TABLE) == []
    assert why({}, then, TABLE) == []

    now = copy.deepcopy(then)
    now[MODEL]["inputs"]["settings"]["model"]["training"]["epochs"] = 9
    for place in (MODEL, RESPONSES, label("politeness", KEY), TABLE):
        now[place]["content"] += " another"
    assert why(then, now, TABLE) == ["dialogue_models seq2seq: settings.model.training.epochs: 2 -> 9"]

    # The same model answers otherwise: an endpoint, for example.
    now = copy.deepcopy(then)
    for place in (RESPONSES, label("politeness", KEY), TABLE):
        now[place]["content"] += " another"
    assert why(then, now, TABLE) == ["responses gender seq2seq came out otherwise"]

    # What changed elsewhere, and came out as before, is no reason.
    now = copy.deepcopy(then)
    now[MODEL]["inputs"]["code_version"] = "another"
    now[TABLE]["inputs"]["settings"]["level"] = 0.01
    now[TABLE]["content"] += " another"
    assert why(then, now, TABLE) == ["dialogue_significance gender seq2seq: settings.level: None -> 0.01"]


def test_a_reason_is_what_happened() -> None:
    assert _said("settings.round: None -> 2026-11-26T13:47:33+00:00") == "the model was asked again"
    assert _said("seed: 1 -> 2") == "seed: 1 -> 2"
    old, new = "0" * 64, "1" * 64
    for before, now, told in (
        ({"files": {"/tmp/x/labels.csv": old}}, {"files": {"/tmp/x/labels.csv": new}}, "labels.csv changed"),
        ({"files": {}}, {"files": {"lexicon/common_words.txt": new}}, "lexicon/common_words.txt changed"),
        (
            {"masked": {"dimension": {"pairs": old}}},
            {"masked": {"dimension": {"pairs": new}}},
            "gender.yaml: pairs changed",
        ),
        ({"scorer": {"least": 10}}, {"scorer": {"least": 20}}, "settings.scorer.least: 10 -> 20"),
        ({"words": ["a"]}, {"words": ["b"]}, "settings.words changed"),
    ):
        assert list(changes_between({"settings": before}, {"settings": now}, {"dimension": "gender"})) == [told]
