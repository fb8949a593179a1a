"""Old names work for one release, with a warning that tells the new ones."""

import pytest

from seq2tens import training
from seq2tens.models import gpvae


def test_stairs_are_a_step_decay():
    with pytest.warns(DeprecationWarning, match=r"`seq2tens.training.Stairs` is now .*StepDecay`"):
        assert training.Stairs is training.StepDecay


@pytest.mark.parametrize(
    "name", ["HELD_OUT_METRICS", "IncompleteBatch", "IncompleteSource", "NegativeElbo", "RaggedSource"]
)
def test_what_belongs_to_gp_vae_is_there(name):
    with pytest.warns(DeprecationWarning, match=f"is now `seq2tens.models.gpvae.{name}`"):
        assert getattr(training, name) is getattr(gpvae, name)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match=r"module 'seq2tens.training' has no attribute 'nothing'"):
        training.nothing  # noqa: B018
