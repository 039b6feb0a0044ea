"""Which kind of file system a folder is on."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = (
    "9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2",
    "smb3", "smbfs", "virtiofs", "wekafs",
)  # fmt: skip
_LOCAL_FUSE = ("encfs", "fuse-overlayfs", "gocryptfs", "mergerfs", "ntfs", "unionfs")
"""What programs (FUSE) make of this machine's disks. Any other may be shared: `sshfs`, or one without a name."""


def shared_by_hosts(folder: Path) -> str | None:
    """The kind of file system, if other machines may have it mounted too; None if the disk is this machine's own.

    Args:
        folder: A folder that exists.
    """
    try:
        lines = _MOUNTS.read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux: nothing is known
        return None
    mounts = [line.split(" - ") for line in lines]
    kinds = {Path(_unescaped(of_mount.split()[4])): of_source.split()[0] for of_mount, of_source in mounts}
    place = folder.resolve()
    kind = next((kinds[own] for own in (place, *place.parents) if own in kinds), "")
    by_a_program = kind == "fuse" or (kind.startswith("fuse.") and kind.removeprefix("fuse.") not in _LOCAL_FUSE)
    return kind if kind in _SHARED or by_a_program else None


def _unescaped(path: str) -> str:
    """A path as the kernel lists it: blanks and backslashes are written in octal."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
