"""A Ray cluster as engine: the same bytes whatever process dies, and clear errors where it cannot work."""

import os
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.engines import ray_cluster, ray_head, ray_rows, settings
from fairness_pipeline.engines.ray_cluster import Visit, check_visit, join, nonce, reason, versions, visit
from fairness_pipeline.engines.ray_rows import RayRows
from fairness_pipeline.engines.settings import ADDRESS, ENGINE, EngineSettings, RaySettings, ray_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import only
from fairness_pipeline.foundation.inputs import DataFile
from fairness_pipeline.workspace.distinct import Chunks, LazyScorer, each_distinct
from fairness_pipeline_tests.commands import command
from fairness_pipeline_tests.engines.scorers import CHUNK, TEXTS, lengths, reading, scored
from fairness_pipeline_tests.local_server import answer, serve

LOCAL = RaySettings(address="local")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster on this machine for the tests of this file. `make test` runs only one of them, as each process that runs
    tests would start its own cluster."""
    import ray

    join(LOCAL)
    yield
    ray.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for chunks."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def on_ray(folder: Path, scorer: LazyScorer, **options: object) -> pa.Table:
    """The scorer's results, scored on the cluster."""
    return each_distinct(TEXTS, scorer, folder=folder, engine=RayRows(LOCAL, folder.parent), **options)


@pytest.mark.verify
def test_several_processes_score_what_one_would_and_each_text_once(cluster: None, folder: Path) -> None:
    progress: list[tuple[int, int | None]] = []
    table = on_ray(folder, lengths(folder), progress=lambda done, total, note: progress.append((done, total)))
    processes, texts = zip(*scored(folder), strict=True)
    assert sorted(texts) == sorted(TEXTS.unique().to_pylist())
    assert str(os.getpid()) not in processes
    assert progress[-1] == (60, 60)
    assert table.equals(each_distinct(TEXTS, lengths(folder), folder=folder))  # the same chunks: nothing is made again
    (folder / "here").mkdir()
    assert table.equals(each_distinct(TEXTS, lengths(folder / "here")))
    assert not list((folder.parent / "locks").glob(".seen-*"))


@pytest.mark.verify
def test_a_refusal_arrives_as_it_is_and_what_was_scored_is_kept(cluster: None, folder: Path) -> None:
    last = TEXTS[59].as_py()
    with pytest.raises(FairnessError, match=f"^the model has no answer to: '{last}'$"):
        on_ray(folder, lengths(folder, refused=last))
    kept = len(list(folder.glob("scored-*.parquet")))
    assert kept

    def check(texts: pa.Array, table: pa.Table) -> None:
        raise FairnessError(f"refused {len(texts)}")

    with pytest.raises(FairnessError, match="^refused 6$"):
        on_ray(folder, lengths(folder), check=check)
    assert len(list(folder.glob("scored-*.parquet"))) >= kept
    on_ray(folder, lengths(folder))


@pytest.mark.verify
def test_a_file_that_is_not_declared_is_refused_there_too(cluster: None, folder: Path) -> None:
    name, another = "wordnet/noun.exc", DataFile.of("lexicon/common_words.txt")
    with (
        pytest.raises(FairnessError, match="^wordnet/noun.exc is read but is not an input of the asset"),
        only([another]),
    ):
        on_ray(folder, reading(name))
    with only([DataFile.of(name)]):
        assert on_ray(folder, reading(name))["bytes"][0].as_py() > 0


@pytest.mark.verify
def test_an_error_that_nobody_expected_says_where_it_arose(cluster: None, folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError: division by zero") as raised:
        on_ray(folder, lengths(folder, refused="1/0"))
    assert "scorers.py" in raised.value.__notes__[0]


@pytest.mark.verify
def test_an_unreadable_chunk_is_not_scored_for_ever(
    cluster: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chunks, "kept", lambda chunks, number: None)
    with pytest.raises(FairnessError, match="cannot be read by this process; let all nodes run as the same user"):
        on_ray(folder, lengths(folder))


@pytest.mark.verify
def test_keys_and_settings_reach_a_process_and_no_file_of_ray(
    cluster: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setenv("OUR_KEY", "top-secret-key")
    monkeypatch.setenv("FAIRNESS_HOME", "relative")
    examination = RayRows(LOCAL, folder.parent).examine(lengths(folder))
    assert examination["key"] == "top-secret-key"
    assert examination["home"] == str(Path.cwd() / "relative")
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    for file in (session / "logs").rglob("*"):
        assert not file.is_file() or b"top-secret-key" not in file.read_bytes(), file


@pytest.mark.verify
def test_a_process_that_dies_costs_its_current_chunk(cluster: None, folder: Path) -> None:
    table = on_ray(folder, lengths(folder, deadly=TEXTS[31].as_py(), times=2))
    assert len(list(folder.glob("death-*"))) == 2
    assert table.equals(each_distinct(TEXTS, lengths(folder), folder=folder))
    twice = [text for text, times in Counter(text for _, text in scored(folder)).items() if times > 1]
    assert len(twice) <= 2 * CHUNK


@pytest.mark.verify
def test_a_chunk_that_kills_three_processes_is_named_and_the_others_are_kept(cluster: None, folder: Path) -> None:
    with pytest.raises(FairnessError, match=r"6 texts ended the process that scored them 3 times .*killing-0000"):
        on_ray(folder, lengths(folder, deadly=TEXTS[31].as_py(), times=9))
    (killing_texts,) = folder.glob("killing-*.txt")
    assert TEXTS[31].as_py() in killing_texts.read_text().splitlines()
    table = on_ray(folder, lengths(folder))  # with a scorer that kills nothing
    assert table.num_rows == len(TEXTS)


@pytest.mark.verify
def test_an_examination_is_made_where_the_model_is(cluster: None, folder: Path) -> None:
    examination = RayRows(LOCAL, folder.parent).examine(lengths(folder))
    assert examination["process"] != os.getpid()


@pytest.mark.verify
def test_a_model_that_no_node_can_hold(cluster: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_rows, "_PATIENCE", 0.0)
    scorer = lengths(folder)
    scorer.processors = 999
    with pytest.raises(FairnessError, match="no node of the Ray cluster has the 999 processors"):
        on_ray(folder, scorer)
    with pytest.raises(FairnessError, match="no node of the Ray cluster has the 999 processors"):
        RayRows(LOCAL, folder.parent).examine(scorer)
    scorer.processors, scorer.device = 1, "cuda"
    with pytest.raises(
        FairnessError, match=r"1 processors and 1 GPU that the model's file asks for \(threads, device\)"
    ):
        on_ray(folder, scorer)


def test_what_is_cheap_stays_in_this_process(folder: Path) -> None:
    def score(texts: pa.Table) -> pa.Table:
        return pa.table({"process": [os.getpid()] * texts.num_rows})

    engine = RayRows(RaySettings(address="nobody:1"), folder.parent)
    table = each_distinct(TEXTS, score, folder=folder, engine=engine)
    assert set(table["process"].to_pylist()) == {os.getpid()}
    one_chunk = each_distinct(TEXTS.slice(0, CHUNK), lengths(folder), folder=folder / "one", engine=engine)
    assert one_chunk.num_rows == CHUNK


def test_a_node_that_does_not_see_the_lake_or_has_other_versions(tmp_path: Path) -> None:
    marker = nonce(tmp_path)
    check_visit(visit(marker))
    marker.unlink()
    with pytest.raises(FairnessError, match=f"does not see the lake {tmp_path}: mount the shared folder there"):
        check_visit(visit(marker))
    other_versions = Visit("node-7", versions() | {"torch": "0.1", "python": "2.7"}, "")
    with pytest.raises(FairnessError, match=r"node-7 has other versions: python 2\.7 \(here .*\), torch 0\.1 \(here"):
        check_visit(other_versions)


def test_an_address_without_a_cluster_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray_cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_head, "_CURRENT", tmp_path / "none")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(FairnessError, match=rf"no Ray cluster answers at 127\.0\.0\.1:{port} .*ray start --head"):
        join(RaySettings(address=f"127.0.0.1:{port}"))
    with pytest.raises(
        FairnessError, match=r"auto: no Ray cluster runs on this machine; start one \(ray start --head\)"
    ):
        join(RaySettings())
    (tmp_path / "none").write_text(f"127.0.0.1:{port}")  # of a cluster that has ended
    with pytest.raises(FairnessError, match="no Ray cluster answers"):
        join(RaySettings())


def test_what_answers_must_be_the_head_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster, "_SECONDS", 0.5)
    refused = pytest.raises(FairnessError, match=r"is no head of a Ray cluster; .*not that of Ray's client \(10001\)")
    with serve(lambda request: answer(request, 200, b"hello")) as address, refused:
        join(RaySettings(address=address.removeprefix("http://")))


def test_the_environment_goes_before_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = EngineSettings(ray=RaySettings(address="head:6379", workers=3))
    assert ray_of(EngineSettings()) is None
    assert ray_of(profile) == profile.ray
    monkeypatch.setenv(ADDRESS, "other:6379")
    assert ray_of(profile) == RaySettings(address="other:6379", workers=3)
    monkeypatch.setenv(ENGINE, "embedded")
    assert ray_of(profile) is None
    monkeypatch.setenv(ENGINE, "ray")
    assert ray_of(EngineSettings()) == RaySettings(address="other:6379")
    monkeypatch.setenv(ADDRESS, "ray://head:10001")
    with pytest.raises(FairnessError, match=r"FAIRNESS_RAY_ADDRESS: .* is an address for Ray Client"):
        ray_of(profile)
    monkeypatch.setenv(ENGINE, "spark")
    with pytest.raises(FairnessError, match="FAIRNESS_ENGINE: expected embedded or ray, found 'spark'"):
        ray_of(profile)
    monkeypatch.setenv(ENGINE, "ray")
    monkeypatch.setattr("fairness_pipeline.engines.settings.find_spec", lambda name: None)
    with pytest.raises(FairnessError, match=r"pip install 'fairness-pipeline\[ray\]'"):
        ray_of(profile)


@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:port", "http://head:6379", "head:99999"])
def test_malformed_addresses_are_refused(address: str) -> None:
    refused = command("run", "--engine", "ray", "--address", address)
    assert refused.returncode == 2
    assert address in refused.stderr


def test_a_reason_is_one_line() -> None:
    raised = "creation task\n\x1b[36mray::A()\x1b[39m\nTraceback (most recent call last):\nModuleNotFoundError: no x\n"
    assert reason(RuntimeError(raised)) == "ModuleNotFoundError: no x"
    assert reason(RuntimeError("The actor died unexpectedly.\n\tclass_name: A\n")) == "The actor died unexpectedly"
    assert reason(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize(
    ("address", "asks", "mode"),
    [("head:6379", True, "token"), ("head:6379", False, None), ("head:6379", None, "token"), ("local", False, "token")],
)
def test_a_token_is_shown_to_a_cluster_that_asks_for_one(
    address: str, asks: bool | None, mode: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that shows a token expects one from its callers, which a cluster without tokens never shows."""
    monkeypatch.setattr(settings, "asks_for_a_token", lambda head, seconds: asks)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "")  # so that it is restored afterwards
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    engine = EngineSettings(ray=RaySettings(address=address))
    ray_of(engine)
    assert os.environ.get("RAY_AUTH_MODE") is None  # no token exists
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    ray_of(engine)
    assert os.environ.get("RAY_AUTH_MODE") == mode
