"""Policies by name."""

import pytest

from jaxcoop.agents import registry
from jaxcoop.agents.random import RandomPolicy
from jaxcoop.agents.registry import PolicySpec, default_policy, list_policies, make_policy, register_policy
from jaxcoop.agents.scripted.dining import ChandyMisra
from jaxcoop.envs.dining import Dining

ENV = Dining(philosophers=7)


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})


def test_random_policies_play_every_environment():
    assert set(list_policies("no_such_room")) == {"random_any", "random_legal"}
    assert make_policy("random_legal", ENV) == RandomPolicy("legal")


def test_scripted_policies_belong_to_their_environment_and_fit_its_size():
    assert "chandy_misra_low" in list_policies("dining")
    assert make_policy("chandy_misra_low", ENV) == ChandyMisra(7, "low")


def test_every_policy_has_a_description_of_one_line():
    lines = list_policies("dining").values()
    assert all(line and "\n" not in line for line in lines)
    assert len(set(lines)) == len(lines)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"unknown policy of dining 'left_frist'.*did you mean 'left_first'"):
        make_policy("left_frist", ENV)


def test_others_can_add_a_policy_to_one_environment():
    register_policy(PolicySpec("mine", "does as I say", lambda env: RandomPolicy("any")), "dining")
    assert list_policies("dining")["mine"] == "does as I say"
    assert "mine" not in list_policies("other")
    assert make_policy("mine", ENV) == RandomPolicy("any")


def test_others_can_add_a_policy_to_every_environment():
    register_policy(PolicySpec("mine", "does as I say", lambda env: RandomPolicy("any")))
    assert "mine" in list_policies("dining")
    assert "mine" in list_policies("other")


def test_an_own_policy_of_the_environment_wins_over_one_for_all():
    register_policy(PolicySpec("left_first", "something else", lambda env: RandomPolicy("any")))
    assert list_policies("dining")["left_first"] != "something else"


@pytest.mark.parametrize("env_name", ["dining", None])
def test_a_name_can_be_taken_only_once(env_name):
    mine = PolicySpec("mine", "does as I say", lambda env: RandomPolicy("any"))
    register_policy(mine, env_name)
    register_policy(mine, env_name)
    with pytest.raises(ValueError, match="policy 'mine' is already registered; choose another name"):
        register_policy(PolicySpec("mine", "another", mine.factory), env_name)


def test_the_names_of_the_package_are_taken():
    with pytest.raises(ValueError, match="'left_first' is already registered"):
        register_policy(PolicySpec("left_first", "another", lambda env: RandomPolicy("any")), "dining")


@pytest.mark.parametrize(("env", "player"), [("cube", "greedy"), ("macrafter", "greedy"), ("dining", "random_any")])
def test_the_scripted_team_plays_where_nobody_is_named(env, player):
    assert default_policy(env) == player


def test_a_policy_of_others_can_be_the_one_that_plays():
    register_policy(PolicySpec("mine", "plays", RandomPolicy, default=True), "null")
    assert default_policy("null") == "mine"
