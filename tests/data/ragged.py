"""Random collections of sequences for the tests of `data`."""

import numpy as np
from hypothesis import strategies as st

from seq2tens.data import Sequences

FIELDS = ("values", "offsets", "times", "static")


@st.composite
def collections(draw, min_length=0, min_size=0, extras=True, equal=False):
    """Sequences with missing entries, perhaps empty ones, perhaps with times and static features."""
    longest = draw(st.integers(min_length, 6))
    length = st.just(longest) if equal else st.integers(min_length, longest)
    lengths = draw(st.lists(length, min_size=min_size, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = rng.normal(size=(sum(lengths), draw(st.integers(1, 3))))
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    times = static = None
    if extras and draw(st.booleans()):
        times = np.concatenate([np.zeros(0), *(np.sort(rng.normal(size=n)) for n in lengths)])
    if extras and draw(st.booleans()):
        static = rng.normal(size=(len(lengths), 2))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return Sequences(values.astype(dtype), np.cumsum([0, *lengths]), times, static)


def assert_same(found, expected, fields=FIELDS):
    """Equal to the last bit, dtypes included; NaN equals NaN."""
    for name in fields:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one, other, err_msg=name)
