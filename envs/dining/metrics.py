"""Outcome measures of episodes: throughput, fairness, starvation, deadlock, message-action consistency.

Axes: E episodes, N philosophers.  Everything here is host-side numpy on finished episodes; a column of a
million episodes is one vectorised call.  Source: section 12 of the DPBench behaviour notes,
docs/envs/dining.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxcoop.envs.dining.types import ACTION_NAMES, Action

# 12: the classes are tried in this order; the first with a keyword inside the lower-case text is the intent.
INTENT_KEYWORDS: dict[Action, tuple[str, ...]] = {
    Action.GRAB_LEFT: ("grab left", "take left", "pick up left", "grab my left"),
    Action.GRAB_RIGHT: ("grab right", "take right", "pick up right", "grab my right"),
    Action.RELEASE: ("release", "put down", "drop", "let go"),
    Action.WAIT: ("wait", "will wait", "i'll wait", "going to wait"),
}

# 12: classes of the message analysis; one message can be in several.
CLASS_KEYWORDS: dict[str, tuple[str, ...]] = {
    "grab_left": INTENT_KEYWORDS[Action.GRAB_LEFT],
    "grab_right": INTENT_KEYWORDS[Action.GRAB_RIGHT],
    "release": ("release", "put down", "let go", "give up"),
    "wait": INTENT_KEYWORDS[Action.WAIT],
    "request_wait": ("please wait", "you wait", "could you wait", "don't grab"),
    "announce_plan": ("i plan to", "i will", "i'm going to", "my plan"),
    "coordinate": ("take turns", "alternate", "your turn", "my turn", "let me"),
}
UNCATEGORIZED = "uncategorized"


def fairness(meals: ArrayLike) -> NDArray[np.float64]:
    """Rescaled Gini fairness of meal counts, `[..., N] -> [...]`, in [0, 1].

    1 is an equal share, 0 one philosopher with every meal.  Tables without a meal, and tables of one, are
    1.0. The order of floating-point operations is part of the definition: results are equal to the last bit
    (12).
    """
    counts = np.asarray(meals)
    if counts.ndim == 0:
        raise ValueError(f"meals must have a philosopher axis, got the scalar {meals!r}; pass a list of counts")
    n = counts.shape[-1]
    if n <= 1:
        return np.ones(counts.shape[:-1], np.float64)
    ranked = np.sort(counts.astype(np.float64), axis=-1)
    total = ranked.sum(axis=-1)
    weighted = (np.arange(1, n + 1, dtype=np.float64) * ranked).sum(axis=-1)
    gini = 2 * weighted / (n * np.where(total == 0, 1.0, total)) - (n + 1) / n
    value = np.clip(1 - gini * n / (n - 1), 0.0, 1.0)
    return np.where(total == 0, 1.0, value)


def throughput(total_meals: ArrayLike, timesteps: ArrayLike) -> NDArray[np.float64]:
    """Group meals per timestep of the table clock (turns in sequential mode); 0 if there is none."""
    meals = np.asarray(total_meals, np.float64)
    steps = np.asarray(timesteps, np.float64)
    return np.divide(meals, steps, out=np.zeros(np.broadcast_shapes(meals.shape, steps.shape)), where=steps != 0)


def starvation(meals: ArrayLike) -> NDArray[np.int64]:
    """Number of philosophers without a meal, `[..., N] -> [...]`."""
    return np.asarray(np.sum(np.asarray(meals) == 0, axis=-1), np.int64)


def time_to_deadlock(deadlock: ArrayLike, timestep: ArrayLike) -> float | None:
    """Mean timestep of the circular wait over deadlocked episodes; None when there is none.

    Episodes whose deadlock timestep is 0 (or "none", stored as -1) are left out (12).
    """
    steps = np.asarray(timestep)
    counted = np.asarray(deadlock, np.bool_) & (steps > 0)
    return float(np.mean(steps[counted])) if counted.any() else None


def action_shares(actions: ArrayLike) -> NDArray[np.float64]:
    """Share of each action code 0..3 among `actions` (any shape), 0 if empty; codes below 0 are padding."""
    codes = np.asarray(actions, np.int64).ravel()
    counts = np.bincount(codes[codes >= 0], minlength=len(ACTION_NAMES))
    if counts.size > len(ACTION_NAMES):
        raise ValueError(f"action code {int(codes.max())} is outside 0..3; decode the actions first")
    return counts / max(int(counts.sum()), 1)


def aggregate(
    episodes: Mapping[str, ArrayLike],
    *,
    communication: bool = False,
    messages: Sequence[str | None] = (),
    actions: Sequence[int] = (),
) -> dict[str, Any]:
    """Cell metrics of E episodes under the reference's names; `{}` for no episode.

    Columns of `episodes`, all of length E:

    - `timesteps`;
    - `deadlock`: the episode ended in a circular wait;
    - `deadlock_reported` (default `deadlock`): what the reference reports, always false in sequential mode
      (7.2);
    - `deadlock_timestep` (default `timesteps` where deadlocked): -1 for none;
    - `deadlock_events` (default 0): circular waits resolved under `deadlock_terminal = false`;
    - `meals` [E, N], or the ready columns `throughput`, `fairness` and `starvation`, which win over `meals`.

    The reference's `deadlock_*` metrics use the reported flag; `true_deadlock_count`, `true_deadlock_rate`
    and `avg_time_to_true_deadlock` stand beside them.  With `communication`, `message_action_consistency` is
    computed from the decision records' `messages` and `actions`.  Standard deviations are population ones
    (ddof 0).  Raises ValueError for a missing column or columns of unequal length.
    """
    timesteps = _column(episodes, "timesteps")
    count = timesteps.shape[0]
    if count == 0:
        return {}
    deadlock = _column(episodes, "deadlock", count).astype(np.bool_)
    reported = _column(episodes, "deadlock_reported", count, default=deadlock).astype(np.bool_)
    deadlock_at = _column(episodes, "deadlock_timestep", count, default=np.where(deadlock, timesteps, -1))
    events = _column(episodes, "deadlock_events", count, default=np.zeros(count, np.int64))
    rates = {name: _outcome(episodes, name, timesteps) for name in ("throughput", "fairness", "starvation")}
    out: dict[str, Any] = {
        "num_episodes": count,
        "deadlock_count": int(reported.sum()),
        "deadlock_rate": float(reported.sum() / count),
        "total_deadlock_events": int(events.sum()),
        "avg_deadlock_events": float(events.sum() / count),
        "avg_throughput": float(np.mean(rates["throughput"])),
        "std_throughput": float(np.std(rates["throughput"])),
        "avg_fairness": float(np.mean(rates["fairness"])),
        "std_fairness": float(np.std(rates["fairness"])),
        "avg_time_to_deadlock": time_to_deadlock(reported, deadlock_at),
        "avg_starvation_count": float(np.mean(rates["starvation"])),
        "std_starvation_count": float(np.std(rates["starvation"])),
        "avg_timesteps": float(np.mean(timesteps)),
        "std_timesteps": float(np.std(timesteps)),
        "true_deadlock_count": int(deadlock.sum()),
        "true_deadlock_rate": float(deadlock.sum() / count),
        "avg_time_to_true_deadlock": time_to_deadlock(deadlock, deadlock_at),
    }
    if communication:
        out["message_action_consistency"] = consistency(messages, actions)
    return out


def message_intent(message: str | None) -> Action | None:
    """Action code announced by a message (plain substring test, first class wins); None without a keyword."""
    text = (message or "").lower()
    return next((code for code, words in INTENT_KEYWORDS.items() if any(word in text for word in words)), None)


def message_classes(message: str) -> list[str]:
    """Every class of the message analysis that has a keyword in the text, or `["uncategorized"]`."""
    text = message.lower()
    found = [name for name, words in CLASS_KEYWORDS.items() if any(word in text for word in words)]
    return found or [UNCATEGORIZED]


def consistency(messages: Iterable[str | None], actions: Iterable[int]) -> float | None:
    """Percent of messages with an intent whose own reply took that action; None when no message has an
    intent.

    One pair per decision record.  In sequential mode the records repeat (7.5), and so do their messages here.
    """
    stated = matched = 0
    for message, action in zip(messages, actions, strict=True):
        intent = message_intent(message)
        if intent is not None:
            stated += 1
            matched += int(intent == action)
    return matched / stated * 100 if stated else None


def _column(
    episodes: Mapping[str, ArrayLike],
    name: str,
    count: int | None = None,
    default: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Column `name` as an array whose first axis is E, or `default` when the column is absent."""
    if name not in episodes:
        if default is None:
            raise ValueError(f"episodes has no column {name!r}; it has {sorted(episodes)}")
        return default
    column = np.asarray(episodes[name])
    if column.ndim == 0 or (count is not None and column.shape[0] != count):
        raise ValueError(f"column {name!r} has shape {column.shape}; its first axis must have length {count}")
    return column


def _outcome(episodes: Mapping[str, ArrayLike], name: str, timesteps: NDArray[Any]) -> NDArray[Any]:
    """Ready column `name`, or its values computed from `meals`."""
    count = timesteps.shape[0]
    if name in episodes:
        return _column(episodes, name, count)
    meals = _column(episodes, "meals", count)
    if name == "fairness":
        return fairness(meals)
    return throughput(meals.sum(axis=-1), timesteps) if name == "throughput" else starvation(meals)
