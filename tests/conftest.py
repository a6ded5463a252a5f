"""What every test module shares."""

import gc

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def _programs_are_dropped() -> None:
    """Drops a module's compiled programs: thousands of them in one process run into the limit of memory maps."""
    yield
    jax.clear_caches()
    gc.collect()
