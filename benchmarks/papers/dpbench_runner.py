"""DPBench's own interface on this engine: a model function in, cell metrics and log lines out.

For code written against the reference package: same arguments, same metrics, same log records (7, 12 and 17 of
docs/envs/dining.md), all episodes at once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import jaxcoop
from jaxcoop.agents.llm.dining import PARSER, DiningTalk, DiningTeam
from jaxcoop.agents.llm.dining_events import action_rows, recorded_decisions, texts
from jaxcoop.core.results import Columns
from jaxcoop.envs.dining.cells import condition_code
from jaxcoop.envs.dining.env import Dining, Mode
from jaxcoop.envs.dining.metrics import aggregate
from jaxcoop.envs.dining.records import LogWriter
from jaxcoop.envs.dining.replay import trace_episode
from jaxcoop.planning.clients.function import FunctionClient
from jaxcoop.planning.front_ends import FRONT_ENDS
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import PlannerUnusable
from jaxcoop.planning.record import Record
from jaxcoop.planning.request import Reply, Request

ModelFunction = Callable[[str, str], str | tuple[str, int, int]]
"""`model_fn(system, user)` -> text, or (text, tokens in, tokens out)."""


def run(
    model_fn: ModelFunction,
    system_prompt: str,
    decision_prompt: str,
    *,
    philosophers: int = 5,
    episodes: int = 30,
    max_timesteps: int = 50,
    mode: Mode = "simultaneous",
    communication: bool = False,
    communication_rounds: int = 1,
    memory_window: int = 0,
    deadlock_terminal: bool = True,
    backoff_threshold: int = 0,
    backoff_probability: float = 0.5,
    seed: int = 0,
    log_file: str | Path | None = None,
    record: str | Path | None = None,
    threads: int = 16,
) -> dict[str, Any]:
    """Play a cell with a model function; returns the reference's metrics and the call and token totals.

    The prompts are Python format templates (8).  `model_fn` is called from `threads` threads at once.  `record`: a
    file that keeps every answer, so that the same call goes on after a kill and asks for nothing twice.  The seed
    only names the sample; the table has no randomness.  Raises `ValueError` for options out of range and templates
    that cannot be filled, `PlannerUnusable` when the function keeps failing.
    """
    for name, text in (("system_prompt", system_prompt), ("decision_prompt", decision_prompt)):
        if not text.strip():
            raise ValueError(f"{name} is blank; it must be a template")
    if not callable(model_fn):
        raise ValueError(f"model_fn {model_fn!r}: must be callable")
    if episodes < 1 or threads < 1:
        raise ValueError(f"episodes {episodes}, threads {threads}: both must be 1 or more")
    env = Dining(
        philosophers,
        mode,
        max_timesteps,
        deadlock_terminal,
        backoff_threshold=backoff_threshold,
        backoff_probability=backoff_probability,
    )
    talk = DiningTalk(
        communication, communication_rounds, memory_window, system=system_prompt, decision=decision_prompt
    )
    client = FunctionClient(_asking(model_fn), "model_fn", temperature=None, threads=threads)
    with Record(record) as answers, Hub(client, answers, limit=threads, parser=PARSER) as hub:
        team = DiningTeam(env, talk, hub, seed)
        states = team.begin(jax.random.key(seed), jnp.arange(episodes, dtype=jnp.int32))
        states = FRONT_ENDS["segments"](team.process, team.planner, states)
        if hub.unusable:
            raise PlannerUnusable(hub.unusable, states)
        columns, events, usage = team.columns(states), team.take_events(), hub.usage()
    actions, messages = recorded_decisions(env, events)
    metrics = aggregate(columns, communication=communication, messages=messages, actions=actions)
    if log_file is not None:
        config = {
            "condition": condition_code(mode, philosophers, communication),
            "mode": mode,
            "philosophers": philosophers,
            "episodes": episodes,
            "max_timesteps": max_timesteps,
            "communication": communication,
            "communication_rounds": communication_rounds,
            "memory_window": memory_window,
            "deadlock_terminal": deadlock_terminal,
            "seed": seed,
        }
        write_log(log_file, env, events, config)
    totals = {"total_llm_calls": usage.calls, "total_tokens_in": usage.tokens_in, "total_tokens_out": usage.tokens_out}
    return {**metrics, **totals}


def write_log(path: str | Path, env: Dining, events: Columns, config: dict[str, Any]) -> None:
    """Append the episodes of a language-model run to a log in the reference's form (17).

    `events`: the decision columns of the run (`RunFolder.events()` of a run folder).
    """
    with LogWriter(path, config, {"jaxcoop": jaxcoop.__version__}) as log:
        for episode, rows in action_rows(events):
            said, thought = texts(events, "message", rows), texts(events, "reasoning", rows)
            log.write_episode(episode, trace_episode(env, events["action"][rows], said, thought))


def _asking(model_fn: ModelFunction) -> Callable[[Request], Reply]:
    def ask(request: Request) -> Reply:
        answer = model_fn(request.messages[0].content, request.messages[1].content)
        if isinstance(answer, str):
            return Reply(answer, priced=False)
        text, tokens_in, tokens_out = answer
        return Reply(str(text), int(tokens_in), int(tokens_out), priced=False)

    return ask
