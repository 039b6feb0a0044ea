"""Signs a file with a private key (Ed25519), so that anybody with the public key can verify it.

The library is the extra `sign`. A signature is the 64 bytes of RFC 8032 in a file of its own; other tools read it too:
`openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in summary.json -sigfile summary.json.sig`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_HOW = "openssl genpkey -algorithm ed25519 -out private.pem; openssl pkey -in private.pem -pubout -out public.pem"


def private_key(path: Path) -> "Ed25519PrivateKey":
    """A private key from a PEM or an OpenSSH file without a passphrase.

    Raises:
        FairnessError: there is no such file, it holds no such key, or the extra `sign` is not installed.
    """
    library = _library()
    content = _read(path)
    try:
        is_openssh = content.startswith(b"-----BEGIN OPENSSH")
        key = (library.load_ssh_private_key if is_openssh else library.load_pem_private_key)(content, password=None)
    except TypeError:
        raise FairnessError(f"{path}: has a passphrase; sign with a key that has none") from None
    except Exception as error:  # the library's own errors, and those of its dependencies
        raise FairnessError(f"{path}: expected a private key (Ed25519): {error}. A new one: {_HOW}") from None
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not isinstance(key, Ed25519PrivateKey):
        raise FairnessError(f"{path}: expected an Ed25519 key, found {type(key).__name__}. A new one: {_HOW}")
    return key


def sign(file: Path, key: "Ed25519PrivateKey") -> Path:
    """Writes a file's signature beside it, and returns its path."""
    signature = signature_of(file)
    with replacing(signature) as temporary:
        temporary.write_bytes(key.sign(file.read_bytes()))
    return signature


def summary_of(workspace: Path) -> Path:
    """The path of the summary of the last signed run."""
    return workspace / "signed" / "summary.json"


def signature_of(file: Path) -> Path:
    """The path of a file's signature."""
    return file.with_name(f"{file.name}.sig")


def check_signature(file: Path, public: Path) -> bytes:
    """Returns the content of a file if its signature was made with the private key that belongs to `public`.

    Args:
        file: The file; its signature is beside it.
        public: The public key, PEM or as OpenSSH writes it (`ssh-ed25519 ...`).

    Raises:
        FairnessError: a file is missing, `public` is no such key, or somebody else signed, or changed, the file.
    """
    library = _library()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if file.exists() and not signature_of(file).exists():
        raise FairnessError(
            f"{file}: not signed: there is no {signature_of(file).name} beside it; create one with run --sign or "
            "evidence --sign"
        )
    content, signature, encoded = _read(file), _read(signature_of(file)), _read(public)
    try:
        is_openssh = encoded.startswith(b"ssh-")
        key = (library.load_ssh_public_key if is_openssh else library.load_pem_public_key)(encoded)
    except Exception as error:  # as above
        raise FairnessError(f"{public}: expected a public key (Ed25519): {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise FairnessError(f"{public}: expected an Ed25519 key, found {type(key).__name__}")
    try:
        key.verify(signature, content)
    except InvalidSignature:
        raise FairnessError(
            f"{file}: not signed with the key of {public}, or changed since; trust nothing in it, and ask who sent it"
        ) from None
    return content


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise FairnessError("signatures need the library cryptography: pip install 'fairness-pipeline[sign]'") from None
    return serialization


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FairnessError(f"{path}: cannot be read: {error.strerror}; check the path") from None
