"""Fetches a corpus's files: with progress, going on where a broken download stopped, and only what is as declared."""

from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.checksums import checksum, verify_checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, locked
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.progress import Progress, report

_TIMEOUT = 30.0


def download_path(address: str, expected: str) -> Path:
    """Where the file of an address lies once it is fetched; its name keeps the ending, which tells how it is packed."""
    name = Path(urlsplit(address).path).name or "file"
    return cache_folder() / "downloads" / sha256(f"{address} {expected}".encode()).hexdigest()[:16] / name


def download(address: str, expected: str, progress: Progress | None = None) -> Path:
    """The local path of a file, fetched unless it is there; what an earlier try got is kept and added to.

    Args:
        address: `https://` or `http://`.
        expected: Its SHA-256. A file that has another is not kept.
        progress: Told how many bytes have come.

    Raises:
        FairnessError: the server cannot be reached or refuses, or the file is not the declared one.
    """
    path = download_path(address, expected)
    partial = path.with_name(path.name + ".partial")
    with locked(path.parent / ".lock"):
        if not (path.exists() and checksum(path) == expected):
            _fetch(address, partial, progress)
            try:
                verify_checksum(partial, expected)
            except FairnessError as error:
                partial.unlink()
                raise FairnessError(f"{address}: {error}") from None
            partial.replace(path)
    return path


def located(file: CorpusFile, folder: Path, progress: Progress | None = None) -> Path:
    """Where a declared file lies, fetched first if it is at an address.

    Args:
        file: As declared.
        folder: Where relative paths start.
        progress: Told how many bytes have come.

    Raises:
        FairnessError: as `download` does.
    """
    return download(file.path, str(file.sha256), progress) if file.is_address else file.resolve(folder)


def file_version(file: CorpusFile, folder: Path) -> str:
    """The SHA-256 of a declared file; what an address holds is checked when it is fetched.

    Args:
        file: As declared.
        folder: Where relative paths start.

    Raises:
        FairnessError: it is missing or is not the declared one.
    """
    return str(file.sha256) if file.is_address else verify_checksum(file.resolve(folder), file.sha256)


def _fetch(address: str, partial: Path, progress: Progress | None) -> None:
    import httpx

    have = partial.stat().st_size if partial.exists() else 0
    try:
        with httpx.stream(
            "GET",
            address,
            headers={"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {}),
            follow_redirects=True,
            timeout=_TIMEOUT,
        ) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # all of it has come already
            if response.is_error:
                raise FairnessError(f"{address}: the server answers {response.status_code}; check the address")
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            done = have if resumed else 0
            length = response.headers.get("Content-Length")
            total = done + int(length) if length else None
            with partial.open("ab" if resumed else "wb") as stream:
                for block in response.iter_raw():
                    stream.write(block)
                    done += len(block)
                    report(progress, done, total, f"bytes of {partial.stem}")
    except httpx.HTTPError as error:
        raise FairnessError(
            f"{address}: the download broke off ({error or type(error).__name__}); run again, it goes on from there"
        ) from None
    except OSError as error:
        raise explained(error, partial) from None
