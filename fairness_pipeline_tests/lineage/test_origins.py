"""Why two runs found different results: the changes furthest upstream, without their consequences."""

import copy
from typing import Any

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.origins import _in_words, label, origins_of, why
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
    for step in (MODEL, RESPONSES, label("politeness", KEY), TABLE):
        now[step]["content"] += " another"
    assert why(then, now, TABLE) == ["dialogue_models seq2seq: settings.model.training.epochs: 2 -> 9"]

    # The same model, an endpoint for example, gives other answers.
    now = copy.deepcopy(then)
    for step in (RESPONSES, label("politeness", KEY), TABLE):
        now[step]["content"] += " another"
    assert why(then, now, TABLE) == ["responses gender seq2seq has a different result"]

    # A change elsewhere that left the content as before is no reason.
    now = copy.deepcopy(then)
    now[MODEL]["inputs"]["code_version"] = "another"
    now[TABLE]["inputs"]["settings"]["level"] = 0.01
    now[TABLE]["content"] += " another"
    assert why(then, now, TABLE) == ["dialogue_significance gender seq2seq: settings.level: None -> 0.01"]


def test_reasons_are_worded_as_events() -> None:
    assert _in_words("settings.round: None -> 2026-11-26T13:47:33+00:00") == "the model was asked again"
    assert _in_words("seed: 1 -> 2") == "seed: 1 -> 2"
    old, new = "0" * 64, "1" * 64
    for before, now, reason in (
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
        assert list(changes_between({"settings": before}, {"settings": now}, {"dimension": "gender"})) == [reason]
