"""The manifest of a run: what was configured, with which versions, on which machine, and how far it came.

Two runs are the same run when their configurations are equal as canonical JSON; the digest names that. What
does not change results (output folder, batch size, limits, progress display) is left out by the caller.
"""

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from jaxcoop.runs.files import RunFolderError, atomic_write, reason

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"
STATUSES = ("running", "interrupted", "complete")
_REQUIRED: dict[str, type] = {"config": dict, "command": str, "versions": dict, "resumed": list}
_PACKAGES = ("jaxcoop", "jax", "jaxlib", "numpy", "litellm")
_SHOWN_DIFFERENCES = 6


def plain(value: Any, where: str = "configuration", *, nan_as_none: bool = False) -> Any:
    """`value` as JSON data: NumPy scalars and arrays become Python ones, tuples become lists.

    Raises ValueError, naming the place, for anything JSON cannot hold: other types, keys that are not text,
    and NaN or infinity (these become None with `nan_as_none`).
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if nan_as_none:
            return None
        raise ValueError(f"{where} is {value}; JSON holds finite numbers only")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{where} has the key {key!r}; keys must be text")
        return {key: plain(item, f"{where}.{key}", nan_as_none=nan_as_none) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", nan_as_none=nan_as_none) for i, item in enumerate(value)]
    raise ValueError(
        f"{where} is of type {type(value).__name__}; allowed are numbers, text, booleans, None, lists, dicts"
    )


def digest(config: Mapping[str, Any]) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON of `config`: sorted keys, no spaces, NumPy made plain."""
    text = json.dumps(plain(config), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Where two configurations differ, one `key: ours here, theirs there` each, keys dotted and sorted."""
    here, there = _flat(plain(ours)), _flat(plain(theirs))
    return [
        f"{key}: {here.get(key, 'not set')} here, {there.get(key, 'not set')} there"
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key)
    ]


def difference_line(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """`differences` in one line, the first six of them."""
    lines = differences(ours, theirs)
    rest = len(lines) - _SHOWN_DIFFERENCES
    return "; ".join(lines[:_SHOWN_DIFFERENCES]) + (f"; and {rest} more" if rest > 0 else "")


def check_same(path: Path, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raises RunFolderError, naming what differs, unless the run in `path` has our configuration."""
    if digest(ours) != digest(theirs):
        raise RunFolderError(
            f"{path} holds a run of another configuration ({difference_line(ours, theirs)}); choose another --out, "
            "or repeat with --force (the old folder is kept under another name)"
        )


def version_notes(before: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """One line for each package whose version is another one than when the run began."""
    return [
        f"the run was begun with {name} {before.get(name)}, this is {name} {version}"
        for name, version in here.items()
        if version != before.get(name)
    ]


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(value, dict) and (value or not prefix):
        return {k: v for key, item in value.items() for k, v in _flat(item, f"{prefix}.{key}").items()}
    return {prefix.lstrip("."): json.dumps(value, ensure_ascii=False)}


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that decide results; None where one is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        # Read from the installed metadata: importing litellm for its version would cost seconds.
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def machine() -> dict[str, Any]:
    """The host in a few words: name, system, processor kind, number of CPUs."""
    return {
        "host": platform.node(),
        "system": platform.platform(terse=True),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
    }


def now() -> str:
    """The present time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_manifest(config: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The manifest of a run that begins now."""
    config = plain(config)
    return {
        "format": FORMAT_VERSION,
        "status": "running",
        "command": command,
        "created": now(),
        "updated": now(),
        "seed": config.get("seed"),
        "digest": digest(config),
        "config": config,
        "versions": versions(),
        "machine": machine(),
        "resumed": [],
    }


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in `folder`, or None where there is none.

    Raises RunFolderError when it cannot be read, is not a manifest, or has another format version.
    """
    path = folder / MANIFEST_NAME
    fix = "repeat with --force (the old folder is kept under another name) or choose another --out"
    try:
        manifest = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"cannot read {path}: {reason(error)}; {fix}") from error
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged (not JSON); {fix}") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise RunFolderError(f"{path} is not the manifest of a jaxcoop run; {fix}")
    if manifest["format"] != FORMAT_VERSION:
        raise RunFolderError(
            f"{path} has format {manifest['format']}; this version reads format {FORMAT_VERSION}; {fix}"
        )
    if manifest.get("status") not in STATUSES:
        raise RunFolderError(f"{path} has the status {manifest.get('status')!r}, not one of {STATUSES}; {fix}")
    for key, kind in _REQUIRED.items():
        if not isinstance(manifest.get(key), kind):
            found = f"is {manifest[key]!r:.60}" if key in manifest else "is missing"
            raise RunFolderError(f"{path} is damaged (the entry {key!r} {found}); {fix}")
    return manifest


def _refuse_constant(name: str) -> None:
    """NaN and infinities are not JSON, though Python reads them."""
    raise ValueError(f"{name} is not JSON")


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write `manifest` atomically; raises OSError when the disk refuses."""
    atomic_write(folder / MANIFEST_NAME, json.dumps(manifest, indent=2) + "\n")


def default_folder(environment: str, preset: str, agent: str, config: Mapping[str, Any]) -> Path:
    """`runs/<environment>-<preset>-<agent>-<short digest>` below the current folder; same run, same place."""
    words = [re.sub(r"[^A-Za-z0-9._]+", "-", word).strip("-.")[:60] for word in (environment, preset, agent)]
    return Path("runs") / "-".join([word for word in words if word] + [digest(config)[:8]])
