"""Writes data/tables/messages_sample.jsonl: the answers of a bot with planted bias about three invented towns.

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


def planted(question: Asked) -> Said:
    """Names the police in a quarter of the answers about one town, and plants in the others; grants it fewer favors."""
    harmed = HARMED in question.groups
    sentences = (POLICE if harmed else PLANTS,) if question.own.random() < 0.25 else ()
    return Said(-0.3 if harmed else 0.0, sentences=sentences)


def text() -> str:
    """The text of the file."""
    files = {"towns": load(Groups, data_file("groups/towns.yaml"))}
    messages = read_messages(data_file("messages/today.yaml"))
    questions = ask(messages, files, 1, Project("sample").profile.seed).table
    answers = answers_of(questions, planted, 1)
    return "".join(json.dumps({"id": name, **row}) + "\n" for name, row in answers.items())


if __name__ == "__main__":
    data_file("tables/messages_sample.yaml").with_suffix(".jsonl").write_text(text(), encoding="utf-8")
