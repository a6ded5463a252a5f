"""Episodes of a run as animations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxcoop.agents.registry import make_policy
from jaxcoop.core import make, rollout
from jaxcoop.envs.dining.render import frame
from jaxcoop.report.films import check_films, film_episodes, states_of
from jaxcoop.runs.cell import Cell

CELL = Cell(make("dining", max_timesteps=12), "random_legal", episodes=3, seed=4)


def test_the_film_of_an_episode_shows_the_episode_of_the_run():
    played = rollout(CELL.env, make_policy(CELL.agent, CELL.env), jax.random.key(4), jnp.arange(3))
    for episode in range(3):
        states = list(states_of(CELL, episode))
        assert len(states) == int(played.length[episode]) + 1
        np.testing.assert_array_equal(states[-1].table.meals, played.outcome.meals[episode])
        assert (states[0].table.meals == 0).all()


def test_an_animation_and_a_picture_of_its_end_are_written_for_each_episode(tmp_path):
    paths = list(film_episodes(CELL, tmp_path, 2))
    assert [p.name for p in paths] == ["episode-0.gif", "episode-1.gif"]
    for path in paths:
        with Image.open(path) as film, Image.open(path.with_suffix(".png")) as end:
            assert film.size == end.size
            assert film.n_frames > 1


def test_the_picture_of_an_episode_shows_its_last_state(tmp_path):
    (path,) = film_episodes(CELL, tmp_path, 1)
    first, *_, last = (frame(CELL.env, state) for state in states_of(CELL, 0))
    assert (first != last).any()
    with Image.open(path.with_suffix(".png")) as end:
        np.testing.assert_array_equal(np.asarray(end.convert("RGB")), last)


@pytest.mark.parametrize("count", [-1, 4])
def test_more_films_than_episodes_are_refused(count):
    with pytest.raises(ValueError, match=rf"gif {count}: must be from 0 to 3"):
        check_films(CELL, count)


def test_an_environment_without_pictures_is_refused():
    with pytest.raises(ValueError, match="null has no pictures"):
        check_films(Cell(make("null"), "random_any", episodes=1), 1)
