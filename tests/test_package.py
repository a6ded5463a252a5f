"""The package as a whole: import cost, layers, lint, and the wheel on its own."""

import subprocess
import sys
import time
import zipfile
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = Path(sys.executable).parent
HEAVY = ("litellm", "matplotlib", "pyarrow", "aiohttp", "scipy", "tyro")


def run(*command, cwd=ROOT, **options):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cpu_seconds(code):
    return float(run(sys.executable, "-c", f"{code}\nimport time\nprint(time.process_time())"))


def test_importing_the_package_costs_little_beside_jax():
    # CPU time, alternating, so that other work on the machine does not count.
    pairs = [(cpu_seconds("import jaxcoop"), cpu_seconds("import jax")) for _ in range(3)]
    ours, jax_alone = (median(x) for x in zip(*pairs, strict=True))
    assert ours - jax_alone <= 0.3


def test_importing_the_package_loads_no_heavy_library_and_opens_no_socket():
    code = f"""
import socket, sys
def refuse(*args, **kwargs): raise AssertionError("socket opened")
socket.socket.connect = socket.create_connection = refuse
import jaxcoop
import jax
jaxcoop.list_envs()
print(sorted(set({HEAVY}) & set(sys.modules)))
"""
    assert run(sys.executable, "-c", code).strip() == "[]"


def test_importing_the_package_starts_no_device():
    code = "import jaxcoop\nfrom jax._src import xla_bridge\nprint(xla_bridge.backends_are_initialized())"
    assert run(sys.executable, "-c", code).strip() == "False"


def test_imports_point_one_way():
    run(TOOLS / "lint-imports", "--no-cache")


def test_lint_is_clean():
    run(TOOLS / "ruff", "check", "jaxcoop", "envs", "agents", "benchmarks", "tests")


@pytest.mark.slow
def test_the_wheel_works_alone(tmp_path):
    started = time.time()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist")
    (wheel,) = (tmp_path / "dist").glob("jaxcoop-*.whl")
    assert wheel.stat().st_mtime >= started - 1
    inside = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("jaxcoop/", "jaxcoop-")) for name in inside)
    assert not [name for name in inside if "__pycache__" in name or name.startswith("jaxcoop/tests")]
    assert "jaxcoop/py.typed" in inside

    site = tmp_path / "site"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
    code = f"""
import sys
sys.path.insert(0, {str(site)!r})
import importlib, pkgutil
import jaxcoop
assert jaxcoop.__file__.startswith({str(site)!r}), jaxcoop.__file__
for module in pkgutil.walk_packages(jaxcoop.__path__, "jaxcoop."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in jaxcoop.list_envs():
    assert jaxcoop.make(name).name == name
    print(name)
"""
    names = run(sys.executable, "-I", "-c", code, cwd=tmp_path, env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"})
    assert {"dining", "null"} <= set(names.split())
