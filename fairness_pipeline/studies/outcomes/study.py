"""Study 6: does what comes out depend on the group that it is about? Any table, any groups."""

from collections.abc import Sequence

from fairness_pipeline.corpora.outcomes.formats import BENCHMARKS
from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.messages import Messages, read_messages
from fairness_pipeline.corpora.outcomes.questions import ask
from fairness_pipeline.corpora.outcomes.specification import MESSAGES, SIGNED, OutcomeTable
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.outcomes.rates import lowest_ratio
from fairness_pipeline.measures.outcomes.rows import BEYOND, GATED, HARMFUL, NAMES_AND_ITEMS, SAID, SIDE
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.study import Judged, Study
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.studies.outcomes.asking import asked_about_groups
from fairness_pipeline.studies.outcomes.profile import NAME, Outcomes, OutcomesPart
from fairness_pipeline.workspace.lake import Key, Lake, Row

_FORMS = {"percent": "{:.3g}%", "count_per_response": "{:.3g}", "score": "{:.3g}"}


def _finding(part: OutcomesPart, key: Key, row: Row) -> str:
    table = (
        key["table"] if len(part.tables[key["table"]].condition_keys) == 1 else f"{key['table']} ({key['condition']})"
    )
    a, b = (_FORMS[row["unit"]].format(row[f"value_{side}"]) for side in "ab")
    if row["contrast"] == SIDE:
        side = "the stereotype's side" if row["difference"] > 0 else "the side against the stereotype"
        return f"{table}: {row['outcome']} is {a}, on {side}; {row['against']} would favour neither"
    if row["outcome"] == DISTINGUISHABLE:
        on_saying = row["contrast"] == SAID
        target = f"whether {row['attribute']} is said" if on_saying else f"the {row['attribute']} asked about"
        detail = f" ({row['group']}: {row['note']})" if row["note"] else ""
        return f"{table}: from the answers alone, without the groups' words, one can tell {target}{detail}"
    if row["contrast"] == BEYOND:
        return (
            f"{table}: {row['outcome']} is {a} for {row['group']}, where the effects of {row['attribute']} by "
            f"themselves would make it {b}"
        )
    amount = f"{abs(row['difference']):.3g}{UNITS[row['unit']]}"
    return f"{table}: {row['outcome']} is {a} for {row['group']} and {b} for {row['against']}, a gap of {amount}"


def _more(part: OutcomesPart, rows: Sequence[Judged]) -> str:
    if not any(row["clusters_needed"] for _, row in rows):
        return "more clusters of items (topics, templates), or a wider margin"
    key, row = max(
        ((key, row) for key, row in rows if row["clusters_needed"]), key=lambda judged: judged[1]["clusters_needed"]
    )
    unit = "names a group" if row["paired_test"] == NAMES_AND_ITEMS else "clusters of items"
    unit, current = ("messages", row["n"]) if part.asks_about_groups(key) else (unit, row["clusters"])
    needed = f"{row['clusters_needed']:,} {unit} (now {current:,})"
    return f"{needed} would give 80% power to show fairness if there is no difference"


def _cure(part: OutcomesPart, rows: Sequence[Judged]) -> str:
    if all(part.tables[key["table"]].format in (*BENCHMARKS, MESSAGES) for key, _ in rows):
        return (
            "change the prompt or the model, and ask the same questions under another --name, or beside the first in a "
            "profile (models, baseline): the change is tested over the same questions"
        )
    return (
        "change the prompt or the model, collect the same items again, and give them a column 'condition': the change "
        "is tested over the same items"
    )


def _control(part: OutcomesPart, key: Key, row: Row) -> str:
    control = part.tables[key["table"]].control
    if control == key["condition"]:
        return f"'{control}' is the control, which says nothing of the group: the table itself makes the gap"
    amount = f"{row['control_gap']:.3g}{UNITS[row['unit']]}"
    half = f"that it is less than half: p {row['p_control']:.2g}"
    return f"the control '{control}', which says nothing of the group, shows {amount} of it ({half})"


def rates(part: OutcomesPart, lake: Lake) -> list[Row]:
    """The rates by group of all rows of all tables, each with its partition."""
    keys = [
        {"table": name, "condition": condition}
        for name in part.tables
        for condition in part.tables[name].condition_keys
    ]
    return [{**key, **row} for key in keys if part.rated(key) for row in lake.rows("outcome_rates", key)]


def _warnings(part: OutcomesPart, lake: Lake) -> list[str]:
    """Warnings about tables without verdicts: their lowest ratios."""
    warnings = []
    for table in (name for name, specification in part.tables.items() if not specification.judged):
        rows = [row for row in rates(part, lake) if row["table"] == table]
        comparisons = dict.fromkeys((row["outcome"], row["attribute"]) for row in rows)
        ratios = [ratio for comparison in comparisons if (ratio := lowest_ratio(rows, *comparison))]
        warnings += [f"{table}: only rates, because it has no items; gates ignore them. {ratio}" for ratio in ratios]
    return warnings


def _sides(part: OutcomesPart, key: Key) -> tuple[str, str]:
    table = part.tables[key["table"]]
    signed = all(outcome.kind in SIGNED for outcome in table.outcomes.values())
    return ("score", "neither side") if signed else ("higher group", "lower group")


def _degenerate(part: OutcomesPart, key: Key, lake: Lake) -> str | None:
    if part.asks(key) and lake.figures("benchmark_answers", key).get("guesses"):
        return "the model gives the benchmark's texts no higher likelihood than uniformly drawn tokens; is it trained?"
    return None


def _requests(part: OutcomesPart, asset: str, key: Key, lake: Lake, pending: object) -> int:
    """One request for each question of a benchmark, or about groups, to an endpoint."""
    if asset != "benchmark_answers":
        return 0
    model = part.models[key["table"]][key["condition"]]
    file, _, _ = part.files(key)
    if not isinstance(model, ModelSpecification) or not model.endpoint or file is None or not file.path.exists():
        return 0
    try:
        if part.asks_about_groups(key):
            groups, spans = part.groups[key["table"]], part.tables[key["table"]].spans
            asked = asked_about_groups(ask(read_messages(file.path), groups, spans, part.project.profile.seed).table)
        else:
            asked = BENCHMARKS[part.tables[key["table"]].format].asked(file.path)
    except FairnessError:
        return 0  # the partition reports what is wrong with its file
    return len(asked["text"].unique())


STUDY = Study(
    name=NAME,
    title="Outcomes by group",
    method="Outcomes were compared between the groups within each item, by tests in which all rows of one cluster move "
    "together.",
    section=Outcomes,
    part=OutcomesPart,
    subject="table",
    table="outcome_significance",
    report="outcomes_report",
    asked="outcome_cells",
    identity=("table", "condition", "measure", "contrast", "group", "against"),
    headings=("outcomes",),
    unseen="other items, groups, outcomes",
    heading=lambda row: "outcomes" if row["contrast"] in GATED else None,
    label=lambda row: str(row["measure"]),
    harmful=lambda row: row["outcome"].endswith(HARMFUL),
    groups=_sides,
    finding=_finding,
    files={
        "tables (items, groups and outcomes)": OutcomeTable,
        "groups (who is asked about)": Groups,
        "messages (what is asked about them)": Messages,
    },
    direction=lambda row, groups: f"{row['group']} − {row['against']}",
    control=_control,
    rates=rates,
    warnings=_warnings,
    gated=lambda row: row["contrast"] in GATED,
    requests=_requests,
    degenerate=_degenerate,
    more=_more,
    cure=_cure,
)  # fmt: skip
