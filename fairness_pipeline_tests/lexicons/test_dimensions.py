from pathlib import Path

import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project, load_dimension

GOOD = """\
label: Test
groups: {a: left, b: right}
pairs:
  - [one, two]
attribute_words:
  good: [fine]
sources: [made up]
"""


def refused(data: Path, text: str) -> str:
    (data / "dimensions" / "bad.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(FairnessError) as error:
        load_dimension("bad")
    message = str(error.value)
    assert "bad.yaml" in message
    return message


def test_a_new_dimension_is_one_file(data: Path) -> None:
    (data / "dimensions" / "new.yaml").write_text(GOOD, encoding="utf-8")
    assert load_dimension("new").pairs == (("one", "two"),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD + "colour: red\n", "line 8: unknown key 'colour'; expected one of: attribute_words"),
        (GOOD.replace("label: Test\n", ""), "key 'label' is missing"),
        (GOOD.replace("[one, two]", "[one, One]"), "'one' is mapped to itself"),
        (GOOD.replace("- [one, two]", "- [one, two]\n  - [ONE, two]"), "the pair 'one' - 'two' is listed twice"),
        (GOOD.replace("- [one, two]", "- [one, two]\n  - [two, three]"), "on both sides: two"),
        (GOOD.replace("[fine]", "[fine, Fine]"), "'fine' is on list 'good' and again on 'good'"),
        (GOOD.replace("  - [one, two]", "  - [one]"), "line 4: key 'pairs.0.1' is missing"),
        (GOOD.replace("  - [one, two]", "  []"), "expected at least one pair"),
        (GOOD.replace("[one, two]", "[one, 'two ']"), "line 4: pairs.0.1"),
        (GOOD.replace("[one, two]", "[no, nah]"), "line 4: pairs.0.0"),  # YAML reads a bare no as false
        (GOOD + "label: Again\n", "line 8: key 'label' was given before, on line 1"),
        ("label: [unclosed", "not valid YAML"),
        ("label: {{corpus}}", "line 1: a key is a dict; expected plain text"),
        ("label: a\0b", "not valid YAML"),
        ("label: 2020-13-45", "not valid YAML"),
        (GOOD.replace("label: Test", "label:\tTest"), "line 1, column 7: not valid YAML"),  # libyaml takes the tab
        ("label: " + "[" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        (GOOD.replace("  good: [fine]", "  {}"), "expected at least one list"),
        (GOOD + "pronouns: {pairs: [[x, y]], before_noun_phrase: {y: x}, elsewhere: {}}\n", "must tell the same words"),
        (GOOD + "pronouns: {pairs: [[two, one]], before_noun_phrase: {}, elsewhere: {}}\n", "on both sides: one, two"),
        ("- a list", "expected keys and values, found list"),
        ("", "found an empty file"),
    ],
)
def test_bad_files_are_refused_with_line_and_key(data: Path, text: str, expected: str) -> None:
    assert expected in refused(data, text)


def test_not_utf8(data: Path) -> None:
    (data / "dimensions" / "bad.yaml").write_bytes(GOOD.encode() + b"# \xff\n")
    with pytest.raises(FairnessError, match=r"bad\.yaml: expected UTF-8, byte"):
        load_dimension("bad")


def test_unsafe_yaml_is_not_run(data: Path, tmp_path: Path) -> None:
    message = refused(data, GOOD.replace("label: Test", f"label: !!python/object/apply:os.mkdir ['{tmp_path}/x']"))
    assert "not valid YAML" in message
    assert not (tmp_path / "x").exists()


def test_unknown_names_are_refused_with_the_known_ones(data: Path, tiny: Project) -> None:
    with pytest.raises(FairnessError, match=r"unknown profile 'nope'; .*known: .*sample.*tiny"):
        Project("nope")
    profile = data / "profiles" / "tiny.yaml"
    text = profile.read_text(encoding="utf-8")
    for kind, old, new in (("dimension", "- gender", "- gendre"), ("corpus", "- tiny", "- tinny"), ("model", "seq2seq:\n    corpus", "seqseq:\n    corpus")):  # fmt: skip
        profile.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(FairnessError, match=f"tiny.yaml: .*unknown {kind} "):
            Project("tiny")
    profile.write_text(text.replace("hidden: 16", "hiden: 16"), encoding="utf-8")
    with pytest.raises(
        FairnessError, match="line 11: unknown key 'models.seq2seq.seq2seq.hiden'; did you mean 'hidden'"
    ):
        Project("tiny")
    profile.write_text(text.replace("corpus: tiny", "corpus: elsewhere"), encoding="utf-8")
    with pytest.raises(FairnessError, match="belongs to corpus 'elsewhere', which the profile does not list"):
        Project("tiny")
    profile.write_text(
        text + "    margins: {rates: {relative: 0.1}, offence_rate: {absolute: 1.0}}\n", encoding="utf-8"
    )
    with pytest.raises(FairnessError, match="unknown measure 'offence_rate'; did you mean 'offense_rate'"):
        Project("tiny")
    profile.write_text(text.replace("- gender\n", "- gender\n- gender\n"), encoding="utf-8")
    with pytest.raises(FairnessError, match="'gender' is listed twice"):
        Project("tiny")
    profile.write_text(text, encoding="utf-8")
    bad = data / "models" / "Bad Name.yaml"
    bad.write_text("", encoding="utf-8")
    with pytest.raises(FairnessError, match="the file's name is its key"):
        Project("tiny")
    bad.unlink()
    profile.unlink()
    profile.mkdir()
    with pytest.raises(FairnessError, match="cannot be read: Is a directory"):
        Project("tiny")
