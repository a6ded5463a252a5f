"""How the programs of the tests are compiled.

Most of the time of the tests goes into compiling programs that run for milliseconds.  A run that leaves out the slow
tests (`make test`) therefore has LLVM skip its optimisations; `make test-all` compiles as users do, and so does
a run with `XLA_FLAGS` set, be it to nothing.
"""

import os

QUICK = "--xla_backend_optimization_level=0"


def pytest_configure(config):
    if "not slow" in config.getoption("markexpr"):
        os.environ.setdefault("XLA_FLAGS", QUICK)  # before the first program, and for the processes of the tests
