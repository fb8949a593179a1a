"""A network of the published size on real stays of the PhysioNet 2012 challenge."""

import numpy as np
import pytest

from explaining.cases import randomized
from seq2tens import nn
from seq2tens.data import Preparation, physionet2012
from seq2tens.explaining import explain


@pytest.mark.data("physionet2012")
def test_contributions_of_37_variables_add_up():
    part = physionet2012.load().validation
    preparation = Preparation(since_observed=True).fit(part.sequences[:200])
    features = nn.FCNLS2T(preparation.n_outputs, fcn_width=64, width=256, depth=3, order=3)
    network = randomized(features, n_classes=2, scale=0.05)
    names = [*physionet2012.CHANNELS, *physionet2012.STATIC]
    longest = int(part.sequences.lengths[:200].argmax())
    for row in (0, longest):
        found = explain(network, part.sequences[row], names=names, preparation=preparation)
        assert found.names[37] == "time"
        assert len(found.names) == 37 + 1 + len(physionet2012.STATIC)
        assert found.times[-1] <= 48
        difference = found.output - found.baseline_output
        size = np.abs(found.variables).sum()
        assert found.variables.sum() == pytest.approx(difference, rel=1e-10, abs=1e-13 * size)
        size = np.abs(found.pairs).sum()
        assert found.singles.sum() + found.pairs.sum() == pytest.approx(
            difference, rel=1e-10, abs=1e-13 * size
        )
