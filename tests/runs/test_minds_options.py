"""Options of teams that think, latency models by name, names of scripted planners."""

import dataclasses

import pytest

import jaxcoop
from jaxcoop.agents.minds.latencies import MODELS, in_numbers, latency_of
from jaxcoop.agents.minds.makers import is_mind, list_minds, make_planner, player_of
from jaxcoop.agents.minds.options import MindOptions, domain_of, setup_of
from jaxcoop.cognition.repair.config import PRESETS
from jaxcoop.runs.cell import Cell

CUBE = jaxcoop.make("cube", side=8, agents=3, max_steps=6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"structure": "ring"}, "unknown structure 'ring'; allowed: broadcast_chain, centralized, individual"),
        ({"budget_seconds": -1.0}, "budget_seconds -1.0: must be from 0"),
        ({"budget_seconds": float("nan")}, "budget_seconds nan"),
        ({"step_ms": -1}, "step_ms -1"),
        ({"plan_ops": 1}, "plan_ops 1: must be from 2 to 1,000"),
        ({"repairs_per_step": -1}, "repairs_per_step -1"),
        ({"cooldown": 3}, "cooldown 3 is for --repair"),
        ({"scope": "place", "repair": True}, "unknown scope 'place'"),
        ({"cooldown": -3, "repair": True}, "cooldown -3"),
        ({"thresholds": (1.0, 2.0, -1.0), "repair": True}, "thresholds (1.0, 2.0, -1.0)"),
        ({"latency": "fast"}, "unknown latency 'fast'"),
        ({"latency": "constant:x"}, "'x' must be one number or 4"),
        ({"latency": "lognormal:5:1,2"}, "'1,2' must be one number or 4"),
        ({"latency": "constant:nan"}, "'nan' must be one number or 4"),
        ({"latency": "lognormal:5:9"}, "sigma"),
        ({"log": -1}, "log -1"),
        ({"export": -1}, "export -1"),
    ],
)
def test_a_value_out_of_range_is_named(options, said):
    with pytest.raises(ValueError) as error:
        MindOptions(**options)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("world", ["cube", "macrafter"])
def test_repair_is_as_published_unless_told_otherwise(world):
    env = jaxcoop.make(world)
    assert not setup_of(env, MindOptions()).repair.enabled
    assert setup_of(env, MindOptions(repair=True)).repair == PRESETS[world]
    changed = setup_of(env, MindOptions(repair=True, cooldown=7, scope="resource", thresholds=(0.5, 1.0, 1.0)))
    expected = dataclasses.replace(PRESETS[world], cooldown=7, scope="target_type", thresholds=(0.5, 1.0, 1.0))
    assert changed.repair == expected


def test_the_setup_has_every_option():
    options = MindOptions(
        structure="broadcast_chain",
        budget_seconds=1.5,
        step_ms=20,
        plan_ops=5,
        latency="constant:7",
        reinterrupt_on_unread=True,
        statement_placeholder=True,
        repairs_per_step=2,
    )
    setup = setup_of(CUBE, options)
    assert (setup.structure.name, setup.budget_ms, setup.step_ms, setup.plan_ops) == ("broadcast_chain", 1500, 20, 5)
    assert dataclasses.astuple(setup.fixes) == (True, True, 2)
    assert setup.latency is not None and setup.latency.median == (7.0,) * 4


def test_latencies_are_those_of_the_name_and_measured_for_language_models_only():
    assert latency_of(None) == MODELS["constant"] and latency_of(None, language=True) is None
    assert latency_of("measured", language=True) is None
    with pytest.raises(ValueError, match="scripted planners answer at once; name a model"):
        latency_of("measured")
    model = latency_of("lognormal:10,20,30,40:0.5")
    assert model is not None and model.median == (10, 20, 30, 40) and model.sigma == (0.5,) * 4
    again = latency_of(in_numbers(model))
    assert again is not None and (again.median, again.sigma) == (model.median, model.sigma)


def test_models_of_the_paper_are_said_to_be_simulated():
    assert all(name == "constant" or name.startswith("simulated-") for name in MODELS)


def test_planners_have_names_in_worlds_where_agents_think():
    assert list(list_minds("cube")) == ["plans", "plans_strong", "plans_middling", "plans_weak"]
    assert list_minds("dining") == {} and not is_mind("plans", "dining") and is_mind("plans_weak", "macrafter")
    assert player_of("perfect") == "plans"
    with pytest.raises(ValueError, match=r"unknown level of mistakes 'wek'.*did you mean 'weak'"):
        player_of("wek")
    with pytest.raises(ValueError, match="unknown scripted planner 'greedy'"):
        make_planner("greedy", CUBE, MindOptions())
    with pytest.raises(ValueError, match="environment of agents that think 'dining'"):
        domain_of(jaxcoop.make("dining"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trace": ("reward",)}, "traces are for policies; keep the records of a team that thinks with --log N"),
        ({"talk": MindOptions(goal="win")}, "goal is for language models"),
        ({"talk": MindOptions(latency="measured")}, "scripted planners answer at once"),
    ],
)
def test_a_cell_of_a_scripted_team_refuses_what_it_cannot_follow(changes, said):
    with pytest.raises(ValueError, match=said):
        Cell(CUBE, "plans", 3, **changes)


def test_a_team_too_small_for_its_structure_is_refused():
    with pytest.raises(ValueError, match="structure 'centralized' needs 2 or more"):
        Cell(jaxcoop.make("cube", agents=1), "plans", 3, talk=MindOptions(structure="centralized"))
