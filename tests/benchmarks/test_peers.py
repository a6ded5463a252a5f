"""Other implementations are measured beside ours: those that are packages, and the plain simulators."""

import dataclasses
import json
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from jaxcoop.benchmarks import peers, throughput
from jaxcoop.benchmarks.harness import Run
from jaxcoop.benchmarks.peers import (
    PEERS,
    PREPARED,
    CrafterEpisodes,
    Peer,
    peers_of,
    plain_crafter,
    plain_cube,
    recorded_of,
)
from jaxcoop.benchmarks.peers_jax import Craftax, JaxMARL
from jaxcoop.cli import bench
from jaxcoop.cli.main import run as run_command
from jaxcoop.core import make
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.macrafter import MACrafter

CUBE = SimpleNamespace(
    **{"name": "cube", "num_agents": 3, "num_actions": 5, "side": 8, "blocks": "2:1,1:2", "max_steps": 20},
    **{"step_cost": 0.01, "deliver_reward": 1.0, "revision": "current", "conflict": "reference", "physics": "coop2"},
)
"""The options of a CUBE environment."""


@struct.dataclass
class Start:
    """As much of an MA-Crafter state as an episode starts from."""

    material: Any
    cow_x: Any
    cow_y: Any
    x: Any
    y: Any


def small_world(key):
    """A meadow with a tree, one cow and an empty cow slot; a cell has bits that tell no material."""
    del key
    material = jnp.full((8, 9), 2, jnp.uint8).at[4, 4].set(6).at[7, 7].set(2 | 16)
    return Start(material, *(jnp.array(v, jnp.int16) for v in ([1, -1], [1, -1], [0, 2], [0, 3])))


def crowded_world(key):
    """The same without a place for the second agent."""
    return small_world(key).replace(x=jnp.array([0, -1], jnp.int16))


def crafter(**options):
    """The options of an MA-Crafter environment whose worlds are small."""
    given = {"name": "macrafter", "num_agents": 2, "num_actions": 18, "width": 8, "height": 9, "max_steps": 15}
    rules = {"requirements": "tree:1", "distance": 1, "vitals": True, "balance": True, "team_score": True, "bag": 0}
    ends = {"terminate_on_diamond": False, "end_on_death": True, "reset": small_world}
    return SimpleNamespace(**{**given, **rules, **ends, **options})


def test_a_missing_reference_package_is_one_line_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "dpbench", None)
    with pytest.raises(ImportError, match=r"^the reference package dpbench .*pip install 'jaxcoop\[peers\]'$"):
        throughput.throughput("dining", peers=True)


def test_a_missing_craftax_is_one_line_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "craftax", None)
    monkeypatch.setitem(sys.modules, "craftax.craftax_env", None)
    with pytest.raises(ImportError, match=r"^the reference package craftax .*pip install 'jaxcoop\[peers\]'$"):
        peers_of(crafter(), 0.001)


def test_an_environment_without_a_peer_says_so():
    with pytest.raises(ValueError, match="null has no reference package"):
        peers_of(make("null"), 0.1)


@pytest.mark.peers
@pytest.mark.parametrize("mode", ["simultaneous", "sequential"])
def test_the_reference_counts_our_steps(mode):
    pytest.importorskip("dpbench")
    env = make("dining", mode=mode, max_timesteps=10)
    run = peers_of(env, 0.001)["reference"].run()
    assert run.steps % (PREPARED // 5 * env.end_every) == 0
    assert run.steps > 0


@pytest.mark.slow
@pytest.mark.peers
def test_craftax_counts_the_steps_of_its_slots_and_starts_again_from_the_first_state():
    pytest.importorskip("craftax")
    game = Craftax(None, 0.001, batch=2)
    before = np.asarray(game.states.timestep).sum()
    run = game.run()
    assert run.steps == 2 * game.steps == np.asarray(game.states.timestep).sum() - before
    game.states = dataclasses.replace(game.states, player_health=jnp.array([0, 9], jnp.int32))
    game.steps = 1
    game.run()
    for now, first in zip(jax.tree.leaves(game.states.inventory), jax.tree.leaves(game.first.inventory)):
        assert now[0] == first[0]
    assert np.asarray(game.states.timestep).tolist() == [0, run.steps // 2 + before // 2 + 1]


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("observe", [False, True])
def test_jaxmarl_plays_whole_episodes_and_looks_at_them_when_asked(observe):
    pytest.importorskip("jaxmarl")
    game = JaxMARL(SimpleNamespace(layout="cramped_room"), 0.001, batch=2, observe=observe)
    game.states = game.states.replace(step=jnp.array([398, 10], jnp.int32))
    game.steps = 3
    assert game.run().steps == 6
    assert np.asarray(game.states.step).tolist() == [1, 13]
    assert (np.asarray(game.seen) > 0).all() == observe


def counted(peer):
    """The peer, with logs of what each of its steps said and of its new episodes."""
    ends, begun = [], []
    step, begin = peer.step, peer.begin

    def logged_step(actions):
        ends.append(step(actions))
        return ends[-1]

    def logged_begin():
        begun.append(len(ends))
        begin()

    peer.step, peer.begin = logged_step, logged_begin
    return peer, ends, begun


@pytest.mark.parametrize(("make_peer", "env", "limit"), [(plain_cube, CUBE, 20), (plain_crafter, crafter(), 15)])
def test_a_plain_peer_counts_its_steps_and_starts_again_where_episodes_end(make_peer, env, limit):
    peer, ends, begun = counted(make_peer(env, 0.02))
    run = peer.run()
    assert run.steps == len(ends) > limit
    assert begun == [t + 1 for t, end in enumerate(ends) if end]
    lengths = [b - a for a, b in zip([0, *begun], begun)]
    assert max(lengths) == limit


def test_the_plain_crafter_starts_in_the_worlds_of_the_environment():
    episodes = CrafterEpisodes(crafter())
    episodes.begin()
    game = episodes.game
    assert game.material == (small_world(None).material & 15).tolist()
    assert game.cows == {0: (1, 1)}
    assert [game.place(player.cell) for player in game.players] == [(0, 0), (2, 3)]


@pytest.mark.parametrize("ends", [True, False])
def test_a_death_ends_a_plain_episode_where_it_ends_ours(ends):
    episodes = CrafterEpisodes(crafter(end_on_death=ends))
    episodes.begin()
    episodes.game.players[1].inventory[0] = 0
    assert episodes.step([0, 0]) is ends


@pytest.mark.parametrize(
    ("make_peer", "env", "says"),
    [
        (plain_cube, SimpleNamespace(**{**vars(CUBE), "physics": "chain"}), "physics 'chain': the plain CUBE"),
        (plain_crafter, crafter(bag=30), "bag 30: the plain MA-Crafter"),
        (plain_crafter, crafter(reset=crowded_world), "2 agents: some find no grass to start on in 8 x 9 cells"),
    ],
)
def test_an_option_that_a_plain_peer_lacks_is_refused(make_peer, env, says):
    with pytest.raises(ValueError, match=says):
        make_peer(env, 0.01)


@pytest.mark.parametrize("env", [Cube(blocks="1:3"), MACrafter(width=16, height=12)], ids=["cube", "macrafter"])
def test_an_environment_s_options_are_those_that_its_plain_peer_reads(env):
    assert PEERS[env.name]["plain"].make(env, 0.001).run().steps > 0


class Constant:
    """A program of known speed."""

    def __init__(self, rate):
        self.rate = rate

    def run(self):
        return Run(steps=self.rate, wall_s=1.0, cpu_s=1.0)


@pytest.fixture
def two_peers(monkeypatch):
    """`null` beside two programs of known speed."""
    known = {name: Peer(f"the {name} one", "steps", lambda env, run_s, r=r: Constant(r)) for name, r in RATES.items()}
    monkeypatch.setattr(peers, "PEERS", {"null": known})


RATES = {"plain": 1000, "craftax": 500}
QUICK = ["--batches", "2", "--teams", "0", "--repeats", "1", "--run-s", "0.001"]


def test_several_peers_are_measured_in_the_same_run(two_peers):
    result = throughput.throughput("null", batches=(2,), repeats=1, run_s=0.001, peers=True)
    assert result["peers"] == ["plain", "craftax"]
    assert {name: result[name]["steps_per_cpu_s"] for name in RATES} == RATES
    (row,) = result["rows"]
    assert row["times_craftax"] == pytest.approx(2 * row["times_plain"])
    assert json.loads(json.dumps(result)) == result


def test_the_command_prints_the_rate_of_every_peer_and_ours_as_a_multiple(two_peers, capsys):
    assert run_command(["bench", "throughput", "--env", "null", "--peers", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "x plain" in out and "x craftax" in out and "x reference" not in out
    assert "the plain one: 1,000 steps per CPU-second\nthe craftax one: 500 steps per CPU-second" in out


def test_a_policy_plays_in_place_of_random_actions(capsys):
    result = throughput.throughput("dining", batches=(2,), repeats=1, run_s=0.001, agent="dijkstra_ordered_forks")
    assert result["agent"] == "dijkstra_ordered_forks" and result["rows"][0]["steps_per_s"] > 0
    assert run_command(["bench", "throughput", "--agent", "nobody", *QUICK]) == 2
    assert "unknown policy of dining 'nobody'; allowed" in capsys.readouterr().err
    assert run_command(["bench", "throughput", "--agent", "random_any", "--observe", *QUICK]) == 2
    assert "leave the agent out" in capsys.readouterr().err


def test_without_team_sizes_those_are_measured_that_the_environment_allows(monkeypatch, capsys):
    asked = []

    def scaling(name, preset, *, teams, **options):
        asked.append((teams, options["agents_in_play"]))
        return {"rows": [{"agents": 1}]}

    monkeypatch.setattr("jaxcoop.benchmarks.throughput.scaling", scaling)
    monkeypatch.setattr(bench, "TEAMS", (1, 2, 7))
    options = ["--batches", "2", "--repeats", "1", "--run-s", "0.001", "--agents-in-play", "99"]
    assert run_command(["bench", "throughput", *options]) == 0
    assert run_command(["bench", "throughput", "--env", "null", *options]) == 0
    assert asked == [([2, 7], 99), ([1, 2, 7], 99)]


@pytest.mark.parametrize(
    ("env", "rate"),
    [
        ({"name": "cube", "side": 15, "blocks": "1:3,2:3,3:3", "num_agents": 6}, 10_349.5),
        ({"name": "cube", "side": 15, "blocks": "1:3,2:3,3:3", "num_agents": 4}, None),
        ({"name": "cube", "side": 16, "blocks": "1:3,2:3,3:3", "num_agents": 6}, None),
        ({"name": "macrafter", "width": 64, "height": 64, "num_agents": 3}, 3553),
        ({"name": "burrito", "layout": "ring", "num_agents": 2}, 695),
        ({"name": "burrito", "layout": "ring", "num_agents": 3}, None),
        ({"name": "macrafter", "width": 32, "height": 64, "num_agents": 3}, None),
        ({"name": "null", "num_agents": 3}, None),
    ],
)
def test_a_rate_from_elsewhere_is_told_for_its_own_configuration_only(env, rate):
    recorded = recorded_of(SimpleNamespace(**env))
    assert (recorded and recorded.steps_per_cpu_s) == rate
    if recorded:
        assert "recorded on another machine" in recorded.source
