"""Finding environments by name."""

from types import MappingProxyType, SimpleNamespace

import core_toys as toys
import pytest

from jaxcoop.core import EnvSpec, list_envs, make, register, registry

WALK = EnvSpec(
    name="walk",
    summary="a toy",
    factory=toys.Walk,
    presets=MappingProxyType({"long": MappingProxyType({"limit": 50, "early": False})}),
)


@pytest.fixture(autouse=True)
def restored_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


def test_an_installed_package_offers_its_environments_by_entry_point(monkeypatch):
    point = SimpleNamespace(name="walk", load=lambda: SimpleNamespace(SPEC=WALK))
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "jaxcoop.envs" else [])
    assert list_envs()["walk"] is WALK
    assert make("walk") == toys.Walk()


def test_a_program_can_register_an_environment_at_run_time():
    register(WALK)
    assert make("walk", limit=7) == toys.Walk(limit=7)
    assert "walk" in list_envs()


def test_registering_the_same_environment_again_is_harmless():
    register(WALK)
    register(WALK)


def test_a_taken_name_is_refused():
    register(WALK)
    with pytest.raises(ValueError, match="'walk' is already registered; choose another name"):
        register(EnvSpec(name="walk", summary="another", factory=toys.Fixed))


def test_options_override_the_preset():
    register(WALK)
    assert make("walk", "long") == toys.Walk(limit=50, early=False)
    assert make("walk", "long", limit=9) == toys.Walk(limit=9, early=False)


def test_an_unknown_environment_is_named_with_the_known_ones_and_the_nearest():
    with pytest.raises(ValueError, match=r"unknown environment 'dinning'; allowed: .*null.*did you mean 'dining'"):
        make("dinning")


def test_an_unknown_preset_is_named_with_the_known_ones():
    register(WALK)
    with pytest.raises(ValueError, match="unknown preset of walk 'lung'; allowed: long; did you mean 'long'"):
        make("walk", "lung")


def test_an_unknown_option_is_named_with_the_known_ones():
    register(WALK)
    with pytest.raises(ValueError, match="unknown option of walk 'limits'; allowed: agents, early, how, limit"):
        make("walk", limits=3)


def test_a_value_out_of_range_is_refused_when_the_environment_is_made():
    with pytest.raises(ValueError, match="agents 0: must be a whole number from 1 to 1,000,000"):
        make("null", agents=0)


def test_the_registry_lists_names_in_order():
    assert list(list_envs()) == sorted(list_envs())
