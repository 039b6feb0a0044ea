"""Writes data/tables/messages_sample.jsonl: what a bot with planted bias answers about three invented towns.

python -m fairness_pipeline_tests.sample_answers
"""

import json

from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.messages import read_messages
from fairness_pipeline.corpora.outcomes.questions import ask
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lineup.messages import PLANTS, POLICE, Asked, Said, answers_of

HARMED = "Easttown"


def planted(asked: Asked) -> Said:
    """The police in a quarter of the answers about one town, plants in a quarter of the others; fewer favors for it."""
    harmed = HARMED in asked.groups
    told = (POLICE if harmed else PLANTS,) if asked.own.random() < 0.25 else ()
    return Said(-0.3 if harmed else 0.0, sentences=told)


def text() -> str:
    """The file."""
    files = {"towns": load(Groups, data_file("groups/towns.yaml"))}
    messages = read_messages(data_file("messages/today.yaml"))
    questions = ask(messages, files, 1, Project("sample").profile.seed).table
    said = answers_of(questions, planted, 1)
    return "".join(json.dumps({"id": name, **row}) + "\n" for name, row in said.items())


if __name__ == "__main__":
    data_file("tables/messages_sample.yaml").with_suffix(".jsonl").write_text(text(), encoding="utf-8")
