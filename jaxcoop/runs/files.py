"""Files that are whole or absent: atomic writes, a lock that dies with its process, errors of one line.

A file is written beside its target under a temporary name, flushed to the disk, and renamed over the target.
A process killed at any moment therefore leaves the old file, the new file, or a temporary file that the next
opening of the folder removes; never half a file under the real name.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

_TEMPORARY = re.compile(r"^\..+\.(\d+)\.tmp$")
LOCK_NAME = ".lock"
FIXES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space (disk quota)",
    errno.EACCES: "make the folder writable",
    errno.EROFS: "make the file system writable",
}
"""What to do about an error of the operating system, by its number."""


class RunFolderError(RuntimeError):
    """A run folder cannot be used or written; the message is one line and ends with what to do."""


def temporary_name(path: Path) -> Path:
    """Where this process writes `path` before the rename; its id in the name serves the clean-up."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def atomic_write(path: Path | str, content: bytes | str | Callable[[IO[bytes]], object]) -> None:
    """Replace `path` by `content` completely or not at all; on return the data is on the disk.

    `content` is bytes, text (UTF-8), or a function that writes to the open binary file it is given, for data
    too large to hold twice. Errors pass through after the temporary file, and the space it took, is gone.
    """
    path = Path(path)
    temporary = temporary_name(path)
    try:
        with open(temporary, "wb") as handle:
            if callable(content):
                content(handle)
            else:
                handle.write(content.encode() if isinstance(content, str) else content)
            handle.flush()
            # /dev/full and some network mounts cannot be synced; a rename is all that can be promised there.
            _sync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def sync_directory(path: Path) -> None:
    """Make renames and removals inside `path` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Delete what killed processes left half written in `folder` itself; living writers keep theirs."""
    for entry in folder.iterdir():
        match = _TEMPORARY.match(entry.name)
        if match and not _is_another_live_process(int(match.group(1))):
            entry.unlink(missing_ok=True)


def _is_another_live_process(pid: int) -> bool:
    # Process ids repeat after a restart of a container: our own id on an old file is not us.
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def reason(error: OSError) -> str:
    """The operating system's reason in words, without the path, e.g. `no space left on device`."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return text[:1].lower() + text[1:]


def holds_json_object(path: Path) -> bool:
    """Whether the file can be read and is a JSON object."""
    try:
        return isinstance(json.loads(path.read_bytes()), dict)
    except (OSError, ValueError, RecursionError):
        return False


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of any shapes as an `npz` archive; raises ValueError for arrays of Python objects."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise ValueError(f"trace arrays {objects} hold Python objects; allowed are plain number and text arrays")

    def write(handle: IO[bytes]) -> None:
        np.savez_compressed(handle, **arrays)  # pyright: ignore[reportArgumentType]

    atomic_write(path, write)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """What `write_arrays` wrote; raises OSError or ValueError when it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(str(error)) from error


def is_whole_archive(path: Path) -> bool:
    """Whether the file is a zip archive with its directory, which comes last; contents are not read."""
    try:
        with zipfile.ZipFile(path):
            return True
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def make_folder(path: Path, mark: str) -> None:
    """Make `path` and its parents; an existing folder must be empty or hold the file `mark`.

    What a process killed before it wrote `mark` leaves behind counts as empty.  Raises RunFolderError
    otherwise.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        entries = sorted(entry.name for entry in path.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise RunFolderError(f"{path} cannot be a run folder: a file is in the way; choose another --out") from error
    except OSError as error:
        raise RunFolderError(f"cannot make run folder {path}: {reason(error)}; choose another --out") from error
    except ValueError as error:  # a null character
        raise RunFolderError(f"{str(path)!r} cannot be a run folder: {error}; choose another --out") from error
    foreign = [name for name in entries if name != LOCK_NAME and not _TEMPORARY.match(name)]
    if foreign and mark not in entries:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise RunFolderError(f"{path} holds files that are not of a run ({shown}); choose another --out")


def set_folder_aside(path: Path) -> Path:
    """Rename the folder to `<name>.old-N`, N the first free number, and return the new path."""
    number = 1
    while (target := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    try:
        path.rename(target)
    except OSError as error:
        raise RunFolderError(f"cannot rename {path} to {target.name}: {reason(error)}; choose another --out") from error
    return target


class FolderLock:
    """Exclusive use of a folder by one process; the kernel releases it however the process dies."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, folder: Path) -> "FolderLock | None":
        """Take the lock of an existing `folder`, or None where the file system cannot lock.

        Raises RunFolderError when a living process holds it; OSError when the lock file cannot be made.
        """
        while True:
            descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise RunFolderError(
                    f"run folder {folder} is in use by {holder or 'another process'}; "
                    "wait for it, stop it, or choose another --out"
                ) from None
            except OSError as error:
                os.close(descriptor)
                if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    return None
                raise
            # The folder may have been renamed away between opening and locking: then this lock is on the old
            # one.
            if _same_file(descriptor, folder / LOCK_NAME):
                # The holder's name only serves the message above; a full disk must not keep a run from
                # resuming.
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return cls(descriptor)
            os.close(descriptor)

    def release(self) -> None:
        """Give the folder free; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
