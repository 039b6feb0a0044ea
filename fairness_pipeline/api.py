"""The public functions for notebooks; `import fairness_pipeline as fp` has these names.

All functions take and return plain lists and pandas tables. The pipeline does the same on whole corpora, and keeps its
results.
"""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pydantic

from fairness_pipeline.corpora.outcomes.columns import Column
from fairness_pipeline.corpora.outcomes.formats import read_format, recognised
from fairness_pipeline.corpora.outcomes.specification import OutcomeTable
from fairness_pipeline.corpora.outcomes.structure import guess
from fairness_pipeline.corpora.outcomes.table_files import text_columns
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.plain_text import some
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.lexicons.contexts import PairSettings, find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.dialogue_significance import compared, controls_of
from fairness_pipeline.measures.dialogue.distinguishable import distinguish
from fairness_pipeline.measures.dialogue.measure import MARGINS, SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.spread import spreads
from fairness_pipeline.measures.outcomes.cells import cell_table
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, expanded, scored
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.comparison import COMPARISON

if TYPE_CHECKING:
    import pandas as pd


def _texts(texts: Iterable[str], parameter: str) -> list[str]:
    """Returns the texts of an iterable as a list."""
    if isinstance(texts, str):
        raise FairnessError(f"{parameter}: expected several texts (a list or a column), found one: {texts[:40]!r}")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # iterating over it gives names of columns
        raise FairnessError(
            f"{parameter}: expected a list or one column of texts, found {_kind(texts)}; name its column"
        )
    if not isinstance(texts, Iterable):
        raise FairnessError(f"{parameter}: expected a list or a column of texts, found {_kind(texts)}")
    items = list(texts)
    bad_index = next((index for index, text in enumerate(items) if not isinstance(text, str)), None)
    if bad_index is not None:
        raise FairnessError(
            f"{parameter}: expected texts, found {items[bad_index]!r} at index {bad_index}; drop or fill this row"
        )
    return items


def _row_names(dimension: Dimension) -> list[str]:
    return [name for measure in measures() for name in measure.names(dimension)]


def _encoded(values: Iterable[object], count: int, parameter: str = "groups") -> tuple[np.ndarray, list[str]]:
    """Returns a code for the value of each pair, and the names of the values by code."""
    if isinstance(values, (str, Mapping)) or hasattr(values, "columns"):
        raise FairnessError(f"{parameter}: expected a list or a column, found {_kind(values)}")
    items = list(values)
    if len(items) != count:
        raise FairnessError(f"{parameter}: expected one value a pair, {count:,}; found {len(items):,}")
    codes: dict[object, int] = {}
    for index, value in enumerate(items):
        if not isinstance(value, Hashable):
            raise FairnessError(
                f"{parameter}: expected a text or a number a pair, found {_kind(value)} at index {index}"
            )
        if value is None or type(value).__name__ == "NAType" or value != value:  # pandas' NA compares with nothing
            raise FairnessError(f"{parameter}: expected a value for each pair, found {value!r} at index {index}")
    return np.array([codes.setdefault(value, len(codes)) for value in items]), list(map(str, codes))


def _check_seed(seed: int) -> None:
    if not isinstance(seed, int) or seed < 0:
        raise FairnessError(f"seed: expected a number from 0, found {seed!r}")


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def swap(text: str, dimension: str = "gender") -> str:
    """The text with every word of one group replaced by the other group's word, in both directions at once.

    Args:
        text: Any text. Words that are not in the dimension's list stay.
        dimension: A key of `data/dimensions`.

    Raises:
        FairnessError: there is no such dimension.

    Examples:
        >>> import fairness_pipeline as fp
        >>> fp.swap("My dad is a POLICEMAN.")
        'My mom is a POLICEWOMAN.'
    """
    _texts([text], "text")
    swapper = Swapper(load_dimension(dimension), pronouns=PairSettings().pronouns)
    ((matches, _),) = swapper.find_all(pa.array([text], pa.string()))
    return swapper.exchange(text, matches, "both", text).text if matches else text


def pairs(contexts: Iterable[str], dimension: str = "gender") -> "pd.DataFrame":
    """Parallel contexts: each context that names one group only, next to its counterfactual about the other group.

    A word is exchanged where it means a person of the group, by the dimension's rules of sense (docs/pairs.md).

    Args:
        contexts: Duplicates count once.
        dimension: A key of `data/dimensions`.

    Returns:
        Columns `pair_id`, `context_a`, `context_b` and `source_side` (`a` or `b`: the side of the original context).

    Raises:
        FairnessError: there is no such dimension.

    Examples:
        >>> import fairness_pipeline as fp
        >>> fp.pairs(["she left", "it rains", "his hat"])[["context_a", "context_b"]].to_dict("list")
        {'context_a': ['he left', 'his hat'], 'context_b': ['she left', 'her hat']}
    """
    texts, definition = _texts(contexts, "contexts"), load_dimension(dimension)
    count = len(texts)
    ids = [str(number) for number in range(count)]
    table = pa.table(
        {
            "dialogue_id": pa.array(ids, pa.string()),
            "thread_id": pa.array(ids, pa.string()),
            "context": pa.array(texts, pa.string()),
            "response": pa.array([""] * count, pa.string()),
            "split": pa.array(["audit"] * count, pa.string()),
            "corpus": pa.array([""] * count, pa.string()),
        }
    )
    settings = PairSettings(maximum=max(count, 1), one_word=False, largest_share=1)
    context_table = find_contexts(table, Swapper(definition, pronouns=settings.pronouns, senses=True)).table
    result = make_pairs(context_table, definition, seed=0, **settings.model_dump(exclude={"no_effect"}))
    return result.table.select(["pair_id", "context_a", "context_b", "source_side"]).to_pandas()


def score(responses: Iterable[str], dimension: str = "gender") -> "pd.DataFrame":
    """The scores that each measure of the audit gives to each response, one row per response.

    Args:
        responses: The responses of a model.
        dimension: The dimension whose attribute words are counted.

    Returns:
        Columns `response`, `offensive_probability`, `offensive`, `compound`, `positive`, `negative`, and one count for
        each attribute list.

    Raises:
        FairnessError: there is no such dimension.

    Examples:
        >>> import fairness_pipeline as fp
        >>> fp.score(["what an idiot", "the wedding was wonderful"])[["offensive", "family"]].to_dict("list")
        {'offensive': [True, False], 'family': [0, 1]}
    """
    definition, settings = load_dimension(dimension), MeasureSettings()
    texts = pa.table({"text": pa.array(_texts(responses, "responses"), pa.string())})
    table = texts.rename_columns(["response"])
    for measure in measures():
        if measure.scorer:
            scores = measure.scorer(settings, definition)(texts)
            for name in scores.column_names:
                table = table.append_column(name, scores[name])
    return table.to_pandas()


def compare(
    a: Iterable[str],
    b: Iterable[str],
    dimension: str = "gender",
    *,
    groups: Iterable[object] | None = None,
    units: Iterable[object] | None = None,
    margins: Mapping[str, Mapping[str, float]] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> "pd.DataFrame":
    """Compares two lists of responses to parallel contexts on every measure: tests, intervals, equivalence, verdict.

    The pairs are treated as independent unless `groups` says which of them move together. Pairs whose contexts exchange
    the same word move together. Pass the exchanged word of each pair; otherwise p is too small and the verdicts are too
    firm.

    Args:
        a: The responses to the contexts of side a.
        b: The responses to the contexts of side b, in the same order.
        dimension: The dimension whose attribute words are counted. Its words are masked in the reading that decides.
        groups: One value per pair. Pairs with the same value (the exchanged word, say) form one cluster. Any verdict
            needs eight different values; `fair` needs ten. With them it is also tested whether the answers can be told
            apart by any of their words (`distinguishable`). Values written `uncle / aunt` say which word is longer, so
            that its length can be excluded as the reason, if that is all that a pair exchanges.
        units: One value per pair: the sentence, template or topic of its context. With `groups` it is also tested
            whether gaps vary between units, because opposite gaps cancel; without it a measure is at most `fair on
            average`.
        margins: The largest difference that does not matter, by measure or by kind of measure (`rates`, `counts`,
            `diversity`). Each is one of `cohens_h`, `standard_deviations`, `relative`, `absolute` with its size.
        alpha: The level of the tests.
        seed: The seed of the permutation test of diversity.

    Returns:
        One row per measure, and one for its reading with the groups' words masked (`..._masked`). The verdict and
        `p_holm` of both rows rest on the masked reading. The columns are those of a significance table
        (docs/method.md). Rows of the two lists are matched by position; the index of a column is ignored.

    Raises:
        FairnessError: there is no such dimension, the lists are empty or of different lengths or hold anything but
            text, or a margin, the level or `groups` is not as expected.
    """
    responses_a, responses_b = _texts(a, "a"), _texts(b, "b")
    if len(responses_a) != len(responses_b) or not responses_a:
        raise FairnessError(
            f"expected as many responses on both sides, one at least; found {len(responses_a)} and {len(responses_b)}"
        )
    interleaved = [text for pair in zip(responses_a, responses_b, strict=True) for text in pair]
    responses = pa.table(
        {
            "pair_id": pa.array([i // 2 for i in range(len(interleaved))], pa.int64()),
            "side": pa.array(["a", "b"] * len(responses_a), pa.string()),
            "response": pa.array(interleaved, pa.string()),
        }
    )
    definition, settings = load_dimension(dimension), MeasureSettings()
    if margins is not None and not isinstance(margins, Mapping):
        example = "{'rates': {'absolute': 1}}"
        raise FairnessError(f"margins: expected a dictionary such as {example}, found {_kind(margins)}")
    _check_seed(seed)
    try:
        significance = SignificanceSettings.model_validate({"alpha": alpha, "margins": {**MARGINS, **(margins or {})}})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise FairnessError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    known = [*MARGINS, *_row_names(definition)]
    if others := [name for name in margins or {} if name not in known]:
        raise FairnessError(f"margins: {unknown('measure', others[0], known)}")
    clusters, distinguished, unit_codes = [], None, None
    if units is not None:
        if groups is None:
            raise FairnessError("units: expected groups beside them: pairs of one exchanged word move together")
        unit_codes = _encoded(units, len(responses_a), "units")[0]
    if groups is not None:
        codes, names = _encoded(groups, len(responses_a))
        clusters = [codes]
        exchanged = Words(names, np.arange(len(responses_a)), codes)
        distinguished, _ = distinguish(None, responses, exchanged, definition.masked, seed=seed)
    tables = {
        measure.table: measure.measure(responses, measure.scoring(settings, definition)) for measure in measures()
    }
    controls = controls_of(responses, tables, significance, definition.masked, clusters)
    rows = compared(
        responses,
        tables,
        settings=significance,
        seed=seed,
        published={},
        masked=definition.masked,
        clusters=clusters,
        controls=controls,
        distinguished=distinguished,
        spreads={} if unit_codes is None else spreads(controls.values, unit_codes, clusters, seed),
    )
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=COMPARISON).to_pandas()


_EXAMPLE = "{'kind': 'yes_no', 'positive': ['approve']}"


def audit(
    table: "pd.DataFrame | pa.Table | str | Path",
    *,
    outcome: str | Sequence[str] | Mapping[str, Mapping[str, object]],
    group: str | Sequence[str] = (),
    item: str | None = None,
    cluster: str | None = None,
    name: str | None = None,
    draw: str | None = None,
    condition: str | None = None,
    reference: Mapping[str, str] | None = None,
    margins: Mapping[str, Mapping[str, float]] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> "pd.DataFrame":
    """Judges whether the outcomes in a table depend on the group that a row is about: any groups, any kind of outcome.

    Each row is a trial. The sample consists of clusters of items, not of rows; docs/outcomes.md explains each column.

    Args:
        table: A pandas or Arrow table, or the path of a file.
        outcome: A column, several columns, or the specification of each outcome by name, as in a file of `data/tables`:
            `{"log_odds": {"kind": "number", "column": "yes_logit", "minus": "no_logit"}}`. The kind of a bare column is
            guessed from its values.
        group: The columns that say which group a row is about. Two are crossed as well.
        item: The column of what stays the same when only the group changes.
        cluster: The column of what items share. By default each item is a cluster.
        name: The column of what stands for a group, such as first names.
        draw: The column that numbers repeated trials.
        condition: The column of prompts or models. Each value is judged separately.
        reference: By group column the group with which the others are compared, in place of all pairs.
        margins: The largest difference that does not matter, by outcome: one of `absolute`, `standard_deviations`,
            `cohens_h`, `relative` with its size; percentage points for rates.
        alpha: The level of the tests.
        seed: The seed of all draws.

    Returns:
        One row per verdict and per contrast below it, as in `outcome_significance`, after a column `condition`.

    Raises:
        FairnessError: a column is missing, a cell is not as expected, or the groups never meet in an item.

    Examples:
        >>> import fairness_pipeline as fp, pandas as pd
        >>> rows = [(i, g, (7 * i + (g == "b") * 3) % 10 / 10 - 0.2 * (g == "c")) for i in range(40) for g in "abc"]
        >>> verdicts = fp.audit(pd.DataFrame(rows, columns=["item", "who", "score"]), item="item", group="who",
        ...                     outcome="score")
        >>> verdicts.loc[0, ["measure", "against", "verdict"]].tolist()
        ['score by who', 'c', 'biased']
    """
    path = Path(table) if isinstance(table, str | Path) else None
    if path is not None:
        columns = read_format(recognised(path), path, {})
    elif isinstance(table, pa.Table):
        columns = text_columns(table)
    elif hasattr(table, "columns"):
        columns = text_columns(pa.Table.from_pandas(table, preserve_index=False))
    else:
        raise FairnessError(f"table: expected a pandas or Arrow table, or a path; found {_kind(table)}")
    if not (isinstance(alpha, Real) and 0 < alpha < 1):
        raise FairnessError(f"alpha: expected a level between 0 and 1, such as 0.05; found {alpha!r}")
    _check_seed(seed)
    groups = (group,) if isinstance(group, str) else tuple(group)
    if isinstance(outcome, str):
        outcome = [outcome]
    if not isinstance(outcome, Iterable):
        raise FairnessError(f"outcome: expected columns, or what each outcome is by name; found {_kind(outcome)}")
    named = {"item": item, "cluster": cluster, "name": name, "draw": draw, "condition": condition}
    bare = [] if isinstance(outcome, Mapping) else list(outcome)
    for role, column in [
        *named.items(),
        *(("group", header) for header in groups),
        *(("outcome", header) for header in bare),
    ]:
        if column is not None and column not in columns.column_names:
            raise FairnessError(f"{role}: there is no column '{column}'; columns: {some(columns.column_names, 12)}")
    if not isinstance(outcome, Mapping):
        known = {role: [column] for role, column in named.items() if column}
        guessed = guess(columns, {**known, "outcome": bare, "group": groups})
        if reason := guessed.unsure.get("outcome"):
            raise FairnessError(f"outcome: {reason} Specify it, for example {{name: {_EXAMPLE}}}")
        outcome = {spec.column or "": spec.model_dump(exclude_unset=True) for spec in guessed.outcomes.values()}
    for key, specified in outcome.items():
        if not isinstance(specified, Mapping):
            raise FairnessError(f"outcome: {key}: expected what it is, such as {_EXAMPLE}; found {_kind(specified)}")
    values = columns[condition].chunk(0).dictionary.to_pylist() if condition else []
    document: dict[str, Any] = {
        "file": {"path": str(path or "table")}, "group": groups, **named,
        "conditions": {f"c{index}": value for index, value in enumerate(values)},
        "reference": dict(reference or {}), "outcomes": {key: dict(specified) for key, specified in outcome.items()},
    }  # fmt: skip
    for key, margin in (margins or {}).items():
        if key not in document["outcomes"]:
            raise FairnessError(f"margins: {unknown('outcome', key, document['outcomes'])}")
        document["outcomes"][key]["margin"] = dict(margin)
    specification = validate(OutcomeTable, document, Path("fp.audit"))
    for column in groups:
        if alike := Column(column, columns[column]).alike:
            warnings.warn(f"group: '{column}' has values that differ only in case or spaces: {alike}", stacklevel=2)
    if not specification.judged:
        raise FairnessError("item: name the column of what stays the same when only the group changes")
    trials = read_trials(columns, specification, path)
    trials = scored(trials, specification.outcomes, TextScorers.of(MeasureSettings(), specification.outcomes.values()))
    judging = Judging(
        outcomes=expanded(specification.outcomes),
        columns=groups,
        reference=specification.reference,
        alpha=alpha,
        seed=seed,
        unmarked=specification.unmarked,
    )
    tables = []
    for key in specification.condition_keys:
        rows = judge_outcomes(cell_table(trials, key), judging).to_pandas()
        rows.insert(0, "condition", specification.conditions.get(key, key))
        tables.append(rows)
    import pandas as pd

    return pd.concat(tables, ignore_index=True)
