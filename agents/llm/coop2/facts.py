"""What prompts are written from: plain host data of one call, without a trace of how the engine keeps it.

Numbers are sections of docs/coop2.md, with an R those of docs/coop2_repair.md.  Agents are called `agent_<index>`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.plans import TextPlan
from jaxcoop.cognition.logs import agent_name
from jaxcoop.core.registry import unknown

RoleKind = Literal["independent", "leader", "follower", "speaker", "member"]
ROLES: tuple[RoleKind, ...] = ("independent", "leader", "follower", "speaker", "member")

EventKind = Literal["message_in", "message_out", "plan", "plan_failure"]
PlanState = Literal["pending", "executing", "success", "failed", "interrupted"]

REPAIR_REQUEST = "coop2_repair_request"
"""4: type of a message that asks for a repair; its sender is `REPAIR_SENDER`."""


@dataclasses.dataclass(frozen=True)
class Role:
    """5: the place of an agent in the communication structure.

    `member` is for structures of one's own: everybody is shown the whole team and all messages, and `text` says how the
    team talks.
    """

    kind: RoleKind = "independent"
    leader: int = 0  # leader and follower: who leads
    position: int = 0  # speaker: number of the turn, from 0
    text: str = ""  # takes the place of the role's own text

    def __post_init__(self) -> None:
        """Check the kind."""
        if self.kind not in ROLES:
            raise unknown("role", self.kind, ROLES)


@dataclasses.dataclass(frozen=True)
class World:
    """What an agent perceives, in words (`worlds` writes it from a state)."""

    configuration: str  # what the task is and what it takes
    view: str  # everything in view with its ids
    position: str
    visible_area: str = ""
    status: str = ""  # vitals, tools, resources
    inventory: str = ""
    hints: str = ""  # targets that can be reached


@dataclasses.dataclass(frozen=True)
class PlanView:
    """A plan and how far it has come."""

    plan: TextPlan
    number: int  # plan_id
    status: PlanState = "pending"
    index: int = 0  # the current operation


@dataclasses.dataclass(frozen=True)
class Failure:
    """R2: a constraint that the plans will not meet."""

    task: str  # id of the task
    constraint: str  # spatial, temporal or dependency
    score: float  # satisfying agents / required
    required: int
    agents: tuple[int, ...] = ()  # those that the result names
    about: str = ""  # the task in words: kind and place
    tool: str = ""  # dependency: what is needed


@dataclasses.dataclass(frozen=True)
class Candidate:
    """R10: a target that the team could agree on."""

    target: str  # `coal#7`
    participants: tuple[int, ...]
    position: tuple[int, int] | None = None
    steps: int | None = None  # until the last participant can collect
    timeout: int | None = None  # recommended
    stage: str = ""  # collect_ready or prepare_tools
    reach: str = ""  # good, usable, far


@dataclasses.dataclass(frozen=True)
class ToolHint:
    """R10: what an agent lacks for a task, and what it should do about it."""

    task: str
    tool: str
    advice: Mapping[int, str]  # agent -> what to do


@dataclasses.dataclass(frozen=True)
class RepairRequest:
    """R8: what a repair channel is told.  All advice may be empty."""

    step: int
    failures: tuple[Failure, ...]
    views: Mapping[int, PlanView] = dataclasses.field(default_factory=dict)  # plans that were checked
    recommended: Mapping[int, TextPlan] = dataclasses.field(default_factory=dict)
    strategy: str = ""
    target: Candidate | None = None
    candidates: tuple[Candidate, ...] = ()
    tools: tuple[ToolHint, ...] = ()
    blocked: tuple[Candidate, ...] = ()  # worth it once the tools are there
    statements: tuple[tuple[int, str], ...] = ()  # agent, what it said, in turn


@dataclasses.dataclass(frozen=True)
class Mail:
    """4: a message.  Its time is left out: wall-clock figures would make every request a new one."""

    sender: str  # name of an agent, or `REPAIR_SENDER`
    content: str
    step: int
    type: str = ""  # of section 4; empty: none
    recipients: tuple[str, ...] = ()
    speaker_order: int | None = None
    interrupts: bool = False
    request: RepairRequest | None = None  # of a repair request


@dataclasses.dataclass(frozen=True)
class MemoryEvent:
    """6.5: something that an agent remembers.  A message event has mail, the others a plan."""

    kind: EventKind
    step: int
    mail: Mail | None = None
    plan: PlanView | None = None
    operation: str = ""  # plan_failure: what failed
    reason: str = ""  # plan_failure: why


@dataclasses.dataclass(frozen=True)
class Facts:
    """6.4: everything that a call of one agent may be told; which of it is told follows from the call and the role.

    `interrupted` and `messages` belong together: messages are those collected in this pass, in the order received.
    `collected` is what the structure gathers: a leader's answers, a chain's earlier proposals.
    """

    profile: Profile
    agent: int
    team: int  # number of agents
    step: int  # primitive steps done
    world: World
    role: Role = Role()
    interrupted: bool = False  # the pass began in stage I
    messages: tuple[Mail, ...] = ()
    collected: tuple[Mail, ...] = ()
    directive: str | None = None  # follower: the leader's latest message
    memory: tuple[MemoryEvent, ...] = ()  # oldest first
    plan: PlanView | None = None  # the agent's present plan
    decision: Literal["resumed", "replanned"] | None = None  # follower that reports after an interrupt
    goal: str = ""  # a goal of one's own, told before the configuration

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 <= self.agent < self.team:
            raise ValueError(f"agent is {self.agent}; allowed: 0 to {self.team - 1}, the team has {self.team}")

    @property
    def name(self) -> str:
        """Name of the agent."""
        return agent_name(self.agent)

    @property
    def request(self) -> RepairRequest | None:
        """The latest repair request among the collected messages."""
        return next((mail.request for mail in reversed(self.messages) if mail.request is not None), None)


def is_repair(mail: Mail) -> bool:
    """Whether a message is a repair request."""
    return mail.type == REPAIR_REQUEST
