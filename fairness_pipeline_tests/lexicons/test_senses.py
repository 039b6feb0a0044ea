"""The rules of sense: patterns, the rules of the shipped dimensions, and what is reported."""

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.yaml_files import FairnessError
from fairness_pipeline.lexicons.contexts import PairSettings, find_contexts, make_pairs
from fairness_pipeline.lexicons.dictionary import is_word
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.senses import Not, SenseRules, Senses, Use
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import load_dimension


def exchanged(dimension: str, text: str) -> str | None:
    """The text with its words exchanged by the rules; None if no pair is made of it."""
    declared = load_dimension(dimension)
    table = pa.table({"dialogue_id": ["1"], "context": [text], "split": ["audit"]})
    contexts = find_contexts(table, Swapper(declared, pronouns="extended", senses=True)).table
    settings = PairSettings(one_word=False).model_dump(exclude={"no_effect"})
    pairs = make_pairs(contexts, declared, seed=1, **settings).table.to_pylist()
    if not pairs:
        return None
    assert len(pairs) == 1
    return str(pairs[0]["context_b" if pairs[0]["source_side"] == "a" else "context_a"])


@pytest.mark.parametrize(
    ("dimension", "text", "expected"),
    [
        ("race", "a white man left", "a black man left"),
        ("race", "I'm black.", "I'm white."),
        ("race", "the White House said no", None),
        ("race", "stealing is a white hole of money", None),
        ("race", "American football is fun", None),
        ("race", "whites and asian people", None),
        ("orientation", "he went straight home", None),
        ("orientation", "a straight man left", "a gay man left"),
        ("orientation", "the gays are here", "the straights are here"),
        ("orientation", "she is a lesbian.", "she is a straight woman."),
        ("orientation", "that's so gay", None),
        ("orientation", "my gay friend called", "my straight friend called"),
        ("orientation", "they legalize gay marriage", None),  # nobody says this of the other group
        ("orientation", "gay people at the parade", None),
        ("orientation", "an anti-gay club threw out a gay man", None),
        ("orientation", "a gay man and two transwomen", None),
        ("orientation", "a gay man sang #gaypride", None),
        ("race", "a white supremacist left", None),
        ("race", "a white nationalist left", None),
        ("race", "he is Caucasian", None),
        ("race", "a Caucasian man and a white man", None),
        ("race", "a white man danced #blacklove", None),
        ("religion1", "a pre-Christian temple and a Christian man", None),
        ("religion1", "the Jews of the Holocaust", None),
        ("religion1", "the Jewish neighbours sang", "the Christian neighbours sang"),
        ("religion2", "some Islamofascist hates Christians", None),
        ("religion2", "the Christians in a Christian nation", None),
        ("religion1", "he is a Christian.", "he is a Jew."),
        ("religion1", "a Christian man", "a Jewish man"),
        ("religion1", "Christian Bale is great", None),
        ("religion1", "the Christians sing in church", None),
        ("religion2", "a Christian baker", "a Muslim baker"),
        ("religion2", "Americans love it", None),
        ("religion2", "Islam is old", "Christianity is old"),
        ("dialect", "No, I like the game", "Nah, I like da game"),
        ("dialect", "I have no idea", None),
        ("dialect", "I want to sleep", None),
        ("dialect", "a lot of people", "hella people"),
        ("gender", "my uncle called", "my aunt called"),
        ("gender", "oh my god", None),
        ("gender", "King George spoke", None),
        ("gender", "Mike said he left", None),
        ("gender", "yesterday he left", "yesterday she left"),
        ("gender", "yesterday keanue said he left", None),
        ("gender", "Yesterday Keanue said he left", None),
        ("gender", "In the tmo he left. Best match.", "In the tmo she left. Best match."),  # a writer of capitals
        ("gender", "The WHO said he left", "The WHO said she left"),
        ("gender", "@user He left #keanue", "@user She left #keanue"),
        ("gender", "Probably not, he left", "Probably not, she left"),
        ("gender", "he left in Guelph", "she left in Guelph"),
        ("gender", "my wife met Keanue", "my husband met Keanue"),  # a name matters for pronouns
        ("gender", "my wife, Keanue, left", None),
        ("gender", "my wife Karen left", None),
        ("gender", "Karen is my wife", None),
        ("gender", "my wife and I left", "my husband and I left"),
        ("gender", "they kept him busy", "they kept her busy"),
        ("gender", "they kept her busy", None),
        ("gender", "I told her that it rains", "I told him that it rains"),
        ("gender", "this man's plan failed", "this woman's plan failed"),
        ("gender", "a man came in", "a woman came in"),
        ("gender", "Tua's brother left", "Tua's sister left"),
        ("gender", "that guy lost his hat", None),
        ("gender", "they set her free", None),
        ("gender", "her hat is red", "his hat is red"),
    ],
)
def test_what_a_pair_says(dimension: str, text: str, expected: str | None) -> None:
    assert exchanged(dimension, text) == expected


def rules(**senses: object) -> SenseRules:
    return SenseRules(Senses.model_validate(senses))


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("_ man|woman", "a white woman", True),
        ("_ man", "a white mansion", False),
        ("_ DESCRIPTION? PERSON", "a white old nurse", True),
        ("_ $", "he is white.", True),
        ("_ $", "a white wall", False),
        ("^ _", "well. white", True),
        ("_CAP CAP", "a White House", True),
        ("_CAP CAP", "a white House", False),
        ("CAP _", "then Walter white", True),
        ("CAP _", "Walter white", False),
        ("nurs* _", "nursing white", True),
        ("_ ,", "white, red", True),
        ("_ NUM", "white 3", True),
        ("is DEGREE? _", "it is really white", True),
        ("_ 's", "a white's dog", True),
        ("_ 's", "a white dog", False),
        ("user _", "@user white", False),  # a user name is not a word
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    sense_rules = rules(uses=[Use(pairs=(("white", "black"),), where=(pattern,))])
    start = text.lower().index("white")
    counterpart = sense_rules.use(text, start, start + 5, "white")
    assert counterpart == ("black" if matches else Not.STAYS)


def test_uses_are_tried_in_order_and_decide_the_counterpart() -> None:
    sense_rules = rules(
        otherwise="leave_out",
        never=["jesuit"],
        uses=[
            Use(pairs=(("christian", "jew"),), where=("a _ $",)),
            Use(pairs=(("christian", "jewish"),), where=("_ man",), not_where=("old _",)),
        ],
    )
    assert sense_rules.use("a christian.", 2, 11, "christian") == "jew"
    assert sense_rules.use("a christian man", 2, 11, "christian") == "jewish"
    assert sense_rules.use("old christian man", 4, 13, "christian") is Not.LEFT_OUT
    assert sense_rules.use("jesuit", 0, 6, "jesuit") is Not.STAYS
    assert sense_rules.use("elsewhere", 0, 4, "else") == ""  # the list decides


def test_companions_leave_a_text_out_but_exchanged_words_do_not() -> None:
    sense_rules = SenseRules(Senses(left_out_with=("church*", "NAME")), exchanged=("church",))
    texts = pa.array(["in the churches", "a nice day", "and then Zorbo left", "Zorbo's here", "Who is it", "at tony's"])
    assert sense_rules.companions(texts, [True] * 6) == ["churches", None, "Zorbo", "Zorbo", None, "tony"]
    assert sense_rules.companions(texts, [False] * 6) == ["churches", None, None, None, None, None]


def test_topics_leave_out_what_others_wrote() -> None:
    sense_rules = rules(left_out_with=["church*"], topics=["parade*"])
    texts = pa.array(["a church", "two parades"])
    assert sense_rules.companions(texts, [False, False]) == ["church", "parades"]
    assert sense_rules.companions(texts, [False, False], topics=False) == ["church", None]


def test_a_use_may_be_for_one_side_only() -> None:
    sense_rules = rules(uses=[Use(pairs=(("him", "her"),), only="b", where=("_ $",))], otherwise="leave_out")
    assert sense_rules.use("met him there", 4, 7, "him") == ""  # the list decides
    assert sense_rules.use("met her.", 4, 7, "her") == "him"
    assert sense_rules.use("met her there", 4, 7, "her") is Not.LEFT_OUT


def test_names_matter_for_the_words_that_may_mean_them() -> None:
    senses = {"left_out_with": ["NAME"], "ordinary_words_with": ["he"]}
    assert rules(**senses).may_be_named(["he"]) and not rules(**senses).may_be_named(["uncle"])
    assert rules(left_out_with=["NAME"]).may_be_named(["uncle"])
    assert not rules().may_be_named(["uncle"])


@pytest.mark.parametrize(
    ("senses", "expected"),
    [
        ({"not_where": ["black hole"]}, "expected the place of the word once, as _"),
        (
            {"uses": [{"pairs": [["a", "b"]], "where": ["_ PERSONS"]}]},
            "unknown class of words 'PERSONS'; did you mean ",
        ),
    ],
)
def test_wrong_rules_are_refused(senses: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Senses.model_validate(senses)


def test_a_dimension_refuses_rules_about_words_it_does_not_list() -> None:
    base = {"label": "x", "groups": {"a": "A", "b": "B"}, "pairs": [["he", "she"]], "attribute_words": {"l": ["w"]}}
    with_rules = {**base, "sources": ["s"], "senses": {"never": ["it"]}}
    with pytest.raises(ValueError, match="'senses.never': 'it' is no word of 'pairs'"):
        Dimension.model_validate(with_rules)
    with pytest.raises(ValueError, match="'interchangeable': 'it' is no word of side a"):
        Dimension.model_validate({**base, "sources": ["s"], "interchangeable": [["it", "he"]]})


def test_outcomes_of_the_rules_are_reported_with_examples() -> None:
    table = pa.table(
        {
            "dialogue_id": ["1", "2", "3"],
            "context": ["the white house", "a white wall and a white man", "white men in a ghetto"],
            "split": ["audit"] * 3,
        }
    )
    result = find_contexts(table, Swapper(load_dimension("race"), senses=True))
    assert result.table.num_rows == 0  # in the second text one word is not clear
    assert (result.figures["left_out_by_rules"], result.figures["left_out_no_word_in_a_use"]) == (2, 1)
    rows = {(row["word"], row["outcome"]): row for row in result.ruled.to_pylist()}
    assert rows["white", "stays"]["contexts"] == 1
    assert rows["ghetto", "left out"]["example"] == "white men in a ghetto"


def test_the_papers_profile_keeps_the_papers_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairness_pipeline.project.project import Project

    monkeypatch.setenv("FAIRNESS_CORPORA", "/not/read")
    part = Project("paper").parts["dialogue_fairness"]
    pairs = part.settings.pairs
    assert (pairs.senses, pairs.one_word, pairs.largest_share, pairs.no_effect, pairs.pronouns) == (
        "list", False, 1, 0, "published",
    )  # fmt: skip
    assert part.settings.significance.diversity == "as_answered"


@pytest.mark.parametrize("word", ["stopped", "running", "bigger", "well-known", "lol", "wives", "he'd"])
def test_ordinary_words(word: str) -> None:
    assert is_word(word)


def test_words_are_evenly_spread() -> None:
    gender = load_dimension("gender")
    names = [a for a, _ in gender.pairs[:40]]
    texts = [f"my {names[0]} called {number}" for number in range(3000)]
    texts += [f"my {name} called {number}" for name in names[1:] for number in range(60)]
    table = pa.table(
        {"dialogue_id": [str(i) for i in range(len(texts))], "context": texts, "split": ["audit"] * len(texts)}
    )
    contexts = find_contexts(table, Swapper(gender)).table
    settings = {"maximum": 10**6, "seed": 1}
    count_of_all = make_pairs(contexts, gender, **settings).table.num_rows
    limited = make_pairs(contexts, gender, **settings, largest_share=0.08)
    counts = limited.figures["contexts_by_word"]
    assert count_of_all == len(texts)
    assert max(counts.values()) <= 0.08 * limited.table.num_rows < 0.08 * count_of_all
    assert min(counts.values()) == 60  # only the frequent word is limited
    few = make_pairs(contexts, gender, maximum=400, seed=1, largest_share=0.08)
    assert few.table.num_rows == 400
    assert max(few.figures["contexts_by_word"].values()) <= 32


def test_pairs_of_several_words_may_be_left_out() -> None:
    gender = load_dimension("gender")
    table = pa.table({"dialogue_id": ["1", "2"], "context": ["he and he", "he and his"], "split": ["audit"] * 2})
    contexts = find_contexts(table, Swapper(gender, pronouns="extended")).table
    pairs = make_pairs(contexts, gender, maximum=9, seed=1, pronouns="extended", one_word=True)
    assert pairs.table["context_b"].to_pylist() == ["she and she"]
    assert pairs.figures["left_out_several_words"] == 1


def test_an_error_names_the_pattern(tmp_path) -> None:
    from fairness_pipeline.foundation.yaml_files import load

    path = tmp_path / "d.yaml"
    path.write_text(
        "label: x\ngroups: {a: A, b: B}\npairs: [[he, she]]\nattribute_words: {l: [w]}\nsources: [s]\n"
        "senses: {not_where: [he ho]}\n"
    )
    with pytest.raises(FairnessError, match="d.yaml, line 6: senses: 'he ho': expected the place of the word once"):
        load(Dimension, path)
