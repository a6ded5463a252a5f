"""What a scripted model answers to the prompts of cognitive teams: plans that fit the prompt, worked out from its text.

Equal requests get equal replies.  Made for `jaxcoop.benchmarks.loopback`: `LoopbackServer(cognitive_policy)`.
"""

import json
import re
import zlib
from typing import Any, NamedTuple

_PLACES = re.compile(r"^- (agent_\d+)(?: \(you\))?: row (\d+), column (\d+)$", re.MULTILINE)
_BLOCKS = re.compile(
    r"^- block (\d+): weight (\d+);.*?left push cells ([^;]*\d[^;]*); distance to goal (\d+);.*?path (clear|blocked)",
    re.MULTILINE,
)
_TARGETS = re.compile(
    r"^- (\w+)#(\d+) at x=.*?, (\d+) agents?(?: at once)?(?:, \S+ needed: you have (it|none))?$", re.MULTILINE
)
_STATIONS = re.compile(r"^- (table|furnace) (\d+) \(id \d+\) at ", re.MULTILINE)
_RECOMMENDED = re.compile(r"^Recommended for you: (\w+)\((\w+)#(-?\d+)\): (.+)$", re.MULTILINE)
_OPERATION = re.compile(r"(\w+)\(([^()]*)\)")
_YIELDS = {"tree": "wood", "cow": "food"}
_HUNGRY = 3
_SPARE = 3
"""Pushes beyond the distance to the goal, since partners may come a little late."""


class _Call(NamedTuple):
    """The texts of a request."""

    system: str
    user: str

    @property
    def is_cube(self) -> bool:
        return "CUBE" in self.system

    @property
    def agent(self) -> str:
        found = re.search(r"You are (agent_\d+)", self.system + self.user)
        return found[1] if found else "agent_0"

    @property
    def team(self) -> int:
        found = re.search(r"one of (\d+) agents", self.system)
        return int(found[1]) if found else 1

    def draw(self, size: int) -> int:
        """A number below `size` that depends on the whole request."""
        return zlib.crc32((self.system + self.user).encode("utf-8", "replace")) % size


def cognitive_policy(body: dict[str, Any]) -> str:
    """The reply to a plan, interrupt, text or statement call of a cognitive team."""
    texts = {message["role"]: str(message["content"]) for message in body["messages"]}
    call = _Call(texts.get("system", ""), texts.get("user", ""))
    if "JSON object that fits this schema" not in call.user:
        return _say(call)
    schema = json.loads(call.user.rsplit("\n", 1)[1])
    reply = _decide(call) if "decision" in schema["properties"] else _plan(call)
    return json.dumps(reply)


def _say(call: _Call) -> str:
    plan = re.search(r"^Your (?:own )?plan: (\S+)", call.user, re.MULTILINE) or re.search(
        r"plan: (\S+?)\.? ", call.user
    )
    if "lead a team" in call.user:
        return "Whoever is close takes the block nearest to the goal that has a clear path. Wait for each other there."
    return f"{call.agent}: I go for {plan[1] if plan else 'what is nearest'} and act as soon as all partners are there."


def _decide(call: _Call) -> dict[str, Any]:
    """Three in four go on; of the others one in four leaves the plan out."""
    if call.draw(4):
        return {"decision": "resume", "reasoning": "The plan still fits."}
    if call.draw(16) == 0:
        return {"decision": "replan", "reasoning": "The message changes things."}
    return {"decision": "replan", "reasoning": "The message changes things.", "new_plan": _plan(call)}


def _plan(call: _Call) -> dict[str, Any]:
    task, actions = _recommended(call) or (_cube_plan(call) if call.is_cube else _macrafter_plan(call))
    return {"task": task, "actions": actions, "reasoning": "The nearest useful task."}


def _recommended(call: _Call) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """The plan that a repair recommends, where its task is one that may be answered."""
    found = _RECOMMENDED.search(call.user)
    if not found or not found[1].startswith(("push_block", "collect_")):
        return None
    actions = [_operation(*operation) for operation in _OPERATION.findall(found[4])]
    number = int(found[3])
    if call.is_cube:
        return {"task": found[1], "block_id": number}, actions
    return {"task": found[1], "object_type": found[2], "object_id": number}, actions


def _operation(kind: str, arguments: str) -> dict[str, Any]:
    args = dict(argument.split("=", 1) for argument in arguments.split(", ") if "=" in argument)
    if kind in ("craft", "place"):
        args = {"item": args["object_type"]}
    return {"action_type": kind, **args}


def _cube_plan(call: _Call) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Blocks in the order of the view each take the nearest agents that are free; whoever is left over waits."""
    free = {name: (int(row), int(col)) for name, row, col in _PLACES.findall(call.user)}
    blocks = [match for match in _BLOCKS.findall(call.user) if int(match[1]) <= call.team]
    for ident, weight, cells, distance, _ in sorted(blocks, key=lambda match: match[4] == "blocked"):
        row, col = _first_cell(cells)
        steps = sorted((abs(r - row) + abs(c - col), name) for name, (r, c) in free.items())[: int(weight)]
        takers = {name: count for count, name in steps}
        if len(takers) < int(weight):
            continue
        free = {name: cell for name, cell in free.items() if name not in takers}
        if call.agent not in takers:
            continue
        wait = steps[-1][0] - takers[call.agent]
        actions: list[dict[str, Any]] = [{"action_type": "navigate", "entity_type": "block", "entity_id": int(ident)}]
        actions += [{"action_type": "wait", "num_steps": min(wait, 10)}] if wait else []
        pushes = min(int(distance) + _SPARE, 10)
        actions.append({"action_type": "push", "block_id": int(ident), "num_steps": pushes})
        return {"task": "push_block", "block_id": int(ident)}, actions
    ident = int(blocks[0][0]) if blocks else 0
    return {"task": "wait", "block_id": ident}, [{"action_type": "wait", "num_steps": 3}]


def _first_cell(cells: str) -> tuple[int, int]:
    """The upper one of the listed cells, or of `rows 3 to 9, columns 2 to 2`."""
    numbers = [int(number) for number in re.findall(r"\d+", cells)]
    return (numbers[0], numbers[2]) if cells.startswith("rows") else (numbers[0], numbers[1])


def _macrafter_plan(call: _Call) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Eat when hungry, else the next step toward a pickaxe, else the best target in reach, else look around."""
    state = dict(re.findall(r"(\w+) (\d+)", _line(call.user, "Your state:")))
    has = {tool for tool in ("wood_pickaxe", "stone_pickaxe") if tool in _line(call.user, "Your state:")}
    wood, stone = int(state.get("wood", 0)), int(state.get("stone", 0))
    stations = dict(_STATIONS.findall(call.user))
    targets = _TARGETS.findall(call.user)
    food = [target for target in targets if target[0] == "cow"]
    if food and int(state.get("food", 9)) <= _HUNGRY:
        return _collect(*food[0][:2])
    tool = "stone_pickaxe" if "wood_pickaxe" in has and stone else "wood_pickaxe"
    if tool not in has and wood:
        if "table" in stations:
            return _craft(tool, stations["table"])
        if wood > 2:
            task = {"task": f"make_{tool}", "object_type": "table", "object_id": 1}
            return task, [{"action_type": "place", "item": "table"}, {"action_type": "craft", "item": tool}]
    able = [t for t in targets if t not in food and t[3] != "none" and int(t[2]) <= call.team]
    if able:
        # Those that take most agents are worth most.
        return _collect(*max(able, key=lambda target: int(target[2]))[:2])
    step = {"action_type": "move", "direction": ("left", "right", "up", "down")[call.draw(4)], "num_steps": 5}
    return {"task": "collect_wood", "object_type": "tree", "object_id": 0}, [step]


def _collect(kind: str, ident: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    target = _YIELDS.get(kind, kind)
    task = {"task": f"collect_{target}", "object_type": kind, "object_id": int(ident)}
    walk = {"action_type": "navigate", "object_type": kind, "item_id": int(ident)}
    return task, [walk, {"action_type": "collect", "target": target, "steps": 5}]


def _craft(tool: str, table: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    task = {"task": f"make_{tool}", "object_type": "table", "object_id": int(table)}
    walk = {"action_type": "navigate", "object_type": "table", "item_id": int(table)}
    return task, [walk, {"action_type": "craft", "item": tool}]


def _line(text: str, start: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(start)), "")
