"""Which kind of file system a folder is on."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = (
    "9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2",
    "smb3", "smbfs", "virtiofs", "wekafs",
)  # fmt: skip
_LOCAL_FUSE = ("encfs", "fuse-overlayfs", "gocryptfs", "mergerfs", "ntfs", "unionfs")
"""FUSE file systems on this machine's own disks. Any other may be shared: `sshfs`, or one without a name."""


def shared_by_hosts(folder: Path) -> str | None:
    """The kind of file system, if other machines may have it mounted too; None if the disk is this machine's own."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux: the mounts are unknown
        return None
    mounts = [line.split(" - ") for line in lines]
    kinds = {Path(_unescaped(mount.split()[4])): source.split()[0] for mount, source in mounts}
    resolved = folder.resolve()
    kind = next((kinds[parent] for parent in (resolved, *resolved.parents) if parent in kinds), "")
    is_shared_fuse = kind == "fuse" or (kind.startswith("fuse.") and kind.removeprefix("fuse.") not in _LOCAL_FUSE)
    return kind if kind in _SHARED or is_shared_fuse else None


def _unescaped(path: str) -> str:
    """Decodes a path from the kernel's list, where blanks and backslashes are in octal."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
