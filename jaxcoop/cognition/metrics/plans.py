"""8.2, planning, task success, failure attribution: what became of the closed plans."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jaxcoop.cognition.metrics.messages import NOBODY
from jaxcoop.cognition.metrics.profiles import Profile, share, whole

Record = Mapping[str, Any]

SUCCEEDED = "success"
UNSUCCESSFUL = ("failed", "interrupted", "abandoned")
EPISODE_ENDED = "Episode ended"


def planning(plans: Sequence[Record], profile: Profile) -> dict[str, Any]:
    """Plans, those that were broken off, whether they were taken up again, coherence; empty without plans."""
    if not plans:
        return {}
    per_agent = Counter(str(plan.get("agent_id", NOBODY)) for plan in plans)
    broken = [_is_broken(plan, profile) for plan in plans]
    resumed, replanned = _continuations(plans, broken, profile)
    out = {
        "total_plans": len(plans),
        "plans_per_agent": dict(per_agent),
        "P_int": sum(broken),
        "P_res": resumed,
        "P_re_total": replanned,
        "P_re_avg": replanned / len(per_agent),
        "success_rate": _successes(plans) / len(plans),
        "coherence": coherence(plans),
    }
    return out | _ends(plans, sum(broken)) if profile == "macrafter" else out


def _is_broken(plan: Record, profile: Profile) -> bool:
    if profile == "cube":
        return plan.get("status") in UNSUCCESSFUL
    return plan.get("status") == "interrupted" and plan.get("failure_reason") != EPISODE_ENDED


def _ends(plans: Sequence[Record], broken: int) -> dict[str, int]:
    status = Counter(plan.get("status") for plan in plans)
    return {
        "P_failed": status["failed"],
        "P_abandoned": status["abandoned"],
        "P_episode_ended": status["interrupted"] - broken,
        "P_non_success": broken + status["failed"] + status["abandoned"],
    }


def _continuations(plans: Sequence[Record], broken: Sequence[bool], profile: Profile) -> tuple[int, int]:
    """After how many broken plans the agent's next one has the same specification, and another one."""

    def moment(k: int) -> tuple[int, ...]:
        start = span(plans[k])[0]
        return (start, whole(plans[k].get("plan_id"))) if profile == "macrafter" else (start,)

    of_agent = defaultdict(list)
    for k in sorted(range(len(plans)), key=moment):
        of_agent[plans[k].get("agent_id", NOBODY)].append(k)
    resumed = replanned = 0
    for numbers in of_agent.values():
        for k, following in pairwise(numbers):
            if broken[k]:
                is_same = plans[k].get("specification") == plans[following].get("specification")
                resumed, replanned = resumed + is_same, replanned + (not is_same)
    return resumed, replanned


def span(plan: Record) -> tuple[int, int]:
    """First and last step of a plan: no start is 0, no end is the start."""
    start = whole(plan.get("start_step"))
    end = plan.get("end_step")
    return start, start if end is None else whole(end)


def coherence(plans: Sequence[Record]) -> float:
    """Mean, over the steps with a plan, of how far the agents' plans agree; 0 without any.

    A step with one plan counts 1; one with several counts the share of the most common specification, 0 if all differ.
    """
    agents = {name: row for row, name in enumerate(dict.fromkeys(plan.get("agent_id") for plan in plans))}
    specs = {text: code for code, text in enumerate(dict.fromkeys(plan.get("specification") for plan in plans))}
    spans = [span(plan) for plan in plans]
    active = np.full((len(agents), max((end for _, end in spans), default=-1) + 1), -1)
    for plan, (start, end) in zip(plans, spans):
        # Of two plans of one agent the later record wins.
        active[agents[plan.get("agent_id")], max(start, 0) : end + 1] = specs[plan.get("specification")]
    count = (active >= 0).sum(0)
    most = np.zeros_like(count)
    for code in range(len(specs)):
        most = np.maximum(most, (active == code).sum(0))
    agreement = np.where(count == 1, 1.0, np.where(most > 1, most / np.maximum(count, 1), 0.0))
    return float(agreement[count > 0].mean()) if count.any() else 0.0


def _successes(plans: Iterable[Record]) -> int:
    return sum(plan.get("status") == SUCCEEDED for plan in plans)


def task_success(plans: Sequence[Record], changes: Iterable[Record], profile: Profile) -> dict[str, Any]:
    """Share of plans that succeeded, and what was collected meanwhile; empty without plans."""
    if not plans:
        return {}
    collected: Counter[str] = Counter()
    for change in changes:
        if change.get("change_type") == "gain":
            gained = whole(change.get("new_count")) - whole(change.get("old_count"))
            collected[str(change.get("item_name", NOBODY))] += max(gained, 1) if profile == "macrafter" else 1
    successes = _successes(plans)
    return {
        "total_plans": len(plans),
        "successful_plans": successes,
        "Y_plan": successes / len(plans),
        "resources_collected": dict(collected),
    }


def failure_attribution(plans: Iterable[Record]) -> dict[str, Any]:
    """Reasons of the plans that did not succeed, with their shares; only the total where there are none."""
    reasons = Counter(str(plan.get("failure_reason") or NOBODY) for plan in plans if plan.get("status") in UNSUCCESSFUL)
    total = reasons.total()
    if not total:
        return {"total_failures": 0}
    rho = {reason: share(count, total) for reason, count in reasons.items()}
    return {"total_failures": total, "failure_reasons": dict(reasons), "rho": rho}
