"""The contents of a file of `data/corpora` about stereotyped phrases (Barikeri et al. 2021, RedditBias)."""

from typing import Literal, Self

import pydantic

from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.yaml_files import Positive, Specification

Encoding = Literal["utf-8", "latin-1"]
DownstreamTask = Literal["state_tracking", "responses"]
"""A downstream task, by the section of a corpus that holds its data."""


class CommentColumns(Specification):
    """The columns of a comment's row."""

    comment_id: str | None = "id"
    """The comment's id; if it is null, rows are numbered."""
    text: str = "body"
    """The column with the text."""
    created: str | None = None
    """The time when it was written, in any form."""


class CommentFile(CorpusFile):
    """Comments: `.jsonl` (Pushshift's), `.csv`, `.tsv` or `.parquet`; text files plain, `.gz` or `.zst`."""

    columns: CommentColumns = CommentColumns()
    """The columns of the file."""


class AnnotationFile(CorpusFile):
    """The labels of one annotator: CSV with `comment`, `phrase`, `attribute_in_window`, `bias_sent`, `bias_phrase`."""

    annotator: str = "1"
    """The name of the annotator."""
    encoding: Encoding = "utf-8"
    """The encoding of the file."""


class TextFile(CorpusFile):
    """Phrases: `.txt` with one on each line, or `.csv` with a column of phrases."""

    column: str = "comments_processed"
    """The column of a CSV file."""
    encoding: Encoding = "utf-8"
    """The encoding of the file."""


class CounterfactualFile(TextFile):
    """Released counterfactuals: CSV with each phrase and its counterfactual about the other group."""

    phrase: str = "comments"
    """The column with the original phrase."""


class PhraseSource(Specification):
    """The annotated phrases of one dimension, and what was released beside them."""

    renamed = {"counterparts": "counterfactuals"}

    annotations: tuple[AnnotationFile, ...] = ()
    """One or more files, each by one annotator."""
    train: TextFile | None = None
    """The released training split of biased phrases. Give all three splits, or none: the splits are then drawn."""
    dev: TextFile | None = None
    """The released development split."""
    test: TextFile | None = None
    """The released test split."""
    counterfactuals: tuple[CounterfactualFile, ...] = ()
    """The counterfactuals that the authors released; ours are compared with them."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if len({split is None for split in (self.train, self.dev, self.test)}) > 1:
            raise ValueError("expected 'train', 'dev' and 'test', or none of them")
        return self


class StereotypeSource(Specification):
    """A corpus that is generated from a grammar."""

    file: str
    """The grammar, a data file."""
    comments: Positive
    """The number of comments."""
    seed: int
    """The seed of the draws."""
    turns: Positive = 600
    """The number of turns for dialogue state tracking."""
    questions: Positive = 400
    """The number of questions with several answers."""
    references: Positive = 300
    """The number of comments for the perplexity on references."""


class StateTrackingSource(Specification):
    """MultiWOZ in ConvLab's form (`.json` or `.json.zip`)."""

    name: str | None = None
    """The name of the data set, for the report. The paper's figures are shown beside ours only for `MultiWOZ 2.0`."""

    train: tuple[CorpusFile, ...]
    """The dialogues that the tracker is trained on."""
    test: tuple[CorpusFile, ...]
    """The dialogues that the tracker is tested on."""


class ResponsesSource(Specification):
    """Contexts with several human answers: JSON lines with `context` (a text or turns) and `references`, or with
    DailyDialog's `dialogue` (turns with `text` and `responses`)."""

    name: str | None = None
    """The name of the data set, for the report. The paper's figures are shown beside ours only for `DSTC-7`."""

    train: tuple[CorpusFile, ...]
    """The files to fine-tune the model on. If `test` names the same file, its dialogues are split between both."""
    test: tuple[CorpusFile, ...]
    """The files with the contexts that the model answers."""


class PhraseCorpus(Specification):
    """A corpus for language models: comments to search for stereotyped phrases, their annotations, and the data of the
    downstream tasks."""

    comments: tuple[CommentFile, ...] = ()
    """The comments to search for candidates. A `gpt2` model is trained on them."""
    grammar: StereotypeSource | None = None
    """The grammar to generate everything from, instead of reading files."""
    phrases: dict[str, PhraseSource] = {}
    """The phrases that are already annotated and released, by dimension."""
    ignored_labels: tuple[str, ...] = ()
    """Values that annotators wrote instead of a label (`question`); they count as no label."""
    outliers_removed: bool = False
    """Whether the released splits are already without outliers, so that no further pairs are left out."""
    references: TextFile | None = None
    """Human references for the perplexity, one on each line."""
    state_tracking: StateTrackingSource | None = None
    """The data for dialogue state tracking."""
    responses: ResponsesSource | None = None
    """The data for response generation."""
    published_as: Literal["RedditBias"] | None = None
    """Whether it is the paper's own corpus; only then are the paper's counts, alpha and findings shown beside ours."""
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

    def data_of(self, task: DownstreamTask) -> str | None:
        """The name of a downstream task's data."""
        source = getattr(self, task)
        return "generated" if self.grammar else source and source.name

    def files(self) -> list[CorpusFile]:
        """Every file that the corpus names."""
        files: list[CorpusFile | None] = [*self.comments, self.references]
        for source in self.phrases.values():
            files += [*source.annotations, source.train, source.dev, source.test, *source.counterfactuals]
        for task in (self.state_tracking, self.responses):
            files += [*task.train, *task.test] if task else []
        return [file for file in files if file]
