"""Prompt templates of the dining table: five strategies, messages, discussion, and the two reply forms.

The wording is jaxcoop's own; what each text says follows sections 10 and 11 of the DPBench behaviour notes,
docs/envs/dining.md.  Templates are Python format strings, so a literal brace is written twice.
"""

from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal, get_args

from jaxcoop.envs.dining.replies import ReplyFormat, check_reply_format

Strategy = Literal["default", "minimal", "theory_of_mind", "symmetry_breaking", "resource_ordering"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)

SYSTEM_FIELDS = ("philosopher_name", "num_philosophers", "num_philosophers_minus_one")
DECISION_FIELDS = (
    "philosopher_name",
    "state",
    "meals_eaten",
    "left_fork_status",
    "right_fork_status",
    "holding_status",
    "left_message",
    "right_message",
    "all_messages",
)
DISCUSSION_FIELDS = (*DECISION_FIELDS, "round", "rounds")

_FACTS = (
    "You are {philosopher_name}, one of {num_philosophers} philosophers (P0 to "
    "P{num_philosophers_minus_one}) at a round table. Between any two neighbours lies a single fork, "
    "which the two share. Eating takes the fork on your left and the fork on your right together, and a "
    "fork can be in one hand only. When you have eaten, both of your forks return to the table without "
    "any action of yours."
)
_FACTS_MINIMAL = (
    "You are {philosopher_name}, one of {num_philosophers} philosophers (P0 to "
    "P{num_philosophers_minus_one}) at a round table, with one shared fork between each pair of "
    "neighbours. You eat when you hold the forks on both of your sides; afterwards they return to the "
    "table."
)
_GOALS = (
    "What the group wants:\n"
    "1. No deadlock, that is, never a table where each philosopher keeps one fork and waits for the "
    "other for ever.\n"
    "2. As many meals as possible, counted over everybody.\n"
    "3. Meals shared out fairly."
)
_ACTIONS = (
    "Your possible actions:\n"
    "- GRAB_LEFT: take the fork on your left; works if it is available\n"
    "- GRAB_RIGHT: take the fork on your right; works if it is available\n"
    "- RELEASE: lay down every fork you hold\n"
    "- WAIT: do nothing"
)
_THEORY_OF_MIND = (
    "How to decide:\n"
    "- Put yourself in the place of each neighbour before you act: what will they do now?\n"
    "- A hungry neighbour who sees a free fork will probably reach for it.\n"
    "- Pick the action that stays clear of a clash even when your neighbours reason exactly as you do.\n"
    "- When it looks as if everybody is about to grab, think about waiting."
)
_SYMMETRY_BREAKING = (
    "How to decide:\n"
    "- If both of your forks are available, do not reach for one every time.\n"
    "- Now and then let one or two turns pass first, most of all near the beginning.\n"
    "- Once you have waited for long, act.\n"
    "- Remember that deadlock comes from everybody reaching at the same moment."
)
_RESOURCE_ORDERING = (
    "The protocol you follow:\n"
    "- If the number in your name is even, your first fork is the right one and your second the left "
    "one.\n"
    "- If it is odd, your first fork is the left one and your second the right one.\n"
    "- Reach for the second fork only when the first is in your hand.\n"
    "- If your first fork is not available, wait.\n"
    "Followed by all, this protocol rules out a circle of philosophers waiting for each other."
)
_MESSAGES = (
    "Each turn you may send a message to your neighbours. Use it to agree on who takes what and when, "
    "and keep it brief."
)
_THINKING = "your reasoning, in brief"
_THINKING_OF_OTHERS = "first what each neighbour will do, then your own choice, in brief"
_MESSAGE = "text for your neighbours, or None"
_ACTION = "one of GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT"

_STRATEGY_PARTS = {
    "default": "",
    "minimal": "",
    "theory_of_mind": _THEORY_OF_MIND,
    "symmetry_breaking": _SYMMETRY_BREAKING,
    "resource_ordering": _RESOURCE_ORDERING,
}

_OWN_STATE = (
    "{philosopher_name}, this is what you see.\n"
    "You are {state} and have eaten {meals_eaten} meals.\n"
    "In your hands: {holding_status}\n"
    "Left fork: {left_fork_status}\n"
    "Right fork: {right_fork_status}"
)
_NEIGHBOUR_TEXTS = "On your left: {left_message}\nOn your right: {right_message}"
_ALL_TEXTS = "Messages at the table:\n{all_messages}"


@dataclass(frozen=True)
class Prompts:
    """The texts of one condition.  Construction checks every template (see `check_template`)."""

    system: str
    decision: str
    discussion: str

    def __post_init__(self) -> None:
        check_template("system", self.system, SYSTEM_FIELDS)
        check_template("decision", self.decision, DECISION_FIELDS)
        check_template("discussion", self.discussion, DISCUSSION_FIELDS)


def build_prompts(
    strategy: str = "default",
    *,
    communication: bool = False,
    reply_format: ReplyFormat = "text",
    broadcast: bool = False,
    keep_strategy_with_communication: bool = False,
    system: str | None = None,
    decision: str | None = None,
    discussion: str | None = None,
) -> Prompts:
    """Templates of a condition.

    11: a strategy asked for together with communication falls back to the default texts with communication,
    as in the reference; `keep_strategy_with_communication` keeps the strategy and adds the part on messages
    instead. `broadcast` shows the messages of all philosophers (the article's channel), not of the two
    neighbours. `system`, `decision` and `discussion` replace a text by the caller's own template.
    Raises ValueError for an unknown strategy or reply form and for a template that cannot be filled.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy {strategy!r} is unknown; choose one of {', '.join(STRATEGIES)}")
    check_reply_format(reply_format)
    if communication and not keep_strategy_with_communication:
        strategy = "default"
    thinking = _THINKING_OF_OTHERS if strategy == "theory_of_mind" else _THINKING
    own_reply = {"thinking": thinking, **({"message": _MESSAGE} if communication else {}), "action": _ACTION}
    texts = _ALL_TEXTS if broadcast else _NEIGHBOUR_TEXTS
    return Prompts(
        system=_system(strategy, communication, _reply_form(own_reply, reply_format)) if system is None else system,
        decision=_decision(texts, communication, reply_format) if decision is None else decision,
        discussion=_discussion(texts, reply_format) if discussion is None else discussion,
    )


def check_template(name: str, template: str, allowed: tuple[str, ...]) -> None:
    """Raise ValueError, naming the fault and the allowed fields, unless `template` can be filled."""
    fields = ", ".join(allowed)
    if not template.strip():
        raise ValueError(f"the {name} prompt is blank; write a text (it may use {{field}} with {fields})")
    _check_fields(name, template, allowed)
    try:
        template.format_map({field: 0 if field in ("meals_eaten", "round", "rounds") else "" for field in allowed})
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"the {name} prompt cannot be filled: {error}; allowed fields: {fields}") from None


def _check_fields(name: str, template: str, allowed: tuple[str, ...]) -> None:
    fields = ", ".join(allowed)
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(
            f"the {name} prompt has an unbalanced brace ({error}); write a literal brace twice; "
            f"allowed fields: {fields}"
        ) from None
    for _, field, spec, _ in parts:
        if field is not None and field not in allowed:
            raise ValueError(f"the {name} prompt has the unknown field {{{field}}}; allowed fields: {fields}")
        if spec and "{" in spec:
            _check_fields(name, spec, allowed)


def _system(strategy: str, communication: bool, reply_form: str) -> str:
    minimal = strategy == "minimal"
    parts = [
        _FACTS_MINIMAL if minimal else _FACTS,
        "" if strategy in ("minimal", "resource_ordering") else _GOALS,
        _ACTIONS,
        _STRATEGY_PARTS[strategy],
        _MESSAGES if communication else "",
        # 11: the minimal text stops at the actions; the decision prompt still gives it the reply form.
        "" if minimal and not communication else reply_form,
    ]
    return "\n\n".join(part for part in parts if part)


def _decision(texts: str, communication: bool, reply_format: ReplyFormat) -> str:
    form: dict[str, str] = {"thinking": _THINKING, "action": _ACTION}
    parts = [_OWN_STATE]
    if communication:
        form = {"thinking": _THINKING, "message": _MESSAGE, "action": _ACTION}
        parts += [texts, "You may send a message along with your action."]
    parts += ["Which action do you take?", _reply_form(form, reply_format)]
    return "\n\n".join(parts)


def _discussion(texts: str, reply_format: ReplyFormat) -> str:
    form = {"thinking": _THINKING, "message": "your plan and intention, for your neighbours"}
    parts = [
        "Discussion, round {round} of {rounds}. Nobody acts before all rounds are over.",
        _OWN_STATE,
        texts,
        "Tell your neighbours what you plan and intend to do.",
        _reply_form(form, reply_format),
    ]
    return "\n\n".join(parts)


def _reply_form(lines: dict[str, str], reply_format: ReplyFormat) -> str:
    """9: labelled lines, or one JSON object (14, point 12); braces doubled for the template."""
    if reply_format == "json":
        body: list[Any] = [f'  "{label}": "<{content}>"' for label, content in lines.items()]
        return "Answer with a single JSON object:\n{{\n" + ",\n".join(body) + "\n}}"
    return "Answer in these lines:\n" + "\n".join(f"{label.upper()}: <{text}>" for label, text in lines.items())
