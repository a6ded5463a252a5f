"""Recorded reference data for the golden tests: `--golden-dir DIR` points them at another copy."""

from pathlib import Path

import pytest

DEFAULT = Path(__file__).parent / "data"


def pytest_addoption(parser):
    parser.addoption(
        "--golden-dir",
        metavar="DIR",
        default=None,
        help=f"folder with one sub-folder of recorded reference data per environment (default {DEFAULT})",
    )


@pytest.fixture(scope="session")
def golden_dir(pytestconfig) -> Path:
    # The option exists only when pytest is pointed at this folder; elsewhere the default holds.
    return Path(pytestconfig.getoption("--golden-dir", default=None) or DEFAULT)


@pytest.fixture(scope="session")
def golden_files(golden_dir):
    """`golden_files("dining", "sim_traces*.npz")`: the matching files, sorted; skips without one."""

    def find(environment: str, pattern: str) -> list[Path]:
        found = sorted((golden_dir / environment).glob(pattern))
        if not found:
            pytest.skip(f"no file matches {pattern} in {golden_dir / environment}; give --golden-dir DIR")
        return found

    return find


@pytest.fixture(scope="session")
def golden(golden_files):
    """`golden("dining", "episodes*.jsonl.gz")`: the single matching file; more than one is an error."""

    def find(environment: str, pattern: str) -> Path:
        found = golden_files(environment, pattern)
        if len(found) > 1:
            pytest.fail(f"{pattern} matches {len(found)} files: {[path.name for path in found]}; one is expected")
        return found[0]

    return find
