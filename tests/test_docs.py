"""The documents are true: code runs, commands parse, links and cited sections exist, tables are complete."""

import dataclasses
import io
import re
import shlex
import sys
import tokenize
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcoop
from jaxcoop.agents import registry as policies
from jaxcoop.agents.llm.dining import Decision, DiningTalk
from jaxcoop.agents.random import RandomPolicy
from jaxcoop.cli import main as cli
from jaxcoop.core import registry
from jaxcoop.envs.dining.results import RESULTS
from jaxcoop.planning import Status, Usage
from jaxcoop.runs.evaluate import cell_row

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DINING, PLANNING, RUNS = (
    ROOT / "docs" / name for name in ("envs/dining.md", "concepts/planning.md", "concepts/runs.md")
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTION = r"(?:[1-9]\d?(?:\.\d)?|A\.\d)"
SECTIONS = rf"{SECTION}(?:-\d)?(?:(?:, and |, | and | to ){SECTION})*"


def short(path):
    return str(path.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=short)

LONG = ("docs/envs/burrito.md", "docs/envs/cube.md", "docs/envs/macrafter.md")
"""Pages whose code compiles whole episodes."""


class StoppedError(BaseException):
    """Raised in place of what a command would do."""


def stop(*_, **__):
    raise StoppedError


def prose(page):
    return FENCE.sub("", page.read_text())


def blocks(page, *languages):
    """(line number of the first line, code) of each fenced block."""
    text = page.read_text()
    for match in FENCE.finditer(text):
        if match[1] in languages:
            yield text.count("\n", 0, match.start(2)) + 1, match[2]


def headings(page):
    return re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)


def anchors(page):
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(page)]
    return {text.replace(" ", "-") for text in plain}


def numbered(page):
    """Numbers of the sections of a page: `12` and `7.2` of `## 12. Metrics` and `### 7.2 Sequential`."""
    found = (re.match(rf"({SECTION})\.? ", heading) for heading in headings(page))
    return {match[1] for match in found if match}


def commands():
    """Command lines of `jaxcoop` in shell blocks and in the running text, with their page."""
    found = []
    for page in PAGES:
        shown = [line for _, code in blocks(page, "sh", "bash", "console") for line in lines_of(code)]
        # In a sentence a command without arguments is only named.
        shown += [" ".join(span.split()) for span in re.findall(r"`(jaxcoop \w+\s[^`]+)`", prose(page))]
        for line in shown:
            words = shlex.split(line, comments=True)
            words = words[words.index("jaxcoop") + 1 :] if "jaxcoop" in words else []
            end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";")), len(words))
            words = words[:end]
            # Capitals and dots stand for what the reader puts there.
            if words and not any(re.fullmatch(r"[A-Z_]{2,}|\.\.\.|…", word) for word in words):
                found.append(pytest.param(words, id=f"{page.stem}: {' '.join(words)}"))
    return found


def lines_of(code):
    return code.replace("\\\n", " ").removeprefix("$ ").replace("\n$ ", "\n").splitlines()


def cited_text(path):
    """Comments and docstrings of a module, each on one line; neighbouring comments are joined."""
    texts, comment, start = [], "", True
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            comment += token.string.lstrip("#")
            continue
        if comment and token.type not in (tokenize.NL, tokenize.INDENT):
            texts.append(comment)
            comment = ""
        if token.type == tokenize.STRING and start:
            texts.append(token.string.strip('"'))
        if token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            start = token.type == tokenize.NEWLINE
    return [" ".join(text.split()) for text in texts]


def pages_of(path):
    """Pages whose sections the numbers in a module's comments mean."""
    others = [page for page in ("coop2", "coop2_repair") if f"docs/{page}.md" in path.read_text()]
    named = {name for name in jaxcoop.list_envs() if f"docs/envs/{name}.md" in path.read_text()}
    named |= {name for name in jaxcoop.list_envs() if path.parent.name == name or path.name.startswith(f"test_{name}_")}
    if not named and not others and path.parent.name in ("report", "golden"):
        named = {"dining"}
    pages = [f"envs/{name}" for name in sorted(named)] + others
    return [ROOT / "docs" / f"{page}.md" for page in pages]


def citing():
    """Modules whose comments cite sections of pages of environments."""
    folders = ("envs", "agents", "jaxcoop/runs", "jaxcoop/report", "benchmarks", "tests")
    paths = sorted({path for folder in folders for path in sources_of(folder)})
    return [path for path in paths if pages_of(path)]


def sources_of(folder):
    return [path for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)]


def cited_sections(text):
    """Section numbers that a comment or docstring cites, steps (`4.1-2`) left out."""
    patterns = (
        rf"^({SECTIONS})(?:, points? [\d and]+)?: ",
        rf"\(({SECTIONS})(?:, points? [\d and]+)?[);]",
        rf"[Ss]ections? ({SECTIONS})",
        rf"({SECTIONS}) of docs/envs/\w+\.md",
    )
    groups = [match[1] for pattern in patterns for match in re.finditer(pattern, text)]
    return {number for group in groups for number in re.findall(SECTION, re.sub(r"-\d", "", group))}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=short(page), marks=[pytest.mark.slow] * (short(page) in LONG)) for page in PAGES],
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    monkeypatch.setattr(policies, "_REGISTERED", {k: dict(v) for k, v in policies._REGISTERED.items()})
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, code in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, short(page), "exec"), vars(module))


@every_page
def test_a_block_says_what_it_holds(page):
    languages = {match[1] for match in FENCE.finditer(page.read_text())}
    assert languages <= {"python", "sh", "console", "toml", "text", "bibtex", "json"}


@pytest.mark.parametrize("words", commands())
def test_a_command_that_is_shown_can_be_read(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if words[0] == "list":
        assert cli.run(words) == 0
        return
    monkeypatch.setattr("jaxcoop.cli.run.run_cell", stop)
    if "--replay" in words:  # the record it names is looked at before the run
        monkeypatch.setattr("jaxcoop.cli.run.check_language", lambda *_, **__: None)
    if words[0] != "run":
        import tyro

        real = tyro.cli
        monkeypatch.setattr(tyro, "cli", lambda *a, **k: (real(*a, **k), stop())[0])
    try:
        status = cli.run(words)
    except StoppedError:
        return
    assert status == 0 and {"--help", "--version", "help"} & set(words), f"exit status {status}"


@every_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def test_pages_that_code_names_exist():
    sources = [path for folder in ("jaxcoop", "envs", "agents", "benchmarks", "tests") for path in sources_of(folder)]
    named = {name for path in sources for name in re.findall(r"docs/[\w/]+\.md", path.read_text())}
    assert short(DINING) in named
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("path", citing(), ids=short)
def test_sections_that_code_cites_are_on_the_page_of_its_environment(path):
    texts = cited_text(path)
    cited = set().union(*map(cited_sections, texts))
    pages = pages_of(path)
    assert cited <= set().union(*map(numbered, pages))
    if DINING not in pages:
        return
    points = {int(n) for text in texts for n in re.findall(r"14, points? (\d+)", text)}
    assert points <= set(points_of_section_14())


def points_of_section_14():
    section = DINING.read_text().split("\n## 14. ")[1].split("\n### ")[0]
    return [int(n) for n in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)]


def test_steps_that_the_rules_cite_are_on_the_dining_page():
    text = (ROOT / "envs/dining/rules.py").read_text()
    steps = re.findall(rf"# ({SECTION})-(\d)", text) + re.findall(r"; +(\d)-(\d)", text)
    assert ("5", "3") in steps
    for number, step in steps:
        section = re.search(rf"^#+ {re.escape(number)}\.? .*?(?=^#)", DINING.read_text(), re.MULTILINE | re.DOTALL)
        assert section is not None and f"\n{step}. " in section[0]


def test_the_dining_page_has_its_eighteen_sections_and_seventeen_points():
    assert {str(n) for n in range(1, 19)} <= numbered(DINING)
    assert points_of_section_14() == list(range(1, 18))


@pytest.mark.parametrize("path", sources_of("jaxcoop/planning"), ids=short)
def test_sections_that_planning_cites_are_on_its_page(path):
    for text in cited_text(path):
        for group in re.findall(rf"({SECTIONS}) of docs/concepts/planning\.md", text):
            assert set(re.findall(SECTION, group)) <= numbered(PLANNING)


def test_an_invented_section_is_noticed():
    assert cited_sections("7.9: a rule (6, point 2); sections 3, 4 and 19.1") == {
        "7.9",
        "6",
        "3",
        "4",
        "19.1",
    }
    assert not {"7.9", "19.1"} & numbered(DINING)


@pytest.mark.parametrize("name", jaxcoop.list_envs())
def test_every_environment_has_a_page_with_its_options_and_version(name):
    page = (ROOT / "docs" / "envs" / f"{name}.md").read_text()
    missing = [option for option in registry.get_spec(name).options() if f"`{option}`" not in page]
    assert missing == []
    version = jaxcoop.make(name).version
    assert re.search(rf"^\| {version} \||^Version {version}: ", page, re.MULTILINE)


@pytest.mark.parametrize("name", ["presets", "policies", "talk"])
def test_the_dining_page_names_everything_there_is(name):
    there = {
        "presets": registry.get_spec("dining").presets,
        "policies": policies.list_policies("dining"),
        "talk": [field.name for field in dataclasses.fields(DiningTalk)],
    }[name]
    text = DINING.read_text()
    assert [each for each in there if not re.search(rf"`{re.escape(each)}\b", text)] == []


def test_the_page_on_runs_names_every_column():
    env = jaxcoop.make("dining", max_timesteps=2)
    played = jaxcoop.rollout(env, RandomPolicy(), jax.random.key(0), jnp.arange(4))
    columns = RESULTS.columns(jax.tree.map(np.asarray, played.outcome))
    names = {*columns, *cell_row(RESULTS, columns), *Decision._fields}
    names |= {"asks", *(f"answers_{status.name.lower()}" for status in Status)}
    text = RUNS.read_text()
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_the_page_on_planning_names_every_column_of_the_ledger():
    text = PLANNING.read_text()
    assert [f.name for f in dataclasses.fields(Usage) if f"`{f.name}`" not in text] == []
