"""What kind of file system holds a path, and whether it tells of changes that are made elsewhere."""

from __future__ import annotations

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "vboxsf", "fuse.sshfs", "prl_fs", "virtiofs", "ceph", "afs", "lustre")


def file_system(path: str) -> str:
    """The type of the file system that holds this real path; empty where that can't be told."""
    best, kind = "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                where, what = line.split()[1:3]
                where = where.replace("\\040", " ")
                if len(where) >= len(best) and (path == where or path.startswith(where.rstrip("/") + "/")):
                    best, kind = where, what
    except (OSError, ValueError):
        return ""
    return kind
