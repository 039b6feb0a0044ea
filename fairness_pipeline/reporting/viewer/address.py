"""Gives the address at which `fairness-pipeline view` shows the pairs behind a verdict."""

from urllib.parse import urlencode

from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.workspace.lake import Key

HOST, PORT = "127.0.0.1", 8017


def slug(name: str, longest: int = 100) -> str:
    """Returns a name that is safe in any file system and any address."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    return plain.lstrip(".")[:longest]


def folder_of(study: AnyStudy, key: Key) -> str:
    """Returns the name of an audit's folder of pairs, without the hash of its content."""
    return slug("-".join([study.name, *key.values()]))


def address_of(study: AnyStudy, key: Key, measure: str) -> str:
    """Returns the address of the page that shows the pairs of an audit by a measure."""
    return f"http://{HOST}:{PORT}/#{urlencode({'set': folder_of(study, key), 'measure': measure})}"
