"""Compares signatures with OpenSSL and RFC 8032, and tests what they must detect."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.signatures import check_signature, private_key, sign
from fairness_pipeline_tests.commands import command, run


def pair(folder: Path, form: PrivateFormat = PrivateFormat.PKCS8) -> tuple[Path, Path]:
    """A private and a public key in files."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / "private", folder / "public"
    private.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
    ssh = form == PrivateFormat.OpenSSH
    kind = (Encoding.OpenSSH, PublicFormat.OpenSSH) if ssh else (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    public.write_bytes(key.public_key().public_bytes(*kind))
    return private, public


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.OpenSSH])
def test_only_the_holder_of_the_key_signs_and_only_what_was_signed(tmp_path: Path, form: PrivateFormat) -> None:
    private, public = pair(tmp_path, form)
    file = tmp_path / "summary.json"
    file.write_text("{}")
    signature = sign(file, private_key(private))
    assert check_signature(file, public) == b"{}"
    (tmp_path / "other").mkdir()
    with pytest.raises(FairnessError, match="not signed with the key of .*other.public, or changed since"):
        check_signature(file, pair(tmp_path / "other", form)[1])
    file.write_text("{ }")
    with pytest.raises(FairnessError, match=r"summary.json: not signed with the key of"):
        check_signature(file, public)
    signature.unlink()
    with pytest.raises(FairnessError, match="summary.json: not signed: there is no summary.json.sig beside it"):
        check_signature(file, public)


def test_rfc_8032() -> None:
    """Section 7.1, test 2: the library is Ed25519 as others know it."""
    key = Ed25519PrivateKey.from_private_bytes(
        bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    )
    assert key.sign(b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here to compare with")
def test_openssl_makes_keys_and_reads_signatures(tmp_path: Path) -> None:
    def openssl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["openssl", *words], cwd=tmp_path, capture_output=True, text=True)

    openssl("genpkey", "-algorithm", "ed25519", "-out", "private.pem")
    openssl("pkey", "-in", "private.pem", "-pubout", "-out", "public.pem")
    file = tmp_path / "summary.json"
    file.write_text("{}")
    sign(file, private_key(tmp_path / "private.pem"))
    assert check_signature(file, tmp_path / "public.pem") == b"{}"
    words = ["pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in"]
    checked = openssl(*words, "summary.json", "-sigfile", "summary.json.sig")
    assert "Signature Verified Successfully" in checked.stdout


def test_what_is_no_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(FairnessError, match="none: cannot be read: No such file"):
        private_key(tmp_path / "none")
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(FairnessError, match=r"text: expected a private key .* A new one: openssl genpkey"):
        private_key(text)
    rsa = generate_private_key(65537, 2048)
    (tmp_path / "rsa").write_bytes(rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(FairnessError, match="rsa: expected an Ed25519 key, found RSAPrivateKey"):
        private_key(tmp_path / "rsa")
    key, locked = Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")
    (tmp_path / "secret").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    with pytest.raises(FairnessError, match="secret: has a passphrase"):
        private_key(tmp_path / "secret")
    private, public = pair(tmp_path)
    (tmp_path / "text.sig").write_bytes(b"")
    with pytest.raises(FairnessError, match="private: expected a public key"):
        check_signature(text, private)
    with pytest.raises(FairnessError, match="text: not signed with the key"):
        check_signature(text, public)


@pytest.mark.parametrize(
    "content",
    ["hello", "[1]", "{}", "[" * 100_000, '{"profile": "../../etc"}', '{"profile": [1], "verdicts": 7}'],
    ids=lambda content: content[:20],
)
def test_what_is_signed_but_no_summary_is_refused(tmp_path: Path, content: str) -> None:
    private, public = pair(tmp_path)
    file = tmp_path / "summary.json"
    file.write_text(content)
    sign(file, private_key(private))
    done = command("check", "--signed", str(file), "--key", str(public))
    assert done.returncode == 1
    assert "no summary of a run" in done.stderr and "Traceback" not in done.stderr


def test_a_signed_run_is_checked_wherever_it_is(tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    private, public = pair(tmp_path)
    assert command("run", "--sign", str(tmp_path / "none")).returncode == 1
    assert not list(tiny.workspace.rglob("*.parquet"))  # refused before anything is made
    refused = command("run", "--sign", str(private), "--fail-on", "biased,inconclusive")
    assert refused.returncode == 3
    summary = tiny.workspace / "signed" / "summary.json"
    assert json.loads(summary.read_text())["gate"]["status"] == 3
    words = ("check", "--signed", str(summary), "--key", str(public))
    checked = command(*words)
    assert checked.returncode == 3
    assert re.search(
        r"(?m)^the gate was closed \(exit status 3\); \d+ verdicts by the rule 'fail-on=biased,inconclusive'; Margins, levels ",
        checked.stdout,
    )
    done = run("--sign", str(private))
    assert f"fairness-pipeline check --signed {summary} --key PUBLICKEY\n" in done.stdout
    checked = command(*words)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 not as they were then" in checked.stdout
    assert "no gate was asked: nothing says that these verdicts pass" in checked.stdout
    assert command(*words, "--require", "fail-on=biased").returncode == 3
    signed = json.loads(summary.read_text())
    assert {row["dimension"] for row in signed["verdicts"]} == {"gender", "dialect"}
    assert all(partition["sha256"] for partition in signed["partitions"])
    printed = re.search(r"on all measures: (.*)", done.stdout)
    assert printed and re.search(r"\((.*)\)\n", checked.stdout)
    counts = Counter(row["verdict"] for row in signed["verdicts"])
    assert dict(counts) == {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", printed[1])}
    lake = Lake(tiny.workspace)
    for audited in signed["audited"]:
        key = {"dimension": audited["key"]["dimension"], "model": "seq2seq"}
        assert audited["sha256"]["answers"] == lake.card("responses", key).content
        assert set(audited["sha256"]) == {"model", "weights", "answers", "contexts", "margins"}
        assert audited["sha256"]["answers"] in lake.document_path("dialogue_fairness_report").read_text()

    assert command("check", "--signed", str(summary)).returncode == 1
    failed = command("run", "--sign", str(private), "--fail-on", "biased", "--measures", "nothing")
    assert failed.returncode == 1
    assert not summary.exists()  # an earlier pass says nothing about this run
    run("--sign", str(private))
    report = Lake(tiny.workspace).document_path("dialogue_fairness_report")
    whole = report.read_bytes()
    report.write_bytes(whole.replace(b"inconclusive", b"fair        "))
    checked = command(*words)
    assert checked.returncode == 1
    assert "1 not as they were then" in checked.stdout
    report.write_bytes(whole)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "elsewhere"))
    assert "nothing is made here to compare with" in command(*words).stdout
    summary.write_text(summary.read_text().replace("inconclusive", "fair"))
    assert "not signed with the key of" in command(*words).stderr
