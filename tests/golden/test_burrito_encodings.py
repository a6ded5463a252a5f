"""The three encodings of recorded states, against those that the original made of them."""

import jax
import numpy as np
import pytest
from burrito_states import arrays_of, state_of

from jaxcoop.envs.burrito.layouts import load
from jaxcoop.envs.burrito.observe import ENCODINGS, observe


def recorded_states(path):
    """(layout, arrays), one case for all states of a file."""
    data = np.load(path)
    yield str(data["layout"]), {name: data[name] for name in data.files}


@pytest.mark.recorded("burrito", "*_encodings.npz", recorded_states)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_states_are_encoded_like_those_of_the_original(case, encoding):
    kitchen = load(str(case["layout"]))
    state = state_of(kitchen, case)
    seen = jax.jit(jax.vmap(lambda state: observe(kitchen, encoding, state)))(state)
    recorded = case[encoding]
    if encoding == "nopos":  # one vector for all players
        recorded = np.broadcast_to(recorded[:, None], (*case["held"].shape, recorded.shape[-1]))
    np.testing.assert_array_equal(seen.vector if encoding == "nopos" else seen.grid, recorded)
    np.testing.assert_array_equal(seen.orders, np.broadcast_to(case["order_list"][:, None], seen.orders.shape))


@pytest.mark.recorded("burrito", "*_encodings.npz", recorded_states)
def test_states_keep_all_that_is_recorded(case):
    kitchen = load(str(case["layout"]))
    for name, array in arrays_of(kitchen, state_of(kitchen, case)).items():
        np.testing.assert_array_equal(array, case[name], err_msg=name)
        assert array.dtype == case[name].dtype, name
