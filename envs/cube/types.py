"""CUBE, cooperative block pushing: codes, state and what a step reports.

Axes: A agents, B blocks (ids 0..B-1 in the order of the configuration), F = 4 B face tasks (`4 * block + face`).
Cells are (row, column), row 0 at the top; a block of weight w covers w x w cells from its top-left one.
Section numbers refer to the CUBE behaviour notes, docs/envs/cube.md.
"""

from enum import IntEnum

import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation import Attempts, Totals


class Action(IntEnum):
    """1: what an agent can do; any other number stays."""

    STAY = 0
    UP = 1
    DOWN = 2
    LEFT = 3
    RIGHT = 4


class Face(IntEnum):
    """8: the side of a block on which pushers stand, in task order."""

    UP = 0
    DOWN = 1
    LEFT = 2
    RIGHT = 3


class Push(IntEnum):
    """9.4: the outcome of a push intent.  The first four are also the outcomes of a push event (4.2)."""

    NONE = 0
    SUCCESS = 1
    INSUFFICIENT_FORCE = 2
    BLOCKED_DESTINATION = 3
    NO_CONTACT = 4
    MISMATCH = 5  # another block moved instead


ACTION_NAMES = ("stay", "up", "down", "left", "right")
FACES = ("up", "down", "left", "right")
PUSH_NAMES = (
    "none",
    "success",
    "insufficient_force",
    "blocked_destination",
    "no_contact_with_target_block",
    "mismatch",
)

DELTA_ROW = np.array([0, -1, 1, 0, 0], np.int16)
DELTA_COL = np.array([0, 0, 0, -1, 1], np.int16)
"""1: the step of each action."""

FACE_OF_ACTION = np.array([-1, Face.DOWN, Face.UP, Face.RIGHT, Face.LEFT], np.int32)
"""8: the face on which somebody pushing in this direction stands; -1 for stay."""

ACTION_OF_FACE = np.array([Action.DOWN, Action.UP, Action.RIGHT, Action.LEFT], np.int32)
"""8: the action that pushes from a face; the inverse of the above."""


@struct.dataclass
class Command:
    """What the symbolic layer asks for in one step: primitives and the push intents behind them (9.6)."""

    action: Int[Array, " A"]  # Action; int32
    block: Int[Array, " A"]  # block of the push intent, -1: the intent is no push; int32
    face: Int[Array, " A"]  # Face of the push intent; anything where there is none; int32


@struct.dataclass
class Last:
    """9.4: how the push intents of the last step ended; NONE and -1 everywhere after primitives."""

    result: Int[Array, " A"]  # Push code; int8
    pushed: Int[Array, " A"]  # MISMATCH: the block that moved instead, else -1; int16


@struct.dataclass
class State:
    """2: an episode."""

    row: Int[Array, " A"]  # -1: unplaced; int16
    col: Int[Array, " A"]
    block_row: Int[Array, " B"]  # top-left cell; -1: delivered; int16
    block_col: Int[Array, " B"]
    t: Int[Array, ""]  # steps taken; int32
    score: Float[Array, ""]  # delivered value so far
    aim: Int[Array, " A"]  # 8: face task in whose `pushing` set the agent is after the last update, -1: none; int16
    phantom: Int[Array, " A"]  # 10.3: last completed task in whose frozen set the agent is, -1: none; int16
    last: Last
    attempts: Totals  # 10: running totals of the attempt events


@struct.dataclass
class Events:
    """What happened in a step."""

    push: Int[Array, "4 B"]  # by direction (Action - 1) and block: Push code of its push event, NONE..BLOCKED; int8
    pusher: Int[Array, " A"]  # block of the agent's push event (direction: its action), -1: none; int16
    delivered: Bool[Array, " B"]
    attempts: Attempts  # 10.2: attempt events; task numbers are `4 * block + face`


@struct.dataclass
class Obs:
    """5: the map, and who is looking."""

    grid: Float[Array, "K S S 5"]  # agents, block weights, goal column, agent index + 1, block id + 1
    row: Int[Array, " K"]  # own cell, -1: unplaced; int32
    col: Int[Array, " K"]
    agent: Int[Array, " K"]  # own index; int32


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    steps: Int[Array, ""]
    delivered: Int[Array, ""]  # number of delivered blocks
    score: Float[Array, ""]  # their value
    all_delivered: Bool[Array, ""]
    attempts: Totals  # as in the state
