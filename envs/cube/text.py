"""CUBE in words: what planners read of a state and of a step, and the ops they write.  Host side, numpy only.

Positions are `(row, column)`, agents are called `agent_<index>`, face tasks `block_<id>_<face>`.
Source: sections 6, 7, 9 and 10 of the CUBE behaviour notes, docs/envs/cube.md; the wording is our own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcoop.envs.cube.skills import ENTITIES, OPS, REASONS, WIDTH, Op, Reason
from jaxcoop.envs.cube.types import (
    ACTION_NAMES,
    FACE_OF_ACTION,
    FACES,
    PUSH_NAMES,
    Action,
    Command,
    Events,
    Push,
    State,
)

if TYPE_CHECKING:
    from jaxcoop.envs.cube.env import Cube

UNKNOWN_OP = len(OPS)
"""The op row kind of an action type that does not exist (9.1: it stays and never ends)."""

LISTED_WEIGHT = 5
"""Up to this weight the cells of a block are listed one by one; above, as ranges."""

PRIMITIVE_NAMES = ("noop", "move_up", "move_down", "move_left", "move_right")

# Names of the arguments in the dictionaries of planners, in the order of `OPS`.
_ARGUMENTS = {
    "move": ("direction", "num_steps"),
    "wait": ("num_steps",),
    "push": ("block_id", "num_steps", "face"),
    "navigate": ("entity_type", "entity_id", "timeout"),
    "noop": (),
}
_WORDS = {"direction": ACTION_NAMES, "face": FACES, "entity_type": ENTITIES}


def agent_name(agent: int) -> str:
    """Name of an agent everywhere: agent_0, agent_1, …"""
    return f"agent_{agent}"


def task_id(block: int, face: int) -> str:
    """Name of a face task."""
    return f"block_{block}_{FACES[face]}"


def primitive_name(action: int) -> str:
    """10.1: name of a primitive; an action that does not exist is called by its number."""
    return PRIMITIVE_NAMES[action] if 0 <= action < len(PRIMITIVE_NAMES) else str(action)


def op_row(action: Mapping[str, Any] | None) -> list[int]:
    """The op of a planner's action, a mapping with `action_type` and its arguments (9).

    None is no op.  Words may be in capitals.  Whatever is missing, not a whole number or not a known word becomes -1:
    a wrong id has no target, a wrong direction stays, steps below 1 count as one.  An unknown type stays for ever.
    """
    row = [-1] * WIDTH
    if action is None:
        return row
    kind = str(action.get("action_type", "")).lower()
    names = _ARGUMENTS.get(kind)
    if names is None:
        row[0] = UNKNOWN_OP
        return row
    row[0] = Op[kind.upper()].value
    for place, name in enumerate(names, start=1):
        value = action.get(name)
        words = _WORDS.get(name)
        if words is not None:
            word = str(value).lower()
            row[place] = words.index(word) if word in words else -1
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            row[place] = int(np.clip(value, -(2**31), 2**31 - 1))
    return row


def op_action(row: Sequence[int]) -> dict[str, Any] | None:
    """The inverse of `op_row`; arguments that are -1 are left out."""
    kind = int(row[0])
    if kind < 0:
        return None
    if kind >= len(OPS):
        return {"action_type": "unknown"}
    action: dict[str, Any] = {"action_type": OPS[kind].name}
    for name, value in zip(_ARGUMENTS[OPS[kind].name], map(int, row[1:])):
        words = _WORDS.get(name)
        if value != -1 and (words is None or 0 <= value < len(words)):
            action[name] = value if words is None else words[value]
    return action


def reason_text(reason: int, pushed: int, target: int) -> str:
    """Why an op failed; `pushed` is the block that moved instead of the `target` of a push (9.4)."""
    if reason == Reason.MISMATCH:
        return f"pushed block {pushed} instead of target block {target}"
    return REASONS[reason]


def push_outcome(state: State, agent: int, target: int) -> tuple[str, str]:
    """9.4: (status, reason) of an agent's push intent in the step that led to `state`; empty if it had none."""
    result = int(np.asarray(state.last.result)[agent])
    if result == Push.NONE:
        return "", ""
    if result == Push.SUCCESS:
        return "success", ""
    reason = reason_text(result - 1, int(np.asarray(state.last.pushed)[agent]), target)
    return ("mismatch" if result == Push.MISMATCH else "blocked"), reason


def intents(ops: np.ndarray, command: Command) -> list[dict[str, Any]]:
    """9.6: what each agent meant by its primitive; `ops` int[A, W] are the op rows that run, kind -1: none."""
    out = []
    actions, blocks, faces = (np.asarray(x) for x in (command.action, command.block, command.face))
    for row, primitive, block, face in zip(np.asarray(ops), actions, blocks, faces):
        action = op_action(row) or {"action_type": "noop"}
        intent: dict[str, Any] = {
            "action_type": action.pop("action_type"),
            "args": action,
            "primitive": primitive_name(int(primitive)),
            "primitive_value": int(primitive),
        }
        if block >= 0:
            target = int(row[1])
            intent |= {"block_id": target, "face": FACES[face], "task_id": task_id(target, int(face))}
        out.append(intent)
    return out


def step_events(env: "Cube", before: State, actions: np.ndarray, events: Events, after: State) -> dict[str, Any]:
    """7: what a step did, push events in the order in which they were decided; `actions` int[A] are the primitives."""
    push, pusher, delivered = (np.asarray(x) for x in (events.push, events.pusher, events.delivered))
    actions, row, col = np.asarray(actions), np.asarray(before.row), np.asarray(before.col)
    succeeded, failed, deliveries = [], [], []
    for direction, block in np.argwhere(push != Push.NONE).tolist():
        action, face = direction + 1, int(FACE_OF_ACTION[direction + 1])
        members = np.flatnonzero((pusher == block) & (actions == action))
        along = col if action in (Action.UP, Action.DOWN) else row
        members = members[np.argsort(along[members], kind="stable")]  # face order (4.2)
        event = {
            "block_id": block,
            "direction": ACTION_NAMES[action],
            "agents": [agent_name(int(i)) for i in members],
            "force": len(members),
            "required": int(env.layout.weights[block]),
        }
        if push[direction, block] != Push.SUCCESS:
            failed.append(event | {"reason": PUSH_NAMES[push[direction, block]]})
            continue
        event |= {"face": FACES[face], "task_id": task_id(block, face)}
        succeeded.append(event)
        # A delivered block is gone at once, so its last push is the one that delivered it.
        if delivered[block] and not (push[direction + 1 :, block] == Push.SUCCESS).any():
            deliveries.append(
                {
                    "env_step": int(after.t),
                    "block_id": block,
                    "weight": int(env.layout.weights[block]),
                    "value": float(env.deliver_reward * env.layout.weights[block]),
                    "task_id": event["task_id"],
                    "face": event["face"],
                    "agents": event["agents"],
                }
            )
    return {
        "moved_blocks": sorted({event["block_id"] for event in succeeded}),
        "successful_pushes": succeeded,
        "delivered_blocks": deliveries,
        "failed_pushes": failed,
    }


def symbolic(env: "Cube", state: State) -> list[dict[str, Any]]:
    """7: the symbolic dictionary of every agent, in the order of their indices.

    After a step, `last_actions`, `last_symbolic_action_intents` (`intents`) and `last_step_events` (`step_events`) can
    be added; they are not part of a state.
    """
    shared = {
        "grid_size": env.side,
        "goal_column": env.side - 1,
        "team_score": float(state.score),
        "agents": [{"name": agent_name(i), "id": i, "pos": pos} for i, pos in agent_cells(state).items()],
        "blocks": [
            {"id": b, "weight": int(env.layout.weights[b]), "pos": pos} for b, pos in block_cells(state).items()
        ],
    }
    views = symbolic_views(env, state)
    return [shared | {"symbolic_view": view} for view in views]


def agent_cells(state: State) -> dict[int, tuple[int, int]]:
    """Cells of the placed agents."""
    return _placed(state.row, state.col)


def block_cells(state: State) -> dict[int, tuple[int, int]]:
    """Top-left cells of the blocks that are not delivered."""
    return _placed(state.block_row, state.block_col)


def distance_to_goal(env: "Cube", block: int, col: int) -> int:
    """6: pushes to the right until the block in this column is delivered."""
    return max(0, env.side - 1 - (col + int(env.layout.weights[block]) - 1))


def blockers(env: "Cube", cells: Mapping[int, tuple[int, int]], block: int) -> list[int]:
    """6: ids of the other blocks that have a cell in the block's rows, to the right of it."""
    row, col = cells[block]
    weight = int(env.layout.weights[block])
    return [
        other
        for other, (r, c) in cells.items()
        if other != block
        and r < row + weight
        and row < r + int(env.layout.weights[other])
        and c + int(env.layout.weights[other]) > col + weight
    ]


def symbolic_views(env: "Cube", state: State) -> list[str]:
    """7: the view of every agent as text."""
    agents, blocks = agent_cells(state), block_cells(state)
    order = sorted(blocks, key=lambda b: (distance_to_goal(env, b, blocks[b][1]), int(env.layout.weights[b]), b))
    tail = [_block_line(env, blocks, b) for b in order]
    if tail:
        tail.insert(0, "Blocks still to deliver, closest to the goal first:")
    else:
        tail.append("No blocks remain: all of them have been delivered.")
    views = []
    for reader in range(env.num_agents):
        place = f"at {_cell(agents[reader])}" if reader in agents else "not on the grid"
        lines = [f"You are {agent_name(reader)}, {place}.", "Agents on the grid:"]
        lines += [
            f"- {agent_name(i)}{' (you)' if i == reader else ''}: row {row}, column {col}"
            for i, (row, col) in agents.items()
        ]
        views.append("\n".join(lines + tail))
    return views


def task_text(env: "Cube") -> str:
    """7: the task that a team has to solve, as text."""
    counts = Counter(int(weight) for weight in env.layout.weights)
    stock = ", ".join(f"{count} of weight {weight}" for weight, count in counts.items())
    return "\n".join(
        [
            f"The world is a grid of {env.side} x {env.side} cells. Rows and columns are numbered 0 to {env.side - 1}; "
            f"row 0 is at the top. The goal is the whole column {env.side - 1}, at the right edge.",
            f"{env.num_agents} agents share it with {env.num_blocks} square blocks: {stock}. A block of weight W "
            "covers W x W cells.",
            "Your team's objective: deliver as much as possible before the episode ends. A block is delivered as soon "
            "as it touches the goal column, and scores its weight.",
            "A block of weight W moves one cell when W agents, one on each cell along the same face of it, push in the "
            "same step and nothing is in its way. To bring it to the goal, push right from its left face.",
        ]
    )


def _placed(row: Any, col: Any) -> dict[int, tuple[int, int]]:
    rows, cols = np.asarray(row).tolist(), np.asarray(col).tolist()
    return {i: (r, c) for i, (r, c) in enumerate(zip(rows, cols)) if r >= 0}


def _cell(cell: tuple[int, int]) -> str:
    return f"({cell[0]}, {cell[1]})"


def _cells(row: int, col: int, height: int, width: int) -> str:
    """The cells of a rectangle, one by one or, where they are many, as ranges."""
    if max(height, width) > LISTED_WEIGHT:
        return f"rows {row} to {row + height - 1}, columns {col} to {col + width - 1}"
    return " ".join(_cell((r, c)) for r in range(row, row + height) for c in range(col, col + width))


def _block_line(env: "Cube", blocks: Mapping[int, tuple[int, int]], block: int) -> str:
    row, col = blocks[block]
    weight = int(env.layout.weights[block])
    in_way = blockers(env, blocks, block)
    push_cells = _cells(row, col - 1, weight, 1) if col > 0 else "none, it is at the left edge"
    path = "path clear" if not in_way else "path blocked by " + ", ".join(f"block {b}" for b in in_way)
    return (
        f"- block {block}: weight {weight}; agents required {weight}; top-left {_cell((row, col))}; "
        f"cells {_cells(row, col, weight, weight)}; left push cells {push_cells}; "
        f"distance to goal {distance_to_goal(env, block, col)}; score if delivered {weight}; {path}"
    )
