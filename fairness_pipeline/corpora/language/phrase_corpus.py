"""What a file of `data/corpora` may say of a corpus of stereotyped phrases (Barikeri et al. 2021, RedditBias)."""

from typing import Literal, Self

import pydantic

from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.yaml_files import Positive, Specification

Encoding = Literal["utf-8", "latin-1"]


class CommentColumns(Specification):
    """Where a comment's row holds what."""

    comment_id: str | None = "id"
    """Its id; rows are numbered where there is none."""
    text: str = "body"
    """What was written."""
    created: str | None = None
    """When, in any form."""


class CommentFile(CorpusFile):
    """Comments: `.jsonl` (Pushshift's), `.csv`, `.tsv` or `.parquet`; text files plain, `.gz` or `.zst`."""

    columns: CommentColumns = CommentColumns()
    """Of a file."""


class AnnotationFile(CorpusFile):
    """What one annotator wrote: CSV with `comment`, `phrase`, `attribute_in_window`, `bias_sent`, `bias_phrase`."""

    annotator: str = "1"
    """Who."""
    encoding: Encoding = "utf-8"
    """Of the file."""


class TextFile(CorpusFile):
    """Phrases: `.txt`, one a line, or `.csv` with a column for them."""

    column: str = "comments_processed"
    """Of a CSV file."""
    encoding: Encoding = "utf-8"
    """Of the file."""


class CounterfactualFile(TextFile):
    """Released counterfactuals: CSV with the phrase and the same about the other group."""

    phrase: str = "comments"
    """The column of the phrase."""


class PhraseSource(Specification):
    """One dimension's annotated phrases, and what was released beside them."""

    renamed = {"counterparts": "counterfactuals"}

    annotations: tuple[AnnotationFile, ...] = ()
    """One or more files, each by one annotator."""
    train: TextFile | None = None
    """The biased phrases of the split; all three, or none: they are drawn then."""
    dev: TextFile | None = None
    """The same."""
    test: TextFile | None = None
    """The same."""
    counterfactuals: tuple[CounterfactualFile, ...] = ()
    """The authors' own counterfactuals; ours are compared with them."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if len({split is None for split in (self.train, self.dev, self.test)}) > 1:
            raise ValueError("expected 'train', 'dev' and 'test', or none of them")
        return self


class StereotypeSource(Specification):
    """A corpus that is generated."""

    file: str
    """Its grammar, a data file."""
    comments: Positive
    """How many comments."""
    seed: int
    """The seed of the draws."""
    turns: Positive = 600
    """Turns of dialogue state tracking."""
    questions: Positive = 400
    """Questions with several answers."""
    references: Positive = 300
    """Comments for the perplexity on references."""


class StateTrackingSource(Specification):
    """MultiWOZ in ConvLab's form (`.json` or `.json.zip`)."""

    train: tuple[CorpusFile, ...]
    """Dialogues that the tracker is trained on."""
    test: tuple[CorpusFile, ...]
    """Dialogues that it is tested on."""


class ResponsesSource(Specification):
    """Contexts with several human answers: JSON lines with `context` (text or turns) and `references`, or DailyDialog's
    `dialogue` (turns with `text` and `responses`)."""

    train: tuple[CorpusFile, ...]
    """What the model is tuned on; may be the same file as `test`, whose dialogues are then shared out."""
    test: tuple[CorpusFile, ...]
    """What it answers."""


class PhraseCorpus(Specification):
    """A corpus for language models: comments in which stereotyped phrases are sought, their annotations, and the data
    of the downstream tasks."""

    comments: tuple[CommentFile, ...] = ()
    """Where candidates are sought, and what a `gpt2` model is trained on."""
    grammar: StereotypeSource | None = None
    """What everything is generated from, instead."""
    phrases: dict[str, PhraseSource] = {}
    """By dimension: what was annotated and released already."""
    ignored_labels: tuple[str, ...] = ()
    """What annotators wrote instead of a label (`question`); counts as none."""
    outliers_removed: bool = False
    """Whether phrases with outliers are out of the released splits already, so that no pair is left out again."""
    references: TextFile | None = None
    """Human references for the perplexity, a line each."""
    state_tracking: StateTrackingSource | None = None
    """Of dialogue state tracking."""
    responses: ResponsesSource | None = None
    """Of response generation."""
    licence: str
    """Printed in the report."""
    citation: str
    """Printed in the report."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.grammar and (self.comments or self.phrases or self.references):
            raise ValueError("'grammar' makes everything: it goes without 'comments', 'phrases' and 'references'")
        if not (self.grammar or self.comments or self.phrases):
            raise ValueError("expected 'comments', 'phrases' or 'grammar'")
        return self

    def files(self) -> list[CorpusFile]:
        """Every file that it names."""
        found: list[CorpusFile | None] = [*self.comments, self.references]
        for source in self.phrases.values():
            found += [*source.annotations, source.train, source.dev, source.test, *source.counterfactuals]
        for task in (self.state_tracking, self.responses):
            found += [*task.train, *task.test] if task else []
        return [file for file in found if file]
