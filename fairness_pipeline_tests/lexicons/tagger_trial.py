"""Compares a part-of-speech tagger with the rules of sense, on the readers' labels of the pairs that the lists make.

The tagger is HanTa (its English model ships in the package; `pip install HanTa`, no dependency of the project). A pair is
kept if each exchanged word has a tag that words for persons can have: noun, adjective or pronoun, but not adverb or
proper name.

    FAIRNESS_CORPORA=... python -m fairness_pipeline_tests.lexicons.tagger_trial
"""

import re
import time
from functools import cache
from typing import Any

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lexicons.pair_errors import Name, all_pairs, errors, labels, made_pairs, name_of


@cache
def _tagger() -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger("morphmodel_en.pgz")


def keeps(text: str, matches: list[dict[str, Any]]) -> bool:
    """Whether the tagger tags every listed word of a text as a noun, an adjective or a pronoun."""
    tokens = [(match.start(), match.group()) for match in re.finditer(r"\w+(?:['’-]\w+)*|[^\w\s]", text)]
    tags = {
        start: tag for (start, _), (_, _, tag) in zip(tokens, _tagger().tag_sent([w for _, w in tokens]), strict=True)
    }
    tags_of_matches = [tags.get(listed["start"], "NN") for listed in matches]
    return all(
        tag.startswith(("NN", "JJ", "PRP", "PP")) and not tag.startswith(("NNP", "NP")) for tag in tags_of_matches
    )


def main() -> None:
    """Prints a row for each dimension: wrong pairs and lost right ones, for the tagger and for the rules."""
    project = Project("real")
    print(
        "| dimension | wrong, tagger | right ones lost | wrong, rules | right ones lost |\n| --- | --- | --- | --- | --- |"
    )
    tokens = seconds = 0.0
    for dimension in project.dimensions:
        labelled, kept = labels(dimension, "test"), set[Name]()
        for key, contexts, pairs in all_pairs(project, dimension, "list"):
            matches = dict(zip(contexts["dialogue_id"].to_pylist(), contexts["matches"].to_pylist(), strict=True))
            for row in pairs.to_pylist():
                name = name_of(key, row)
                if name in labelled:
                    begun = time.process_time()
                    text = row[f"context_{row['source_side']}"]
                    if keeps(text, matches[row["dialogue_id"]]):
                        kept.add(name)
                    seconds, tokens = seconds + time.process_time() - begun, tokens + len(text.split())
        tagged, ruled = errors(labelled, kept), errors(labelled, made_pairs(project, dimension))
        cells = [f"{counts.wrong} of {counts.made} | {counts.lost} of {counts.right}" for counts in (tagged, ruled)]
        print(f"| {dimension} | {' | '.join(cells)} |", flush=True)
    print(f"\n{tokens / seconds:,.0f} words a second")


if __name__ == "__main__":
    main()
