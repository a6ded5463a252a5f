"""From the rows that agents ask with to the requests of a language model.

Numbers are sections of docs/coop2.md.
"""

from typing import Any, Literal

from jaxcoop.agents.llm.coop2.facts import Facts, Mail, PlanView, RepairRequest, Role, World
from jaxcoop.agents.llm.coop2.mails import Mails
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.prompts import Prompt, interrupt_prompt, plan_prompt, statement_prompt, text_prompt
from jaxcoop.agents.llm.coop2.requests import Requests
from jaxcoop.agents.llm.coop2.rows import AskRow, WorldReader, by_episode
from jaxcoop.agents.llm.coop2.texts import Texts
from jaxcoop.agents.llm.coop2.worlds import worlds
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.logs import Vocabulary
from jaxcoop.cognition.types import Call, Stage
from jaxcoop.cognition.types import Mail as Type

_PROMPTS = {Call.PLAN: plan_prompt, Call.DECIDE: interrupt_prompt, Call.TEXT: text_prompt}


def roles_of(setup: Setup) -> tuple[Role, ...]:
    """5: the place of each agent; roles of structures of one's own are members of a team."""
    cast = setup.structure.cast(setup.agents)
    return tuple(
        _role(setup.structure.roles[int(number)].name, agent, int(peer))
        for agent, (number, peer) in enumerate(zip(cast.role, cast.peer, strict=True))
    )


def _role(name: str, agent: int, peer: int) -> Role:
    if name == "individual":
        return Role()
    if name == "follower":
        return Role("follower", leader=peer)
    if name == "speaker":
        return Role("speaker", position=agent)
    return Role("leader") if name == "leader" else Role("member")


class Adapter:
    """Writes the prompts of a team; `goal` is told to agents that work alone, before everything else."""

    def __init__(self, setup: Setup, vocabulary: Vocabulary, texts: Texts, goal: str = "") -> None:
        self._setup, self._goal = setup, goal
        self.profile: Profile = vocabulary.profile
        self.roles = roles_of(setup)
        self._mails = Mails(vocabulary, texts)
        self._requests = Requests(vocabulary, self._mails, texts)
        self._reader = WorldReader(setup.domain.env)
        self._seconds = setup.budget_ms / 1000 if setup.budget_ms else None

    def prompts(self, rows: list[AskRow]) -> list[Prompt]:
        """One prompt for each row."""
        written: dict[int, Prompt] = {}
        for together in by_episode(rows):
            state = self._reader.state(together[0])
            seen = worlds(self.profile, self._setup.domain.env, state, [r.agent for r in together], self._seconds)
            for row in together:
                written[id(row)] = self._prompt(row, self.facts(row, seen[row.agent]), state)
        return [written[id(row)] for row in rows]

    def request(self, row: AskRow) -> RepairRequest:
        """What the repair channel is told so far; `row` asks for a statement."""
        return self._requests.request(row, self._reader.state(row))

    def _prompt(self, row: AskRow, facts: Facts, state: Any) -> Prompt:
        if row.kind == Call.STATEMENT:
            return statement_prompt(facts, self._requests.request(row, state))
        return _PROMPTS[row.kind](facts)

    def facts(self, row: AskRow, world: World) -> Facts:
        """6.4: what the call of a row may be told."""
        role = self.roles[row.agent]
        return Facts(
            profile=self.profile,
            agent=row.agent,
            team=row.agents,
            step=row.step,
            world=world,
            role=role,
            interrupted=row.stage == Stage.INTERRUPTED,
            messages=self._messages(row, role),
            collected=self._collected(row, role),
            directive=self._mails.latest(row, row.directive) if role.kind == "follower" else None,
            memory=self._mails.memory(row),
            plan=self._plan(row),
            decision=_decision(row, role),
            goal=self._goal,
        )

    def _messages(self, row: AskRow, role: Role) -> tuple[Mail, ...]:
        """What this pass has collected; a leader of CUBE does not look at it (5.2)."""
        if not row.got or (role.kind == "leader" and self.profile == "cube"):
            return ()
        return self._mails.mails(row, "shown")

    def _collected(self, row: AskRow, role: Role) -> tuple[Mail, ...]:
        """5: a leader's answers; a speaker's proposals, at a decision those known before; all that a member heard."""
        if role.kind == "leader":
            shown = self._mails.mails(row, "shown") if row.got else ()
            return tuple(mail for mail in shown if mail.type == Type.FOLLOWER_RESPONSE.name.lower())
        known = set(row.numbers("history"))
        if role.kind == "speaker" and row.kind == Call.DECIDE:
            known -= set(row.numbers("shown"))
        elif role.kind == "member":
            known |= set(row.numbers("shown"))
        elif role.kind != "speaker":
            return ()
        messages = (row.message(number) for number in sorted(known))
        return tuple(self._mails.mail(row, message) for message in messages if message is not None)

    def _plan(self, row: AskRow) -> PlanView | None:
        """5.2: what is said after a plan was made, and before it is committed, tells of the new plan."""
        return self._mails.new_plan(row) if row.has_plan else self._mails.plan(row, row.agent)


def _decision(row: AskRow, role: Role) -> Literal["resumed", "replanned"] | None:
    """5.2: what a follower that was interrupted reports."""
    if role.kind != "follower" or row.kind != Call.TEXT or row.stage != Stage.INTERRUPTED:
        return None
    return "replanned" if row.has_plan else "resumed"
