"""The installed package: the wheel with its data, and the public functions."""

import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path
from random import Random

import pandas as pd
import pytest
from packaging.requirements import Requirement

import fairness_pipeline as fp
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline_tests.commands import command

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_every_data_folder_and_every_template(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    tracked = subprocess.run(["git", "ls-files", "data", "fairness_pipeline"], cwd=ROOT, capture_output=True, text=True)
    files = tracked.stdout.split()
    assert len(files) > 150
    for name in files:
        assert (f"fairness_pipeline/{name}" if name.startswith("data/") else name) in held, name
    assert "fairness_pipeline/py.typed" in held
    assert not [name for name in held if "lake" in Path(name).parts]


@pytest.mark.verify
def test_the_wheel_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """Its libraries are those of this environment; the package and its data come from the wheel alone."""
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    folder, home = tmp_path / "own", tmp_path / "home"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    environment = {"PATH": str(folder / "bin"), "HOME": str(home), "FAIRNESS_HOME": str(home)}

    def output_of(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert output_of("fairness-pipeline", "--version") == f"fairness-pipeline {fp.__version__}\n"
    assert output_of("python", "-c", "import fairness_pipeline as fp; print(fp.__file__)").startswith(str(packages))
    output_of("fairness-pipeline", "export", "sentences", "--output", "sentences.csv")
    rows = (tmp_path / "sentences.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 17_281
    swapped = output_of("python", "-c", "import fairness_pipeline as fp; print(fp.swap('My dad is a policeman.'))")
    assert swapped == "My mom is a policewoman.\n"


def test_the_version_is_the_same_everywhere() -> None:
    assert command("--version").stdout == f"fairness-pipeline {fp.__version__}\n"
    for name in ("pyproject.toml", "CITATION.cff"):
        assert fp.__version__ in (ROOT / name).read_text(encoding="utf-8")


def test_the_public_functions_name_wrong_arguments() -> None:
    with pytest.raises(FairnessError, match="unknown dimension 'age'"):
        fp.swap("he", "age")
    with pytest.raises(FairnessError, match="expected as many responses on both sides, one at least; found 1 and 2"):
        fp.compare(["a"], ["a", "b"])
    for call in (fp.score, fp.pairs, lambda texts: fp.compare(texts, texts)):
        with pytest.raises(FairnessError, match="expected several texts .*, found one: 'abc'"):
            call("abc")
        with pytest.raises(FairnessError, match="expected texts, found None at index 1; drop or fill this row"):
            call(["a", None])
    with pytest.raises(FairnessError, match="text: expected texts, found None"):
        fp.swap(None)
    columns = pd.Series(["he", "b"]), pd.Series(["she", "c"])
    assert len(fp.compare(*columns)) == len(fp.compare(*map(list, columns)))
    assert fp.FairnessError is FairnessError
    frame = pd.DataFrame({"him": ["a", "b"], "her": ["c", "d"]})
    for wrong in (frame, {"him": ["a"]}):  # names of columns are no texts
        with pytest.raises(FairnessError, match="a: expected a list or one column of texts, found a (DataFrame|dict)"):
            fp.compare(wrong, wrong)
    for options, message in (
        ({"groups": ["x"]}, "groups: expected one value a pair, 2; found 1"),
        ({"groups": ["x", None]}, "groups: expected a value for each pair, found None at index 1"),
        ({"groups": frame}, "groups: expected a list or a column, found a DataFrame"),
        ({"margins": {"rats": {"absolute": 1}}}, "margins: unknown measure 'rats'; did you mean 'rates'"),
        ({"margins": {"rates": {"absolute": -1}}}, "margins.rates.absolute: Input should be greater than 0"),
        ({"alpha": 2}, "alpha: Input should be less than 1"),
    ):
        with pytest.raises(FairnessError, match=message):
            fp.compare(["a", "b"], ["c", "d"], **options)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        fp.nonsense  # noqa: B018
    assert fp.swap("nothing listed") == "nothing listed"
    assert fp.swap("he told his mother", "gender") == "she told her father"
    assert fp.pairs([], "gender").empty
    assert fp.score([]).empty


def test_comparing_is_what_the_pipeline_does() -> None:
    """No difference where there is none, whatever the group; and the sign is a minus b."""
    same = fp.compare(["nice", "you idiot"] * 50, ["nice", "you idiot"] * 50).set_index("measure")
    assert (same["difference"] == 0).all()
    turned = fp.compare(["you idiot"] * 60, ["nice"] * 60).set_index("measure")
    assert turned.loc["offense_rate", "difference"] == 100


def test_comparing_takes_groups_margins_and_a_level() -> None:
    him, her = ["nice"] * 300, ["shut up, idiot"] * 60 + ["nice"] * 240
    word = [f"w{i % 12}" for i in range(300)]
    alone, grouped = (fp.compare(him, her, groups=g).set_index("measure").loc["offense_rate"] for g in (None, word))
    assert alone["verdict"] == grouped["verdict"] == "biased" and grouped["clusters"] == 12
    assert pd.isna(alone["clusters"]) and grouped["p_clusters"] > 0
    one_word = fp.compare(him, her, groups=["w"] * 300).set_index("measure").loc["offense_rate"]
    assert one_word["verdict"] == "inconclusive"
    wide = fp.compare(him, her, margins={"rates": {"absolute": 50}}).set_index("measure").loc["offense_rate"]
    assert (wide["verdict"], wide["margin"]) == ("fair on average", 50)
    strict = fp.compare(him[:40], [*her[:8], *her[60:92]], alpha=1e-4).set_index("measure").loc["offense_rate"]
    assert strict["verdict"] == "inconclusive"


def test_comparing_tells_opposite_gaps_that_cancel() -> None:
    """Insults to him in half of the sentences, to her in the others, in the same words' pairs."""
    word = [f"w{i % 12}" for i in range(600)]
    sentence = [f"s{i // 12}" for i in range(600)]
    chosen = [Random(f"{i // 24} {i % 12}").random() < 0.4 for i in range(600)]  # alike in two sentences
    side = [[(i // 12 + parity) % 2 == 0 and chosen[i] for i in range(600)] for parity in (0, 1)]
    him, her = (["shut up, idiot" if insulted else "nice" for insulted in flags] for flags in side)
    alone = fp.compare(him, her, groups=word).set_index("measure").loc["offense_rate"]
    assert alone["verdict"] != "biased" and alone["difference"] == 0
    with_units = fp.compare(him, her, groups=word, units=sentence).set_index("measure").loc["offense_rate"]
    assert with_units["verdict"] == "biased"
    assert with_units["note"].startswith("opposite gaps, 25 to side a and 25 to side b of 50")
    nice, margins = ["nice"] * 600, {"counts": {"absolute": 1}}
    nothing = fp.compare(nice, nice, groups=word, units=sentence, margins=margins).set_index("measure")
    assert nothing.loc["length", "verdict"] == "fair"
    with pytest.raises(FairnessError, match="units: expected groups beside them"):
        fp.compare(him, her, units=sentence)


def test_both_extras_fit_one_environment_with_the_pins() -> None:
    """The tests' environment is made with `dev`, which has both."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for requirement in map(Requirement, [*extras["ray"], *extras["postgres"]]):
        assert requirement.specifier.contains(version(requirement.name)), requirement
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    for name in ("ray", "dagster-postgres", "sqlalchemy", "psycopg2-binary"):
        assert {package.lower(): pin for package, pin in pins.items()}[name] == version(name)


@pytest.mark.verify
def test_no_library_of_the_environment_lacks_another() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
