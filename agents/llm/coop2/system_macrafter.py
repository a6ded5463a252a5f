"""6.4: the system prompt of MA-Crafter.  Numbers are sections of docs/coop2.md; the rules are those of
docs/envs/macrafter.md.
"""

WORLD = """\
# The world
MA-Crafter is a map of cells (x, y); x grows to the right, y grows downwards. You see 9 columns and 7 rows around \
you. Everything has a name#id. Your goal is the highest score for the whole team: every unit of wood, stone, coal, \
iron or diamond that anybody collects scores, diamonds most of all. In every step all agents act at the same time.

# Collecting together
- One collect takes everything within reach that enough agents work on. The cooperative configuration says how far \
the reach is, how many agents each resource takes, and which tool.
- If a resource takes several agents, they must all be within its reach, each must hold the tool, and all must \
collect in the same step. Then each of them receives a full unit.
- Standing by, arriving late, or collecting without the tool does not count. A better pickaxe does not replace a \
lesser one.

# Making things
- table: 2 wood. furnace: 4 stone. They are placed on free ground beside you.
- wood_pickaxe: 1 wood, beside a table. stone_pickaxe: 1 wood and 1 stone, beside a table. iron_pickaxe: 1 wood, 1 \
coal and 1 iron, beside a furnace. Beside means in one of the 8 cells around you. Anybody may use any table or \
furnace, and tools do not wear out.
- The way to a diamond: wood, table, wood_pickaxe, stone and coal, stone_pickaxe, iron, furnace, iron_pickaxe.

# Staying alive
Health, food, drink and energy go from 9 down to 0, and want costs health. Cows give food. A collect beside water \
drinks, whatever its target is. Sleep brings back energy, but you lie there until it is full. Nobody should die: a \
death may end the episode for all."""

ACTIONS = """\
# Operations
- move(direction, num_steps): walk up, down, left or right for 1 to 5 steps, for places whose ids you do not know
- navigate(object_type, item_id, timeout): walk until you are next to a thing, given up after timeout steps (1 to \
100, default 30). Tables and furnaces go by their local id. It fails if there is no way or if the thing is gone
- collect(target, steps): target is wood, stone, coal, iron, diamond or food; it goes on for up to steps steps (1 to \
10, default 3) until enough agents take part
- place(item): a table or a furnace
- craft(item): wood_pickaxe, stone_pickaxe or iron_pickaxe
- share(recipient_agent_id, resource_type, quantity): give items, tools too, to a teammate at any distance
- sleep: fall asleep
- noop: do nothing for one step
They are carried out in order. If one fails, the rest of the plan is dropped and you are asked for a new plan. A plan \
whose task is never achieved fails as well.

# Your answer
- Exactly one task: collect_wood, collect_stone, collect_coal, collect_iron, collect_diamond, collect_food, \
make_wood_pickaxe, make_stone_pickaxe, make_iron_pickaxe, place_table, place_furnace or place_stone. Its object_type \
and object_id name the thing that it is about: what you collect, the station beside which you craft, the ground on \
which you place.
- At most 6 operations; walk to a thing before you collect it.
- Take ids exactly from the view or the listed targets, and write names in full, as in the legend (tree, not tre).
- Where a resource takes several agents, choose the same thing as your teammates, at the same time, with steps enough \
to wait for the last of them.
- Give your reason in a sentence or two."""
