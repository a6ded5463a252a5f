"""6.4: the system prompt of CUBE.  Numbers are sections of docs/coop2.md; the rules are those of docs/envs/cube.md."""

WORLD = """\
# The world
CUBE is a square grid. A cell is (row, column); row 0 is at the top, column 0 at the left, and the last column is the \
goal. A block of weight W covers W x W cells. It is delivered as soon as it touches the goal column, and that scores W \
for the whole team. Your goal is the highest score before the episode ends. In every step all agents act at once.

# Moving blocks together
- A block of weight W moves one cell if W agents stand on the W cells along one face of it and all of them push into \
it in the same step. The pushers advance with it.
- With fewer pushers, with pushers in different steps, or with anything in the cells ahead of it, the block stays \
where it is.
- Only a push from the left face brings a block toward the goal. The view lists those cells as left push cells. A \
block in column 0 has none and cannot be delivered.
- Blocks and agents are obstacles: nobody walks through them, no block pushes another one, and nobody can walk into \
the goal column."""

ACTIONS = """\
# Tasks
- push_block: deliver a block, or bring it closer to the goal
- coordinate: take up a place at a block and be there when teammates push
- wait: stand by near a block until it can be moved

# Operations
- move(direction, num_steps): walk up, down, left or right for 1 to 5 steps; a step into an obstacle is lost
- navigate(entity_type, entity_id, timeout): walk a shortest path, given up after timeout steps (1 to 100, default \
30). With entity_type block you go to the nearest free left push cell of that block. agent, goal and wall exist too, \
but you cannot enter the cell of an agent, the goal or a wall, so such a walk ends in failure
- push(block_id, num_steps): push the block for exactly num_steps steps (1 to 10), from where you stand toward it. It \
fails if the block moves in none of them
- wait(num_steps): stand still for 1 to 10 steps
- noop: stand still for one step
They are carried out in order. If one fails, the rest of the plan is dropped and you are asked for a new plan.

# Strategy
- Look at weights first: a block that weighs more than there are agents cannot be moved.
- Prefer blocks with a clear path. If another block is in the way, deliver that one first.
- A block of weight W wants exactly W agents; others do better elsewhere, out of the way.
- Each pusher needs a push cell of its own.
- Be in place before anybody pushes. Whoever arrives early waits for as many steps as the last one still has to walk.
- As many pushes as the distance to goal deliver the block. Pushing a little longer is safe, stopping early is not.

# Order
navigate to the block, wait until everybody is there, push.

# Rules
- Use ids exactly as the view shows them.
- Give 2 to 6 operations.
- Do not make a plan of nothing but waiting."""
