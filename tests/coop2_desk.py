"""A desk for tests of teams of language models: one row of the engine, filled in by hand, and what it turns into."""

import numpy as np
from coop2_facts import crafter_scene, cube_scene

import jaxcoop
from jaxcoop.agents.llm.coop2.adapter import Adapter
from jaxcoop.agents.llm.coop2.facts import World
from jaxcoop.agents.llm.coop2.rows import split
from jaxcoop.agents.llm.coop2.team import vocabulary_of
from jaxcoop.agents.llm.coop2.texts import Texts
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.programs import Structure
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.structures import structure_of
from jaxcoop.envs.cube.minds import CubeMinds
from jaxcoop.envs.macrafter.minds import CrafterMinds
from jaxcoop.planning.record import Record

AGENTS, KEPT, EPISODE = 3, 8, 4
NOWHERE = World("", "", "")
ENVS = {
    "cube": jaxcoop.make("cube", agents=AGENTS),
    "macrafter": jaxcoop.make("macrafter", agents=AGENTS, width=9, height=9, balance=False),
}
DOMAINS = {"cube": (CubeMinds, cube_scene), "macrafter": (CrafterMinds, crafter_scene)}


def setup_of(profile="cube", structure="individual", **options):
    domain, _ = DOMAINS[profile]
    chosen = structure if isinstance(structure, Structure) else structure_of(profile, structure)
    return Setup(domain(ENVS[profile]), chosen, capacity=Capacity(messages=KEPT), **options)


class Desk:
    """One agent's row, blank but for what a test fills in, and the texts of its episode."""

    def __init__(self, profile="cube", structure="individual", agent=1):
        self.setup = setup_of(profile, structure)
        self.texts = Texts(Record(), AGENTS)
        self.adapter = Adapter(self.setup, vocabulary_of(self.setup), self.texts)
        self.agent, self.messages = agent, []
        none = np.zeros(1, np.uint32)
        self.fields = {
            **{name: np.int32(0) for name in ("step", "call", "kind", "stage", "got", "has_plan", "message_count")},
            **{name: none.copy() for name in ("inbox", "shown", "history")},
            "episode": np.int32(EPISODE),
            "agent": np.int32(agent),
            "directive": np.int32(-1),
            "messages": np.zeros((KEPT, 7), np.int32),
            "recipients": np.zeros((KEPT, 1), np.uint32),
            "memory": np.full((10, 4), -1, np.int32),
            "plans.number": np.zeros(AGENTS, np.int32),
            "plans.status": np.zeros(AGENTS, np.int32),
            "plans.index": np.zeros(AGENTS, np.int32),
        }

    def say(self, sender, kind, *, step=0, call=-1, plan=0, to=(1,)):
        """One more message; returns its number."""
        number = int(self.fields["message_count"])
        self.fields["messages"][number % KEPT] = number, 0, step, sender, kind, call, plan
        self.fields["recipients"][number % KEPT] = sum(1 << i for i in to)
        self.fields["message_count"] += 1
        return number

    def put(self, kind, agent, number, text):
        self.texts.put([self.texts.entry(EPISODE, kind, agent, number, text)])

    def mark(self, name, *numbers):
        """Messages in a set of the agent."""
        self.fields[name][0] |= np.uint32(sum(1 << place for place in {n % KEPT for n in numbers}))

    def remember(self, *events):
        for k, event in enumerate(events):
            self.fields["memory"][10 - len(events) + k] = event

    def row(self, **fields):
        return split({name: np.asarray(x)[None] for name, x in {**self.fields, **fields}.items()})[0]

    def facts(self, **fields):
        return self.adapter.facts(self.row(**fields), NOWHERE)
