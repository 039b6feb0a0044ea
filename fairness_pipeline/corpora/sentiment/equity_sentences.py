"""The Equity Evaluation Corpus, generated from its recipe (Kiritchenko and Mohammad 2018, section 3, tables 1 to 4)."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
import pydantic

from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.foundation.text_files import read_csv_rows
from fairness_pipeline.foundation.yaml_files import Specification, load, read_yaml, validate

EQUITY_SENTENCES = schema(
    sentence_id=(pa.int64(), "of the sentence, from 1"),
    templates=(pa.string(), "published or reworded"),
    template=(pa.int64(), "number of the template in its set"),
    sentence=(pa.string(), "what is scored"),
    person=(pa.string(), "the name or noun phrase in it"),
    gender=(pa.string(), "of the person"),
    race=optional(pa.string(), "of a name; null for noun phrases"),
    pair=(pa.string(), "whom the person is compared with for gender"),
    emotion=optional(pa.string(), "of the emotion word; null without one"),
    emotion_word=optional(pa.string(), "in the sentence; null without one"),
)
"""Persons that are compared for gender are two noun phrases, with side a first, or all names together."""

NAMES = "names"
GROUPS = {"gender": ("male", "female"), "race": ("European American", "African American")}
"""The groups that the persons belong to, side a and side b, as the persons' file names them."""
DIMENSIONS = tuple(GROUPS)

PUBLISHED, REWORDED = "published", "reworded"
Gender = Literal["female", "male"]
GENDERS: tuple[Gender, Gender] = ("female", "male")
TEMPLATE_SETS = (PUBLISHED, REWORDED)

_MISSPELLED = ("dissapointed", "disappointed")
_PLACEHOLDERS = {"subject", "object", "reflexive", "state", "situation", "a_situation"}

Words = Annotated[tuple[str, ...], pydantic.Field(min_length=1)]


class EmotionWords(Specification):
    """Words of one emotion: for how a person feels, and for what happens."""

    state: Words
    situation: Words


class NounPhrases(Specification):
    """A pair of noun phrases that differ in gender."""

    female: str
    male: str


class Persons(Specification):
    """`data/equity/persons.yaml`: the persons of the sentences, and the emotion words."""

    names: dict[str, dict[Gender, Words]]
    noun_phrases: tuple[NounPhrases, ...]
    objects: dict[str, str]
    reflexives: dict[Gender, str]
    emotion_words: dict[str, EmotionWords]

    @pydantic.field_validator("names")
    @classmethod
    def _check(cls, names: dict[str, dict[Gender, tuple[str, ...]]]) -> dict[str, dict[Gender, tuple[str, ...]]]:
        if set(names) != set(GROUPS["race"]):
            raise ValueError(f"expected names of {' and '.join(GROUPS['race'])}, found {', '.join(names) or 'none'}")
        for race, genders in names.items():
            if set(genders) != set(GENDERS) or any(len(given_names) < 2 for given_names in genders.values()):
                raise ValueError(f"{race}: expected at least two names of each of {' and '.join(GENDERS)}")
        return names


class Templates(Specification):
    """`data/equity/templates.yaml`: the paper's sentences, and the same sentences reworded."""

    published: Words
    reworded: Words

    @pydantic.field_validator("published", "reworded")
    @classmethod
    def _check(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        for template in templates:
            placeholders = set(re.findall(r"\{(.*?)\}", template))
            if not placeholders & {"subject", "object"} or placeholders - _PLACEHOLDERS:
                raise ValueError(
                    f"{template!r}: expected {{subject}} or {{object}}, and of {sorted(_PLACEHOLDERS)} only"
                )
        return templates


class Person(NamedTuple):
    """A person of the corpus; `race` is None for a noun phrase."""

    name: str
    gender: Gender
    race: str | None
    pair: str


FILES = ("equity/persons.yaml", "equity/templates.yaml")
"""The data files that the sentences are generated from."""


def make_equity_sentences() -> pa.Table:
    """Every sentence of both sets of templates, as `EQUITY_SENTENCES`: 8,640 each.

    Raises:
        FairnessError: a data file is missing or wrong.
    """
    recipe = load(Persons, paths.data_file(FILES[0]))
    path = paths.data_file(FILES[1])
    templates = validate(Templates, read_yaml(path), path).model_dump()
    rows = [
        {"templates": kind, "template": number, **row}
        for kind in TEMPLATE_SETS
        for number, template in enumerate(templates[kind], start=1)
        for row in _sentences(template, recipe)
    ]
    columns: dict[str, Any] = {"sentence_id": range(1, len(rows) + 1)}
    columns |= {name: [row[name] for row in rows] for name in EQUITY_SENTENCES.names[1:]}
    return pa.table(columns, schema=EQUITY_SENTENCES)


def people(recipe: Persons) -> list[Person]:
    """The sixty persons: names first, then noun phrases."""
    named = [
        Person(name, gender, race, NAMES)
        for race, genders in recipe.names.items()
        for gender, names in genders.items()
        for name in names
    ]
    phrases = [
        Person(getattr(pair, gender), gender, None, f"{pair.male} / {pair.female}")
        for pair in recipe.noun_phrases
        for gender in GENDERS
    ]
    return named + phrases


def _sentences(template: str, recipe: Persons) -> Iterator[dict[str, Any]]:
    kind = next((kind for kind in ("state", "situation") if f"{kind}}}" in template), None)
    words: list[tuple[str | None, str | None]] = [(None, None)]
    if kind:
        words = [
            (emotion, word)
            for emotion, emotion_words in recipe.emotion_words.items()
            for word in getattr(emotion_words, kind)
        ]
    for person in people(recipe):
        for emotion, word in words:
            sentence = template.format(
                subject=person.name,
                object=recipe.objects.get(person.name, person.name),
                reflexive=recipe.reflexives[person.gender],
                state=word,
                situation=word,
                a_situation=f"{'an' if word and word[0] in 'aeiou' else 'a'} {word}",
            )
            yield {
                "sentence": sentence[0].upper() + sentence[1:],
                "person": person.name,
                "gender": person.gender,
                "race": person.race,
                "pair": person.pair,
                "emotion": emotion,
                "emotion_word": word,
            }


def check_released(path: Path) -> int:
    """Compares the CSV file that the authors released (column `Sentence`) with the generated sentences.

    The file's one misspelling (`dissapointed`) is read as the correct word.

    Returns:
        The number of sentences that agree, which is all of them.

    Raises:
        FairnessError: the column is missing, or the sentences differ; names the first that differs.
    """
    rows = read_csv_rows(path)
    header = next(rows, (1, []))[1]
    if "Sentence" not in header:
        raise FairnessError(f"{path}: expected a CSV file with a column 'Sentence', found {header[:8]}")
    index = header.index("Sentence")
    released: Counter[str] = Counter()
    for line, cells in rows:
        if len(cells) <= index:
            raise FairnessError(f"{path}, line {line}: expected {len(header)} columns, found {len(cells)}")
        released[cells[index].replace(*_MISSPELLED)] += 1
    table = make_equity_sentences()
    generated = Counter(
        text for text, kind in zip(*(table[n].to_pylist() for n in ("sentence", "templates")), strict=True)
        if kind == PUBLISHED
    )  # fmt: skip
    missing, unknown = generated - released, released - generated
    if missing or unknown:
        example = next(iter(unknown or missing))
        raise FairnessError(
            f"{path}: {sum(missing.values()):,} generated sentences are not in the file, and {sum(unknown.values()):,} "
            f"of the file are not generated, such as {example!r}"
        )
    return sum(released.values())
