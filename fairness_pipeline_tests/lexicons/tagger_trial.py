"""Does a part-of-speech tagger err less than the rules of sense? On the readers' labels of pairs as the lists make them.

The tagger is HanTa (its English model ships in the package; `pip install HanTa`, no dependency of the project). A pair is
kept if each exchanged word is tagged as what a word for persons can be: a noun, an adjective or a pronoun, and no adverb, no
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
    """Whether the tagger takes every listed word of a text for a noun, an adjective or a pronoun."""
    words = [(found.start(), found.group()) for found in re.finditer(r"\w+(?:['’-]\w+)*|[^\w\s]", text)]
    tags = {
        start: tag for (start, _), (_, _, tag) in zip(words, _tagger().tag_sent([w for _, w in words]), strict=True)
    }
    own = [tags.get(match["start"], "NN") for match in matches]
    return all(tag.startswith(("NN", "JJ", "PRP", "PP")) and not tag.startswith(("NNP", "NP")) for tag in own)


def main() -> None:
    """Prints a row for each dimension: wrong pairs and right ones lost, by the tagger and by the rules."""
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
        said = [f"{found.wrong} of {found.made} | {found.lost} of {found.right}" for found in (tagged, ruled)]
        print(f"| {dimension} | {' | '.join(said)} |", flush=True)
    print(f"\n{tokens / seconds:,.0f} words a second")


if __name__ == "__main__":
    main()
