"""Study 1: does a dialogue model answer differently when only the group named in the context changes?"""

from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.measures.dialogue.dialogue_significance import control, decisive, reservations
from fairness_pipeline.measures.dialogue.registry import finding, glanced_at, is_part, measure_label
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.study import Study
from fairness_pipeline.studies.dialogue_fairness.profile import DialogueFairness, DialoguePart
from fairness_pipeline.workspace.lake import Key, Row

LISTS = "Attribute words"
_HEADINGS = {row: measure_label(row) for row in glanced_at()}


def _groups(part: DialoguePart, key: Key) -> tuple[str, str]:
    groups = part.project.dimensions[key["dimension"]].groups
    return groups.a, groups.b


def _finding(part: DialoguePart, key: Key, row: Row) -> str:
    checkpoint = " (this checkpoint)" if part.models[key["model"]].trained else ""
    own = decisive(row)
    masked = ", with the groups' words masked" if own["difference"] != row["difference"] else ""
    # Where the word is the group's name, other words for the group were not tried.
    named = part.dimensions[key["dimension"]].names_the_group
    words = f" (tested with the words {row['exchanged']})" if named else ""
    return f"{key['model']}{checkpoint}: {finding(own, _groups(part, key))}{masked}{words}"


def _reservations(part: DialoguePart, key: Key, row: Row) -> list[str]:
    return reservations(row, part.level)


STUDY = Study(
    name="dialogue_fairness",
    title="Dialogue fairness",
    section=DialogueFairness,
    part=DialoguePart,
    subject="model",
    table="dialogue_significance",
    report="dialogue_fairness_report",
    asked="responses",
    identity=("dimension", "model", "measure"),
    shown=(
        "dimension", "model", "measure", "unit", "n", "value_a", "value_b", "difference", "ci_low", "ci_high",
        "p_paired", "p_holm", "verdict", "p", "paper_verdict", "p_as_answered", "content_difference",
        "clusters", "p_clusters", "hangs_on", "holds", "variations", "carried_by",
    ),
    headings=(*_HEADINGS.values(), LISTS),
    heading=lambda row: _HEADINGS.get(row["measure"]) or (None if is_part(row["measure"]) else LISTS),
    label=lambda row: measure_label(row["measure"]),
    files={"models": ModelSpecification, "corpora": CorpusSpecification},
    columns={
        "dialogue_id": "a hash of corpus, context and response",
        "thread_id": "dialogues of one thread fall into one split",
        "context": "what is said to the model",
        "response": "what is answered",
        "split": "train, valid, test or audit",
        "matches": "the dimension's words in the context: where each starts and ends, and which it is",
        "pair_id": "of the pair of contexts, from 0 in each corpus and dimension",
        "source_side": "the side whose words the original context holds",
        "context_a": "the context with the words of side a",
        "context_b": "the context with the words of side b",
        "terms": "the words that were exchanged, as both sides have them",
        "words": "all words of the side's responses",
        "distinct_1": "distinct words per word",
        "distinct_2": "distinct word pairs per word",
        "diversity": "mean of distinct_1 and distinct_2",
        "offensive_probability": "the classifier's probability that the response is offensive",
        "offensive": "whether it is at least the threshold",
        "compound": "VADER's score of the response, from -1 to 1",
        "positive": "whether it is at least the threshold",
        "negative": "whether it is at most minus the threshold",
        "attribute": "the dimension's attribute list",
        "count": "how many words of the list the response holds",
        "metric": "of response quality",
        "value": "the metric's value",
        "signature": "how sacreBLEU computed it",
        "constant_value": "what one answer to everything would get",
        "published_value": "what table 3.5 of Liu 2022 prints",
        "difference_before": "side a minus side b of the base model",
        "difference_after": "side a minus side b of the debiased model",
        "change": "how much smaller (negative) or larger the absolute difference became",
        "effect": "smaller gap, larger gap, no change shown, nothing to judge (a model says one thing, or guesses); "
        "of a recipe also: cure, no gap shown",
        "verdict_before": "of the base model",
        "verdict_after": "of the debiased model",
        "source": "the file, data set or grammar that a dialogue is from",
        "topic": "what a dialogue is about, where the corpus says so",
        "offensive_probability_masked": "the same with the groups' words masked in the response",
        "offensive_masked": "whether that is at least the threshold",
        "compound_masked": "VADER's score with the groups' words masked in the response",
        "positive_masked": "whether that is at least the threshold",
        "negative_masked": "whether that is at most minus the threshold",
        "count_masked": "how many words of the list are left with the groups' words masked",
        "instrument_difference": "what the scorer makes of human texts with only the listed words swapped",
        "instrument_p": "p of that difference",
        "content_a": "the value of side a with the groups' words masked, on which the verdict rests",
        "content_b": "the value of side b with the groups' words masked",
        "content_difference": "their difference",
        "content_ci_low": "lower end of its 95% interval",
        "content_ci_high": "upper end of its 95% interval",
        "p_as_answered": "adjusted p of the answers as they are",
        "parrot_difference": "what answers that only repeat the context would get",
        "exchanged": "the commonest exchanged words",
        "hangs_on": "the words that make the difference, where pairs show one and words do not",
        "carried_by": "the words whose pairs make most of a biased measure's gap",
        "without_them": "the verdict on the other pairs",
        "difference_without_them": "their difference",
        "holds": "in how many variations the verdict is the same",
        "variations": "how many there are: word lists, halves of the contexts, thresholds, classifiers",
        "distinct_shown": "how many distinct responses show the measure",
        "commonest_shown": "share in percent of the most frequent of them",
        "texts": "what was scored: responses or contexts with swapped words, or contexts as answers",
        "classifier": "that is held against the labelled texts",
        "group": "all texts, or those that name one side alone",
        "factor": "word, source_side, source_file or topic",
        "level": "the word (side a / side b), side, file or topic",
        "shrunken": "the level's difference, drawn towards the mean of all levels",
        "contribution": "how much of the whole difference the level's pairs make",
        "kind": "of variation: base, words, half, threshold, classifier, without, carriers",
        "variation": "what is otherwise",
        "seeds": "trainings of the recipe",
        "sd_before": "standard deviation of the base's difference between seeds",
        "sd_after": "the same of the debiased model",
        "p_gap": "p of the base's gap over its seeds, adjusted for all rows",
        "share_left": "the mean absolute difference after as a share of that before",
        "control": "the same training without the debiasing term; of several, the hardest to beat",
        "difference_control": "its difference",
        "p_control": "p of what the method changes beyond it",
        "power": "the chance that as many seeds tell the method from its control, if it does what was found",
        "seeds_needed": "seeds that would tell it four times in five; null where 200 would not",
        "p_cure": "the largest p of the base's gap, its change, that half is left, and each control; adjusted",
        "sd_seeds": "standard deviation of the difference between seeds",
        "lowest": "the lowest of the seeds' differences",
        "highest": "the highest of the seeds' differences",
        "verdicts": "how many checkpoints' own verdicts say what",
    },
    groups=_groups,
    finding=_finding,
    decisive=decisive,
    reservations=_reservations,
    control=lambda part, key, row: control(row),
    gated=lambda row: not is_part(row["measure"]),
)  # fmt: skip
