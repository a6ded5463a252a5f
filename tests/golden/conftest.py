"""Recorded reference data for the golden tests: `--golden-dir DIR` points them at another folder.

DIR is laid out like the default: a sub-folder for each environment.  A test that is marked with
`recorded(environment, pattern, read)` runs once for every case that `read(path)` yields as `(name, case)` or
`(name, case, marks)` from every file that matches; it is skipped where there is none.
"""

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


def pytest_configure(config):
    config.addinivalue_line("markers", "recorded(environment, pattern, read): runs once for every recorded case")
    if not folder_of(config).is_dir():
        raise pytest.UsageError(f"--golden-dir {folder_of(config)}: no such folder; give one laid out like {DEFAULT}")


def other_folder(config) -> str | None:
    """What `--golden-dir` says; None also where the option is unknown, as when pytest is pointed at another folder."""
    return config.getoption("--golden-dir", default=None)


def folder_of(config) -> Path:
    """The folder that holds the environments' recorded data."""
    return Path(other_folder(config) or DEFAULT)


def parameters(folder: Path, pattern: str, read) -> list:
    """A parameter for every recorded case; one that is skipped where there is none."""
    found = []
    for path in sorted(folder.glob(pattern)):
        try:
            cases = list(read(path))
        except Exception as error:  # a broken file fails its own tests and leaves those of the others alone
            cases = [("unreadable", error)]
        found += [pytest.param(case, id=f"{path.name}:{name}", marks=marks) for name, case, *marks in cases]
    if not found:
        reason = f"nothing recorded for this test in {folder / pattern}"
        found.append(pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason)))
    return found


def pytest_generate_tests(metafunc):
    marker = metafunc.definition.get_closest_marker("recorded")
    if marker:
        environment, pattern, read = marker.args
        folder = folder_of(metafunc.config) / environment
        metafunc.parametrize("case", parameters(folder, pattern, read), indirect=True)


@pytest.fixture
def case(request):
    """One recorded case of the chosen folder."""
    if isinstance(request.param, Exception):
        pytest.fail(f"the file cannot be read: {request.param!r}")
    return request.param


@pytest.fixture
def default_data(pytestconfig) -> Path:
    """The default folder, for tests of what it holds; these say nothing of another one."""
    if other_folder(pytestconfig):
        pytest.skip("about the default data")
    return DEFAULT
