"""The DPBench condition matrix as cells to run: who plays, under which conditions, with which seeds, where.

Source: section 13 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import dataclasses
import difflib
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxcoop.agents.llm.registry import language_agents
from jaxcoop.agents.registry import list_policies
from jaxcoop.benchmarks.papers.dpbench import published_row, published_rows
from jaxcoop.core.registry import unknown
from jaxcoop.envs.dining.cells import canonical_condition
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.presets import CONDITIONS, Condition
from jaxcoop.planning.clients.litellm_client import import_litellm
from jaxcoop.runs.cell import LANGUAGE, SEEDS, Cell, Finished
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.model import LanguageModel

DEFAULT_MODELS = ("random_any", "left_first", "parity_ordering", "chandy_misra_low", "lehmann_rabin")
GROUPS = ("published", "layer1", "layer2", "layer3", "all")
POLICY_EPISODES = 10_000  # the device plays them in the time it needs to compile one
_NEAR = 0.75  # likeness from which an unknown model is taken for a misspelt policy
# Statements about a sample; of episodes that are all the same there is none.
_SPREAD = re.compile(r".*_(ci_low|ci_high|ci_half)")


class Planned(NamedTuple):
    """One cell of the matrix and its place below the output folder."""

    player: str
    condition: Condition
    cell: Cell
    folder: Path


def chosen_conditions(names: Sequence[str]) -> list[tuple[Condition, bool]]:
    """The named conditions in the order of the matrix, each with whether it was named itself.

    Names are codes (older ones such as `sim5nc` too) and groups: `published`, `layer1` to `layer3`, `all`.
    Raises `ValueError` for another name.
    """
    wanted: dict[str, bool] = {}
    measured = {row["condition"] for row in published_rows()}
    for name in names or ("all",):
        code = canonical_condition(name)
        if code in CONDITIONS:
            wanted[code] = True
            continue
        if name not in GROUPS:
            raise unknown("condition", name, (*CONDITIONS, *GROUPS))
        for cell in CONDITIONS.values():
            if name in ("all", f"layer{cell.layer}") or (name == "published" and cell.code in measured):
                wanted.setdefault(cell.code, False)
    return [(cell, wanted[code]) for code, cell in CONDITIONS.items() if code in wanted]


def changes_the_table(condition: Condition) -> bool:
    """Whether a player that reads no prompts can tell the condition from its base condition."""
    return not condition.dialogue.get("communication") and not (
        condition.dialogue.get("memory_window") or condition.prompt != "default" or condition.temperature is not None
    )


def checked_models(names: Sequence[str], model: LanguageModel) -> list[str]:
    """`names` without repetitions.

    Raises `ValueError` for a name that is neither a policy of dining nor a model that the client can reach.
    """
    policies = list_policies("dining")
    for name in names:
        if name in policies:
            continue
        if near := difflib.get_close_matches(name, policies, n=1, cutoff=_NEAR):
            raise ValueError(f"unknown model {name!r}; did you mean the policy {near[0]!r}?")
        if model.client == "litellm" and not _has_provider(name, model.api_base):
            raise ValueError(
                f"unknown model {name!r}: neither a policy of dining (jaxcoop list dining) nor a litellm "
                "name; give it with its provider, e.g. openai/gpt-4o-mini"
            )
    return list(dict.fromkeys(names))


def _has_provider(name: str, api_base: str | None) -> bool:
    try:
        import_litellm().get_llm_provider(name, api_base=api_base)
    except Exception:  # litellm's type for it is not public
        return False
    return True


def make_plan(
    models: Sequence[str],
    conditions: Sequence[tuple[Condition, bool]],
    *,
    episodes: int | None = None,
    seed: int = 0,
    model: LanguageModel = LanguageModel(),  # noqa: B008 - frozen
) -> list[Planned]:
    """All cells, player by player.

    A condition that only changes what is said is left out for a policy, unless it was named itself or DPBench
    published it for that player.  Raises `ValueError` for a value out of range or two players of one folder.
    """
    policies = list_policies("dining")
    plan = []
    for player in models:
        for condition, is_named in conditions:
            plays = (
                player not in policies
                or is_named
                or changes_the_table(condition)
                or published_row(player, condition.code) is not None
            )
            if plays:
                plan.append(_planned(player, condition, player in policies, episodes, seed, model))
    folders: dict[Path, str] = {}
    for planned in plan:
        if folders.setdefault(planned.folder.parent, planned.player) != planned.player:
            raise ValueError(
                f"models {folders[planned.folder.parent]!r} and {planned.player!r} share the folder "
                f"{planned.folder.parent}; play them into two --out folders"
            )
    return plan


def _planned(
    player: str,
    condition: Condition,
    is_policy: bool,
    episodes: int | None,
    seed: int,
    model: LanguageModel,
) -> Planned:
    folder = Path(re.sub(r"[^A-Za-z0-9._]+", "-", player).strip("-.") or "model") / condition.code
    labels: dict[str, Any] = {
        **condition.labels,
        "seed": condition_seed(seed, condition.code),
        "max_timesteps": condition.env["max_timesteps"],
    }
    default = POLICY_EPISODES if is_policy else condition.episodes
    common: dict[str, Any] = {
        "env": Dining(**condition.env),
        "episodes": default if episodes is None else episodes,
        "seed": labels["seed"],
        "preset": condition.code,
    }
    if is_policy:
        return Planned(player, condition, Cell(agent=player, labels=labels, **common), folder)
    temperature = model.temperature if condition.temperature is None else condition.temperature
    replay = None if model.replay is None else model.replay / folder
    cell = Cell(
        agent=LANGUAGE,
        labels={**labels, "temperature": temperature},
        talk=language_agents("dining").options(condition.code),
        model=dataclasses.replace(model, model=player, temperature=temperature, replay=replay),
        **common,
    )
    return Planned(player, condition, cell, folder)


def condition_seed(seed: int, code: str) -> int:
    """Seed of a condition: other conditions are other samples, also where the table is the same.

    Raises `ValueError` when `seed` is out of range.
    """
    if not 0 <= seed < SEEDS:
        raise ValueError(f"seed {seed}: must be from 0 to {SEEDS - 1:,}")
    return int.from_bytes(hashlib.sha256(f"{seed}/{code}".encode()).digest()[:4], "big")


def finished_row(planned: Planned, finished: Finished) -> dict[str, Any]:
    """Row of a finished cell; `deterministic` marks one whose episodes are all the same by construction.

    Such a cell is no sample: its intervals are removed.  A language model's equal answers are a sample unless
    its temperature is 0.
    """
    row = dict(finished.row)
    model = planned.cell.model
    row["deterministic"] = (model is None or model.temperature == 0) and _all_equal(finished.path)
    if row["deterministic"]:
        row |= {name: None for name in row if _SPREAD.fullmatch(name)}
    return row


def _all_equal(folder: Path) -> bool:
    columns = RunFolder.read(folder).episodes(["timesteps", "deadlock", "meals"])
    return len(columns["timesteps"]) > 1 and all((c == c[:1]).all() for c in columns.values())


def action_share_rows(finished: Iterable[tuple[Planned, Path]]) -> list[dict[str, Any]]:
    """(model, action, share) of language models' decisions in sequential play, for the sequential figure."""
    from jaxcoop.envs.dining.metrics import action_shares
    from jaxcoop.envs.dining.types import ACTION_NAMES

    rows = []
    for planned, path in finished:
        if planned.condition.code != "seq_n5_nocomm" or not planned.cell.is_language:
            continue
        events = RunFolder.read(path).events(["discussion_round", "action"])
        shares = action_shares(events["action"][events["discussion_round"] == 0])
        rows += [
            {"model": planned.player, "action": name, "share": float(share)}
            for name, share in zip(ACTION_NAMES, shares, strict=True)
        ]
    return rows


def episode_lists(path: Path) -> dict[str, Any]:
    """Per-episode entries that the sequential figure reads."""
    columns = RunFolder.read(path).episodes(["timesteps", "deadlock", "deadlock_reported"])
    return {
        "episode_timesteps": np.asarray(columns["timesteps"]),
        "episode_deadlock": np.asarray(columns["deadlock_reported"]),
        "episode_circular_wait": np.asarray(columns["deadlock"]),
    }
