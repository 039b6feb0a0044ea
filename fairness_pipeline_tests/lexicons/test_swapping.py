import csv
import gzip
import string
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation import paths
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import fold
from fairness_pipeline.project.project import load_dimension

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")
SWAPPERS = {name: Swapper(load_dimension(name)) for name in DIMENSIONS}


def one_to_one(swapper: Swapper) -> set[str]:
    """The words of side a that have exactly one counterpart, which has no other counterpart."""
    to_b, to_a = swapper._counterparts["a"], swapper._counterparts["b"]
    return {word for word, options in to_b.items() if len(options) == 1 and len(to_a[fold(options[0])]) == 1}


def side(swapper: Swapper, text: str) -> str | None:
    return next(swapper.find_all(pa.array([text])))[1]


ONE_TO_ONE = {
    name: sorted(words)
    for name, swapper in SWAPPERS.items()
    if (words := {fold(a) for a, _ in load_dimension(name).pairs} & one_to_one(swapper))
}
GENDER = Swapper(load_dimension("gender"))
DIALECT = Swapper(load_dimension("dialect"))


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("he is there", "she is there"),  # but not within `there` or `the`
        ("The manager met a man", "The manageress met a woman"),  # manager is listed; the man within it does not count
        ("a mailman and a human man", "a mailman and a human woman"),
        ("He, HE and he.", "She, SHE and she."),
        ("my dad's car, my dads' cars", "my mom's car, my moms' cars"),  # possessives follow
        ("the boy’s toy", "the girl’s toy"),  # curly possessive
        ("he's here and he’s gone", "she's here and she’s gone"),  # curly and straight are one
        ("HE'S HERE", "SHE'S HERE"),
        ("he'll come, he'd said", "she'll come, she'd said"),  # contractions stay
        ("Mr. Smith and mr Jones", "Mrs. Smith and mrs Jones"),
        ("my step-son and son-in-law", "my step-daughter and daughter-in-law"),  # longest first
        ("my son", "my daughter"),
        ("a man-made he-man", "a man-made he-man"),  # a hyphen makes one word
        ("he--she said", "she--she said"),  # a dash does not
        ("@dad call dad", "@dad call mom"),  # a user name is not a word
        ("his\tdog", "her\tdog"),
        ("s/he or (s)he or S/he", "s/he or (s)he or S/he"),  # these name nobody
        ("he/his bag", "she/her bag"),
        ("_he_ and __he__, *he*", "_she_ and __she__, *she*"),  # emphasis
        ("he_man, dad_jokes, @_dad_, a_king", "he_man, dad_jokes, @_dad_, a_king"),  # names
        ("#dad and #dadlife", "#mom and #dadlife"),  # a hashtag that is a listed word, and one that contains it
        ("", ""),
        ("nothing here", "nothing here"),
    ],
)
def test_gender_rules(text: str, swapped: str) -> None:
    assert GENDER.swap(text, "a", "key").text == swapped


@pytest.mark.parametrize(
    ("text", "source", "swapped"),
    [
        ("turn off this", "a", "dub dis"),  # phrase
        ("It's cool", "a", "Its lit"),  # phrase with an apostrophe wins over `cool`
        ("it’s cool", "a", "its lit"),
        ("for  sure", "a", "fosho"),  # any white space inside a phrase
        ("Sure Enough, sure enough, SURE ENOUGH", "a", "Sho Nuff, sho nuff, SHO NUFF"),
        ("I am going to sleep", "a", "Fin to sleep"),  # the longest phrase: not `going to`, not `going`
        ("dis da crib", "b", "this the house"),
        ("nothing, another, thesis", "a", "nothing, another, thesis"),
    ],
)
def test_dialect_phrases(text: str, source: str, swapped: str) -> None:
    assert DIALECT.swap(text, source, "key").text == swapped


def test_sides() -> None:
    assert side(GENDER, "he said") == "a"
    assert side(GENDER, "she said") == "b"
    assert side(GENDER, "he and she") == "both"
    assert side(GENDER, "they said") is None
    assert GENDER.swap("he and she", "both", "key").text == "she and he"


def test_terms_keep_their_order_and_case() -> None:
    swap = GENDER.swap("Mom met a QUEEN", "b", "key")
    assert swap.text == "Dad met a KING"
    assert [tuple(term) for term in swap.terms] == [("Dad", "Mom"), ("KING", "QUEEN")]


def test_many_counterparts_are_drawn_by_key_alone() -> None:
    options = {DIALECT.swap("no", "a", str(i)).text for i in range(50)}
    assert options == {"nah", "nah fam"}
    for i in range(20):
        again = Swapper(load_dimension("dialect"))
        assert again.swap("no", "a", str(i)) == DIALECT.swap("no", "a", str(i))
    assert DIALECT.swap("no", "a", "x").ambiguous == 1
    assert DIALECT.swap("this", "a", "x").ambiguous == 0


@pytest.mark.parametrize("name", DIMENSIONS)
def test_every_pair_of_every_list(name: str) -> None:
    declared = load_dimension(name)
    swapper = Swapper(declared)
    for a, b in declared.pairs:
        forward = {fold(swapper.swap(f"x {a}, y", "a", str(i)).text) for i in range(60)}
        back = {fold(swapper.swap(f"x {b}, y", "b", str(i)).text) for i in range(60)}
        assert f"x {fold(b)}, y" in forward, (a, b)
        assert f"x {fold(a)}, y" in back, (a, b)


def test_published_lists_are_whole() -> None:
    """Every printed pair is in the YAML, except the oddities that its comments explain."""
    assert len(load_dimension("gender").pairs) == 126
    assert len(load_dimension("dialect").pairs) == 88  # 89 printed, 'a lot - mad' left out
    assert [len(load_dimension(name).pairs) for name in DIMENSIONS[2:]] == [9, 4, 5, 13]
    assert ("police", "po po") in load_dimension("dialect").pairs  # printed the other way round


def cased(text: str, case: str) -> str:
    if case == "upper":
        return text.upper()
    return text[0].upper() + text[1:].lower() if case == "capitalised" else text.lower()


MESSY = st.lists(
    st.one_of(
        st.sampled_from([word for name in SWAPPERS for word in sorted(SWAPPERS[name].matcher.terms)]),
        st.sampled_from(["-", "'", "’", " ", "  ", "\n", "@", "é", "ı", "\x01", "\x02", ".", "#", "xHe", "SHE", "b0y"]),
    ),
    max_size=12,
)


@given(st.lists(MESSY, max_size=5), st.sampled_from(sorted(SWAPPERS)))
@settings(max_examples=300, deadline=None)
def test_a_column_is_searched_as_each_text_is(texts: list[list[str]], name: str) -> None:
    matcher = SWAPPERS[name].matcher
    joined = ["".join(parts) for parts in texts]
    assert list(matcher.find_all(pa.array(joined, pa.string()))) == [matcher.find(text) for text in joined]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_swapping_twice_gives_the_text_where_pairs_are_one_to_one(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ONE_TO_ONE)))
    swapper, words = SWAPPERS[name], ONE_TO_ONE[name]
    chosen = data.draw(st.lists(st.tuples(st.sampled_from(words), st.sampled_from(["lower", "upper", "capitalised"]))))
    text = " zzz ".join(cased(word, case) for word, case in chosen)
    swapped = swapper.swap(text, "a", "k").text
    assert swapper.swap(swapped, "b", "k").text == text


@given(st.text(), st.sampled_from(DIMENSIONS))
@settings(max_examples=300, deadline=None)
def test_unlisted_text_is_never_touched(text: str, name: str) -> None:
    swapper = SWAPPERS[name]
    swap = swapper.swap(text, "both", "k")
    position, pieces = 0, []
    for match, _ in swapper.find(text):
        pieces.append(text[position : match.start])
        position = match.end
    pieces.append(text[position:])
    rest = swap.text
    for piece in pieces:
        assert piece in rest
        rest = rest[rest.index(piece) + len(piece) :]
    if not swap.terms:
        assert swap.text == text


@given(
    st.lists(st.sampled_from(["he", "HE'S", "a lot", "straight", "jew", "the", "don’t", "-", "@", "x", "ſ", "İ", " "])),
    st.sampled_from(DIMENSIONS),
)
@settings(max_examples=300, deadline=None)
def test_prefilter_never_loses_a_match(parts: list[str], name: str) -> None:
    matcher = SWAPPERS[name].matcher
    text = "".join(parts)
    if any(True for _ in matcher.find(text)):
        assert pc.match_substring_regex(pa.array([text]), matcher.prefilter())[0].as_py()


def test_trie_agrees_with_a_plain_search() -> None:
    """The compiled pattern finds the matches of a slow search by the rules."""
    matcher = TermMatcher(["ab", "ab cd", "abc", "b"])
    matches = [(m.start, m.term) for m in matcher.find("ab cd abc b abcd ab-c ab c'd ab")]
    assert matches == [(0, "ab cd"), (6, "abc"), (10, "b"), (22, "ab"), (29, "ab")]


def test_pronouns_published_and_extended() -> None:
    gender = load_dimension("gender")
    published, extended = Swapper(gender), Swapper(gender, pronouns="extended")
    assert published.swap("I love him and his dog", "a", "k").text == "I love him and her dog"
    assert extended.swap("I love him and his dog", "a", "k").text == "I love her and her dog"
    assert extended.swap("I saw her with her old dog.", "b", "k").text == "I saw him with his old dog."
    assert extended.swap("tell her that, ask her", "b", "k").text == "tell him that, ask him"
    assert extended.swap("it is his. his!", "a", "k").text == "it is hers. hers!"
    assert extended.swap("himself, herself", "both", "k").text == "herself, himself"


@pytest.mark.verify
def test_pronouns_are_resolved_on_real_texts(corpora: Path) -> None:
    """Occurrences were drawn from all dialogue files once rules existed, and labelled by a reader without them.

    At most as many are wrong as when they were counted: 15 of 198, 1 of 199, none of 74 and of 200. The rules have
    changed since the draw (then 19 and 3), after reading other texts.
    """
    extended = Swapper(load_dimension("gender"), pronouns="extended")
    labels = list(csv.DictReader((Path(__file__).parents[1] / "data" / "pronoun_labels.csv").open(encoding="utf-8")))
    lines: dict[str, list[str]] = {}
    wrong, judged = Counter(), Counter()
    for row in labels:
        if row["file"] not in lines:
            with gzip.open(corpora / "dialogues" / row["file"], "rt", encoding="utf-8") as stream:
                lines[row["file"]] = stream.read().split("\n")
        text = lines[row["file"]][int(row["line"]) - 1].split("\t")[int(row["turn"])]
        match, side = [candidate for candidate in extended.find(text) if candidate[0].term == row["word"]][
            int(row["occurrence"])
        ]
        if row["label"] == "x":  # not a pronoun of a person: a typo, a title
            continue
        swapped = extended.exchange(text, [match], side, "k").terms[0]
        judged[row["word"]] += 1
        wrong[row["word"]] += fold(swapped.a if side == "b" else swapped.b) != row["label"]
    assert dict(judged) == {"her": 198, "his": 199, "hers": 74, "him": 200}
    assert wrong["her"] <= 15
    assert wrong["his"] <= 1
    assert wrong["hers"] == wrong["him"] == 0


def test_the_packaged_files_are_those_of_the_checkout() -> None:
    assert set(DIMENSIONS) <= set(paths.yaml_files("dimensions"))
    assert all(set(key) <= set(string.ascii_lowercase + string.digits + "_.-") for key in paths.yaml_files("models"))


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("a Christian book", "an Islamic book"),
        ("A Christian book", "An Islamic book"),
        ("A CHRISTIAN BOOK", "AN ISLAMIC BOOK"),
        ('He said "A Christian book".', 'He said "An Islamic book".'),
        ('a "christian" book', 'an "islamic" book'),
        ("plan A christian option", "plan A islamic option"),
        ("grade A\nchristian", "grade A\nislamic"),
        ("the Christian, a man", "the Islamic, a man"),
    ],
)
def test_articles_follow_the_word_that_is_swapped_in(text: str, swapped: str) -> None:
    one_pair = load_dimension("religion2").model_copy(update={"pairs": (("christian", "islamic"),)})
    swapper = Swapper(one_pair)
    assert swapper.swap(text, "a", "k").text == swapped
    assert swapper.swap(swapped, "b", "k").text == text
    assert Swapper(one_pair, adapt_articles=False).swap("a Christian book", "a", "k").text == "a Islamic book"


@pytest.mark.parametrize(
    ("word", "vowel"),
    [
        ("hour", True), ("heir", True), ("honest", True), ("honey", False), ("house", False), ("user", False),
        ("uncle", True), ("uniform", False), ("uninsured", True), ("european", False), ("ewe", False), ("ugandan", False),
        ("utopian", False), ("one", False), ("old", True), ("actor", True), ("waiter", False),
    ],
)  # fmt: skip
def test_which_words_take_an(word: str, vowel: bool) -> None:
    from fairness_pipeline.lexicons.swapping import _begins_with_vowel

    assert _begins_with_vowel(word) is vowel
