"""The study's own commands: phrases out to annotate, labels in; texts out to score, log-probabilities in."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.arguments import check_output
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.imports import check_name, import_file
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import part_of
from fairness_pipeline.studies.language_model_bias.profile import NAME, LanguageModelPart


def add_commands(command: Command) -> None:
    """Adds them to the command line."""
    phrases = command("export-phrases", _export_phrases, "Write phrases that annotators are to label.")
    phrases.add_argument("--dimension", required=True, help="which dimension")
    phrases.add_argument("--output", metavar="FILE", required=True, help=".csv; the guidelines are written beside it")
    phrases.add_argument("--count", type=int, help="so many, drawn at random (default: all)")
    phrases.add_argument("--force", action="store_true", help="replace FILE if it is there")
    labels = command("import-annotations", _import_annotations, "Take one annotator's labels from a file.")
    labels.add_argument("file", help=".csv with phrase_id, phrase, bias_sent and bias_phrase")
    labels.add_argument("--dimension", required=True, help="which dimension")
    labels.add_argument("--annotator", required=True, help="a name for who labelled")
    texts = command(
        "export-phrase-texts", _export_texts, "Write the texts that a language model elsewhere is to score."
    )
    texts.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    texts.add_argument("--dimension", help="of one dimension alone (default: of all)")
    texts.add_argument("--force", action="store_true", help="replace FILE if it is there")
    logprobs = command("import-logprobs", _import_logprobs, "Take a language model's log-probabilities from a file.")
    logprobs.add_argument("file", help=".csv or .tsv with text, logprob (nats, summed) and tokens")
    logprobs.add_argument("--model", required=True, help="a name for what scored")


def _export_phrases(arguments: argparse.Namespace) -> int:
    import random

    from fairness_pipeline.cli.run import make
    from fairness_pipeline.corpora.language.phrase_annotations import GUIDELINES, write_template
    from fairness_pipeline.foundation.files import replacing
    from fairness_pipeline.workspace.lake import Lake

    path = Path(arguments.output)
    check_output(path, (".csv",), force=arguments.force)
    part = part_of(arguments.profile, NAME, LanguageModelPart)
    dimension = _dimension(part, arguments.dimension)
    _check_comments(part)
    make(part.project, NAME, "bias_phrases", dimension)
    phrases = Lake(part.project.workspace).read("bias_phrases", {"dimension": dimension})
    if arguments.count is not None:
        if arguments.count < 1:
            raise FairnessError(f"--count: expected 1 or more, found {arguments.count}")
        places = list(range(phrases.num_rows))
        random.Random(part.project.profile.seed).shuffle(places)
        phrases = phrases.take(sorted(places[: arguments.count]))
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write_template(phrases, stream)
    guidelines = path.with_name(f"{path.stem}-guidelines.txt")
    with replacing(guidelines) as temporary:
        temporary.write_text(GUIDELINES, encoding="utf-8")
    print(f"{path}: {phrases.num_rows:,} phrases, and how to label them in {guidelines}; fill in a copy, then:")
    print(
        f"fairness-pipeline import-annotations FILE --dimension {dimension} --annotator NAME "
        f"--profile {arguments.profile}"
    )
    return 0


def _import_annotations(arguments: argparse.Namespace) -> int:
    import pyarrow.compute as pc

    from fairness_pipeline.corpora.language.phrase_annotations import read_annotations
    from fairness_pipeline.foundation.paths import check_key
    from fairness_pipeline.workspace.lake import Lake

    check_key(arguments.annotator, "--annotator")
    part, path = part_of(arguments.profile, NAME, LanguageModelPart), Path(arguments.file)
    dimension = _dimension(part, arguments.dimension)
    known = None
    if part.corpus.grammar or part.corpus.comments:
        phrases = Lake(part.project.workspace).read("bias_phrases", {"dimension": dimension})
        known = dict(zip(phrases["phrase_id"].to_pylist(), phrases["phrase"].to_pylist(), strict=True))
    read = read_annotations(path, arguments.annotator, ignored=part.corpus.ignored_labels, known=known)
    labelled = read.table.num_rows - read.table["bias_phrase"].null_count
    if not labelled:
        raise FairnessError(f"{path}: no phrase has a label in 'bias_phrase'; fill in 1 or 0")
    target = part.annotations_folder(dimension) / f"{arguments.annotator}.csv"
    import_file(path, target, part.project.workspace, f"the labels of '{arguments.annotator}'")
    biased = int(pc.sum(read.table["bias_phrase"].cast("int64")).as_py() or 0)
    print(f"{labelled:,} labels of '{arguments.annotator}', {biased:,} of them biased phrases, in {target}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --study {NAME} --dimension {dimension}")
    return 0


def _export_texts(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.foundation.csv_cells import say_escaped
    from fairness_pipeline.foundation.files import replacing
    from fairness_pipeline.models.language.log_probability_files import write_texts

    path = Path(arguments.output)
    check_output(path, (".csv", ".jsonl"), force=arguments.force)
    part = part_of(arguments.profile, NAME, LanguageModelPart)
    texts = _texts_to_score(part, _dimension(part, arguments.dimension) if arguments.dimension else None)
    with replacing(path) as temporary:
        marked = write_texts(texts, temporary, path.suffix)
    print(
        f"{path}: {len(texts):,} texts; in a copy fill in 'logprob' (the sum of the natural logarithms of the tokens' "
        "probabilities, each given the tokens before it) and 'tokens' (how many they are). A first token that nothing "
        f"stands before counts in neither. Then:{say_escaped(marked)}"
    )
    print(f"fairness-pipeline import-logprobs FILE --model NAME --profile {arguments.profile}")
    return 0


def _texts_to_score(part: LanguageModelPart, dimension: str | None) -> list[str]:
    """Every text of the splits that are scored, each once, of one dimension or all that have phrases."""
    from fairness_pipeline.cli.run import make
    from fairness_pipeline.measures.language.phrase_bias import scored_versions
    from fairness_pipeline.workspace.lake import Lake

    lake, texts = Lake(part.project.workspace), dict[str, None]()
    for own in [dimension] if dimension else [name for name in part.dimensions if part.has_phrases(name)]:
        make(part.project, NAME, "counterfactual_phrases", own)
        versions = scored_versions(lake.read("counterfactual_phrases", {"dimension": own}))
        texts |= dict.fromkeys(versions["text"].to_pylist())
    return list(texts)


def _import_logprobs(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.models.language.log_probability_files import FORMS, read_log_probabilities

    part, path = part_of(arguments.profile, NAME, LanguageModelPart), Path(arguments.file)
    known = part.models.get(arguments.model)
    taken = known is not None and known.architecture != "logprobs"
    check_name("--model", arguments.model, part.project.name, taken=taken)
    count = len(read_log_probabilities(path))
    before = [part.log_probability_file(arguments.model, form) for form in FORMS]
    target = part.log_probability_file(arguments.model, path.suffix)
    what = f"the log-probabilities of '{arguments.model}'"
    import_file(path, target, part.project.workspace, what, before)
    print(f"{count:,} texts scored by '{arguments.model}' in {target}; now:")
    print(f"fairness-pipeline run --profile {part.project.name} --study {NAME} --model {arguments.model}")
    return 0


def _check_comments(part: LanguageModelPart) -> None:
    if not (part.corpus.grammar or part.corpus.comments):
        raise FairnessError(
            f"corpus '{part.settings.corpus}' has no comments to seek phrases in: name some under 'comments' in its "
            "YAML file"
        )


def _dimension(part: LanguageModelPart, asked: str) -> str:
    if asked not in part.dimensions:
        raise FairnessError(
            f"--dimension: '{asked}' is none of profile '{part.project.name}' with stereotypes: "
            f"{', '.join(part.dimensions)}"
        )
    return asked
