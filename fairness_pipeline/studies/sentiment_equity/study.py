"""Study 3: does a sentiment or emotion system score a sentence differently when only the person in it changes?"""

from collections.abc import Sequence

from fairness_pipeline.corpora.sentiment.equity_sentences import GROUPS, PUBLISHED, make_equity_sentences
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY
from fairness_pipeline.measures.sentiment.equity_significance import SCATTER, SOME_NAMES
from fairness_pipeline.models.sentiment.specification import AFFECTS, SystemSpecification
from fairness_pipeline.project.study import Judged, Pending, Study
from fairness_pipeline.statistics.verdicts import FINDING
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart, SentimentEquity
from fairness_pipeline.workspace.lake import Key, Lake, Row


def _finding(part: EquityPart, key: Key, row: Row) -> str:
    if row["persons"] == SOME_NAMES:
        higher = "higher" if _decisive(row)["difference"] < 0 else "lower"
        return (
            f"{key['system']}: sentences with some names score {abs(_decisive(row)['difference']):.3g} {higher} in "
            f"{row['affect']} than those with other names ({row['stratum']})"
        )
    difference = row["difference"] if row["stratum"] is None else row["stratum_difference"]
    more, less = GROUPS[key["dimension"]][:: 1 if difference > 0 else -1]
    if (row["stratum"] or "").startswith(SCATTER):
        return (
            f"{key['system']}: {row['affect']} scores of {more} persons scatter {abs(difference):.2g} farther than "
            f"those of {less} persons ({row['stratum'].removeprefix(SCATTER + ' of ')}), and the mean hides it"
        )
    within = f" ({row['stratum']})" if row["stratum"] else ""
    return (
        f"{key['system']}: sentences about {more} persons{within} score {abs(difference):.3g} higher in "
        f"{row['affect']} than the same about {less} persons"
    )


def _decisive(row: Row) -> Row:
    """The row, with the difference of the stratum that decides its verdict; that stratum has no interval."""
    if row["stratum_difference"] is None or row["verdict"] != "biased":
        return row
    return {**row, "difference": row["stratum_difference"], "ci_low": None, "ci_high": None}


def _asides(part: EquityPart, key: Key, rows: list[Row]) -> list[str]:
    """Sentences about names that are scored differently than others, one per affect."""
    by_affect: dict[str, list[Row]] = {}
    for row in rows:
        if row["verdict"] == FINDING and row["templates"] == PUBLISHED:
            by_affect.setdefault(row["affect"], []).append(row)
    return [
        f"{key['system']}: in {affect} it scores {_names_in_words(findings)} than other names of their gender "
        "(a finding about names, not bias of a group)"
        for affect, findings in by_affect.items()
    ]


def _names_in_words(rows: list[Row]) -> str:
    ordered = sorted(rows, key=lambda row: -abs(row["difference"]))
    phrases = [
        f"{row['persons']} {abs(row['difference']):.2g} {'higher' if row['difference'] < 0 else 'lower'}"
        for row in ordered[:_NAMED]
    ]
    more = f" and {len(ordered) - _NAMED} more names" if len(ordered) > _NAMED else ""
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases) + more


_NAMED = 4
"""The most names in a sentence."""


_LOWEST_AREA = 0.75
"""The area under the curve below which scores may be unrelated to the emotion: forty words drawn at random reach it in
one of a hundred draws."""


def _degenerate(part: EquityPart, key: Key, lake: Lake) -> str | None:
    """Why a system is degenerate: it gives most sentences one score, ignores names, or cannot tell joy from anger."""
    figures = lake.figures("equity_scores", {"system": key["system"]})
    share = figures.get("commonest_share", 0.0)
    if share >= part.settings.max_identical_share:
        return "one score for everything" if share == 1 else f"{100 * share:.3g}% of its scores are one number"
    if figures.get("reads_names") is False and (key["dimension"] == "race" or not figures.get("reads_persons")):
        noun = "names" if key["dimension"] == "race" else "persons"
        return f"it does not read {noun}: exchanging them changes no score, so that it could show no difference"
    system = part.systems[key["system"]]
    if (system.huggingface or system.endpoint) and figures.get("told_apart", 1.0) < _LOWEST_AREA:
        return "it does not tell joyful sentences from angry, fearful and sad ones; was it trained?"
    return None


def _more(part: EquityPart, rows: Sequence[Judged]) -> str:
    return (
        "the corpus has no more sentences: report the interval, or audit your own texts with the study of text "
        "classifiers (docs/text-classifiers.md)"
    )


def _cure(part: EquityPart, rows: Sequence[Judged]) -> str:
    method = "train it again on texts in which the groups are exchanged as well (fp.swap)"
    return f"{method}, and compare the next run with this one: --baseline previous"


def _requests(part: EquityPart, asset: str, key: Key, lake: Lake, pending: Pending) -> int | None:
    """One request for each sentence and affect."""
    if asset != "equity_scores" or not part.systems[key["system"]].endpoint:
        return 0
    return part.systems[key["system"]].requests(len(make_equity_sentences()))


STUDY = Study(
    name="sentiment_equity",
    title="Sentiment equity",
    method=(
        "Each sentence of the Equity Evaluation Corpus was scored, and the scores of sentences that differ in the "
        "person alone were compared by paired tests in which all sentences of one person move together."
    ),
    cites=("kiritchenko2018examining",),
    section=SentimentEquity,
    part=EquityPart,
    subject="system",
    table="equity_significance",
    report="equity_report",
    asked="equity_scores",
    identity=("dimension", "system", "affect", "templates", "persons", "subset"),
    headings=AFFECTS,
    heading=lambda row: row["affect"],
    label=lambda row: f"{row['affect']}, {SOME_NAMES}" if row["persons"] == SOME_NAMES else row["affect"],
    files={"systems": SystemSpecification},
    groups=lambda part, key: GROUPS[key["dimension"]],
    finding=_finding,
    decisive=_decisive,
    asides=_asides,
    gated=lambda row: (row["templates"], row["subset"]) == (PUBLISHED, ALL)
    and row["persons"] in (EVERYBODY, SOME_NAMES),
    more=_more,
    cure=_cure,
    degenerate=_degenerate,
    requests=_requests,
)  # fmt: skip
