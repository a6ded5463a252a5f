"""What a check of plans before a step says (COOP²-Repair).

Axes: A agents, L ops of a plan, N = A * L planned ops, row `agent * L + op`; C = 3 scored constraints in the order of
`jaxcoop.cooperation.SCORED`: spatial, temporal, dependency.

A result belongs to a task and a constraint.  Nothing here has the size tasks x agents: a task is represented by the
first planned op that acts on it, and who is named by a result is a flag on the planned ops of that task.
"""

from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cognition.types import Plan


class Evaluation(struct.PyTreeNode):
    """Predicted constraints of the tasks that the viewed plans act on."""

    task: Int[Array, " N"]  # slot in the environment's task table that the planned op acts on; -1: none
    first: Bool[Array, " N"]  # the row represents its task: first by agent, then by op
    required: Int[Array, " N"]  # agents that the task takes
    kind: Int[Array, " N"]  # the environment's code of the task's target type; -1 where there is none
    checked: Bool[Array, "N C"]  # there is a result for this constraint
    score: Float[Array, "N C"]  # satisfying agents / required; equal in all rows of a task
    failed: Bool[Array, "N C"]  # score below the threshold of the constraint
    named: Bool[Array, "N C"]  # the row's agent is one of the `agents` of the result


class Guidance(struct.PyTreeNode):
    """What the repair channel is advised to do.  Advice only: agents commit plans of their own."""

    has_target: Bool[Array, ""]
    target: Int[Array, ""]  # task slot that is recommended, -1: none
    participants: Bool[Array, " A"]  # of the recommended target, or with a recommended plan
    has_plan: Bool[Array, " A"]
    plan: Plan
