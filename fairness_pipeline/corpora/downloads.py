"""Downloads a corpus's files with progress, resumes broken downloads, and keeps only files with the declared sum."""

from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.checksums import checksum, verify_checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.leases import leased
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.progress import Progress, report

_TIMEOUT = 30.0


def download_path(address: str, expected: str) -> Path:
    """The local path of the file at an address. It keeps the ending of the name, which tells how the file is packed."""
    name = Path(urlsplit(address).path).name or "file"
    return cache_folder() / "downloads" / sha256(f"{address} {expected}".encode()).hexdigest()[:16] / name


def download(address: str, expected: str, progress: Progress | None = None) -> Path:
    """The local path of a file, which is downloaded if it is not there. An interrupted download is resumed.

    Args:
        address: `https://` or `http://`.
        expected: The SHA-256 of the file. A file with another sum is not kept.
        progress: Called with the number of bytes downloaded.

    Raises:
        FairnessError: the server cannot be reached or refuses, or the file does not have the expected sum.
    """
    path = download_path(address, expected)
    partial = path.with_name(path.name + ".partial")
    with leased(path.parent / ".lease") as lease:
        if not (path.exists() and checksum(path) == expected):
            _fetch(address, partial, progress)
            try:
                verify_checksum(partial, expected)
            except FairnessError as error:
                partial.unlink()
                raise FairnessError(f"{address}: {error}") from None
            lease.check()
            partial.replace(path)
    return path


def located(file: CorpusFile, folder: Path, progress: Progress | None = None) -> Path:
    """The path of a declared file. A file at an address is downloaded first; `progress` receives the bytes.

    Raises:
        FairnessError: as `download` does.
    """
    return download(file.path, str(file.sha256), progress) if file.is_address else file.resolve(folder)


def file_as_declared(file: CorpusFile, folder: Path) -> File:
    """A declared file with its SHA-256. A file at an address is checked when it is downloaded.

    Raises:
        FairnessError: the file is missing, or does not have the declared sum.
    """
    if file.is_address:
        return File(download_path(file.path, str(file.sha256)), str(file.sha256))
    path = file.resolve(folder)
    return File(path, verify_checksum(path, file.sha256))


def _fetch(address: str, partial: Path, progress: Progress | None) -> None:
    import httpx

    offset = partial.stat().st_size if partial.exists() else 0
    try:
        with httpx.stream(
            "GET",
            address,
            headers={"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {}),
            follow_redirects=True,
            timeout=_TIMEOUT,
        ) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # the whole file is here already
            if response.is_error:
                raise FairnessError(f"{address}: the server answers {response.status_code}; check the address")
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            done = offset if resumed else 0
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
