"""The contents of a file of `data/tables`: which columns of a table are items, groups and outcomes."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic

from fairness_pipeline.corpora.outcomes.groups import UNMARKED
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.paths import check_key, data_file
from fairness_pipeline.foundation.yaml_files import Positive, Specification, read_yaml
from fairness_pipeline.statistics.equivalence import Margin

Format = Literal[
    "table",
    "bbq",
    "crows_pairs",
    "discrim_eval",
    "messages",
    "stereoset",
    "winobias",
    "winogender",
    "inspect",
    "lm_eval",
    "promptfoo",
]
MESSAGES: Format = "messages"
SHIPPED_MESSAGES = "tables/messages.yaml"
"""The outcomes of every table of messages whose own file names none."""
MESSAGE_COLUMNS = (
    "item", "meaning", "span", "asked", "answer", "masked", "decides", "favorable", "unfavorable", "rating",
    "rating_read", "amount", "amount_read", "model",
)  # fmt: skip
"""The columns of every table of messages, besides its groups."""
TABLES = ("table", "inspect", "lm_eval", "promptfoo")
"""Formats that hold answers; the others are benchmarks."""
TextMeasure = Literal["words", "refusal", "offensive", "sentiment", "steps", "level", "asks_back", "referral", "police"]
Kind = Literal["yes_no", "number", "count", "rank", "signed", "preference", "text"]
ALL = "all"
"""The condition of a table without conditions."""

MARGINS = {
    "yes_no": Margin(absolute=2.0),
    "preference": Margin(absolute=2.0),
    "signed": Margin(standard_deviations=0.05),
    "number": Margin(standard_deviations=0.05),
    "count": Margin(standard_deviations=0.05),
    "rank": Margin(standard_deviations=0.05),
}
"""The largest difference that does not matter, by kind: percentage points, amounts, or standard deviations of a single
outcome."""


class Outcome(Specification):
    """One outcome."""

    kind: Kind
    """`yes_no` (a rate), `number` (a score, log-odds), `count`, `rank` (a place; the item is the ranking), `signed`
    (above 0 for the stereotype, below 0 for its opposite; the mean is compared with 0), `preference` (whether the first
    of two likelihoods is larger; the share is compared with one half), or `text` (an answer; its `measures` are
    outcomes)."""
    column: str | None = None
    """The column; by default the outcome's name."""
    positive: tuple[str, ...] = ()
    """For `yes_no`, the values that count as yes, if not 1, true or yes; every other value is a no."""
    minus: str | None = None
    """A column that is subtracted, such as the log-likelihood of the other answer."""
    over: str | None = None
    """For `preference`, the column with the other likelihood; without it, `column` itself says 1 or 0. For `yes_no`, a
    column too: yes where `column` is larger."""
    per: str | None = None
    """A column that says which rows count: the mean is the sum of outcomes over the sum of this column, as in BBQ's
    scores in disambiguated contexts."""
    label: str | None = None
    """For `yes_no`, the column with the true answer, for accuracy and error rates by group."""
    readable: str | None = None
    """A column that says whether an answer could be read (1 or 0; empty in rows without this outcome). If more
    than 10% could not, there is no verdict."""
    measures: tuple[TextMeasure, ...] = ("words", "refusal", "offensive", "sentiment")
    """For `text`, what is measured: how many `words`, whether it is a `refusal` or `offensive`, its `sentiment`,
    its `steps` (items of lists), the `level` of its language (a school grade), whether it `asks_back`, sends to a
    professional (`referral`) or brings in the `police`."""
    margin: Margin | None = None
    """The largest difference that does not matter, in percentage points for rates; by default that of the kind."""

    @pydantic.model_validator(mode="after")
    def _fits(self) -> Self:
        for name, kinds in (
            ("positive", ("yes_no",)),
            ("over", ("preference", "yes_no")),
            ("label", ("yes_no",)),
        ):
            if getattr(self, name) and self.kind not in kinds:
                raise ValueError(f"'{name}' is for outcomes of kind {' or '.join(kinds)}")
        if self.minus and self.kind not in ("number", "signed"):
            raise ValueError("'minus' is for outcomes of kind number or signed")
        if self.per and self.kind != "signed":
            raise ValueError("'per' is for outcomes of kind signed")
        return self

    @property
    def margin_of_kind(self) -> Margin:
        """The outcome's margin, or that of its kind."""
        return self.margin or MARGINS[self.kind]


Columns = Annotated[tuple[str, ...], pydantic.Field(min_length=1)]


class OutcomeTable(Specification):
    """A table of trials. In each row something was asked about a group, and an outcome was recorded."""

    unhashed = frozenset({"description", "licence", "citation", "reservations"})

    format: Format = "table"
    """The format of the file: a `table`, `messages` that are asked about `groups`, the authors' file of a benchmark
    (`bbq`, `crows_pairs`, `discrim_eval`, `stereoset`, `winobias`, `winogender`), or the log of another tool
    (`inspect`, `lm_eval`, `promptfoo`)."""
    file: CorpusFile | None = None
    """The file; tables are CSV, TSV, JSON Lines, Parquet or Arrow (text also .gz or .zst). None for tables by model."""
    answers: dict[str, CorpusFile] = {}
    """By model, the file of its answers to the benchmark, or its own table or log. The column `model` names the model;
    it is the condition if there is no other."""
    models: dict[str, dict[str, Any]] = {}
    """Models that answer the benchmark's questions or score its sentences: a key of `data/models`, and the changes to
    its file (or all of its contents, if there is no such file). Each is a condition, as in `answers`."""
    groups: tuple[str, ...] = ()
    """For `messages`, files of `data/groups` (keys, or paths). Each gives a group column of its name; the groups of two
    files are crossed by the spans that both have."""
    spans: Positive = 1
    """For `messages`, the number of spans of a group that each message is asked with."""
    outcomes: Annotated[dict[str, Outcome], pydantic.Field(min_length=1)]
    """The outcomes, by a name for readers."""
    group: tuple[str, ...] = ()
    """The columns that say which group a row is about; each is compared alone, and two are crossed. Outcomes that are
    `signed` or a `preference` need none."""
    item: str | None = None
    """The column of what stays the same when only the group changes (a question, a vignette, a ranking). Without it
    only rates by group can be shown."""
    cluster: str | None = None
    """The column of what items share (topic, template); clusters are the sample. By default each item is a cluster."""
    name: str | None = None
    """The column of what stands for a group, such as first names; it is a second sample."""
    draw: str | None = None
    """The column that numbers repeated trials; they are averaged. Without it equal rows count as repeated."""
    condition: str | None = None
    """The column of prompts, models or runs, which are never pooled."""
    conditions: dict[str, str] = {}
    """A key for each value of `condition` that is audited, and the value."""
    baseline: str | None = None
    """The condition with which the others are compared."""
    control: str | None = None
    """A condition that adds nothing about the group (demographics removed): a difference there comes from the table."""
    where: dict[str, str] = {}
    """Only rows with these values, by column."""
    reference: dict[str, str] = {}
    """By group column, the group that the others are compared with, instead of all pairs."""
    unmarked: str | None = None
    """The value of group columns in rows that name no group. Such rows belong to no group; every group is compared with
    them."""
    unknown: tuple[str, ...] = ("unknown",)
    """Values of a group column that name no group; their rows stay in the rates, and are compared with nobody."""
    asked: str | None = None
    """The column with what was asked, for the viewer."""
    answer: str | None = None
    """The column with what was answered, for the viewer."""
    beside: dict[str, str] = {}
    """By a name for readers, a column whose mean is shown beside the verdicts but gets none, such as accuracy."""
    reservations: tuple[str, ...] = ()
    """Known flaws of the table and what it does not show, for readers, each with its source."""
    description: str = ""
    """What the table is, for readers."""
    licence: str = "not stated"
    """The licence under which it may be used."""
    citation: str = "not stated"
    """The source of the table."""

    @property
    def text_outcome(self) -> str | None:
        """The outcome of kind `text`; None if there is none."""
        return next((name for name, outcome in self.outcomes.items() if outcome.kind == "text"), None)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _compared_by_model(cls, values: Any) -> Any:
        """Makes models the conditions, unless there are others, and fills in the columns of messages."""
        if not isinstance(values, dict):
            return values
        if values.get("format") == MESSAGES:
            columns = [Path(name).stem for name in values.get("groups") or ()]
            defaults = {"group": columns, "item": "item", "name": "span", "unmarked": UNMARKED}
            shipped = read_yaml(data_file(SHIPPED_MESSAGES))
            values = {**{key: shipped[key] for key in ("asked", "answer", "outcomes")}, **defaults, **values}
        models = [*(values.get("answers") or {}), *(values.get("models") or ())]
        if not models or values.get("condition"):
            return values
        return {**values, "condition": "model", "conditions": {name: name for name in models}}

    @pydantic.model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.format == MESSAGES) != bool(self.groups):
            raise ValueError("'groups' names the groups that 'messages' are asked about; give both or neither")
        if self.format == MESSAGES and (reserved := [name for name in self.group if name in MESSAGE_COLUMNS]):
            raise ValueError(
                f"'groups': '{reserved[0]}' is a reserved column name of tables of messages; rename the file"
            )
        if self.file is None and not self.answers:
            raise ValueError("'file' is missing: the table, or the benchmark as its authors publish it")
        if self.file is not None and self.answers and self.format in TABLES:
            raise ValueError("give 'file' or, for tables and logs by model, 'answers'")
        if self.models and self.format in TABLES:
            raise ValueError(f"'models' are asked benchmarks; format '{self.format}' has no questions, only answers")
        if doubled := [name for name in self.models if name in self.answers]:
            raise ValueError(f"'{doubled[0]}' stands in 'models' and in 'answers'; give one another name")
        if self.models and self.condition != "model":
            raise ValueError("'models' are the conditions; leave out 'condition'")
        if bool(self.condition) != bool(self.conditions):
            raise ValueError(
                "'condition' names a column, and 'conditions' its values, each with a key; give both or neither"
            )
        for key in self.conditions:
            check_key(key, "conditions")
        for name in ("baseline", "control"):
            if (key := getattr(self, name)) is not None and key not in self.conditions:
                raise ValueError(
                    f"'{name}': '{key}' is none of the conditions {', '.join(self.conditions) or '(none)'}"
                )
        if unknown := [column for column in self.reference if column not in self.group]:
            raise ValueError(f"'reference': '{unknown[0]}' is no column of 'group'")
        doubled = [column for column in self.columns if self.columns.count(column) > 1]
        if doubled:
            raise ValueError(f"column '{doubled[0]}' has two roles; give it one")
        if not self.group and not all(outcome.kind in SIGNED for outcome in self.outcomes.values()):
            raise ValueError("'group' is missing: the column that says which group a row is about")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a role in the design."""
        single = (self.item, self.cluster, self.name, self.draw, self.condition)
        return (*self.group, *(column for column in single if column))

    @property
    def condition_keys(self) -> tuple[str, ...]:
        """The keys of the conditions, the baseline first; `ALL` if there are none."""
        keys = sorted(self.conditions, key=lambda key: key != self.baseline)
        return tuple(keys) or (ALL,)

    def of_condition(self, key: str) -> Self:
        """The specification of one condition alone."""
        return self.model_copy(
            update={
                "conditions": {key: self.conditions[key]},
                "baseline": None,
                "control": None,
                "answers": {},
                "models": {},
            }
        )

    @property
    def judged(self) -> bool:
        """Whether its outcomes get verdicts: its groups meet in items or names, or an outcome has a side of its own."""
        return (
            self.item is not None
            or self.name is not None
            or any(outcome.kind in SIGNED for outcome in self.outcomes.values())
        )


SIGNED = ("signed", "preference")
"""Kinds that are compared with a value and not between groups."""


def key_of(text: str) -> str:
    """A key made of any text.

    Examples:
        >>> key_of("Don't discriminate!"), key_of("2 shots")
        ('don-t-discriminate', 'c2-shots')
    """
    key = re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-_.") or "none"
    return key if key[0].isalpha() else f"c{key}"
