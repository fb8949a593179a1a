from estimators.imputers.imputer_contract import ImputerContract
from seq2tens.estimators import GPVAEImputer, HIVAEImputer, VAEImputer

SMALL = {"latent": 3, "encoder_sizes": (8,), "decoder_sizes": (8,), "epochs": 3, "batch_size": 8}


class TestGPVAE(ImputerContract):
    def make(self, **changes):
        return GPVAEImputer(**{**SMALL, "encoder": "bls2t", "random_state": 0, "device": "cpu", **changes})


class TestGPVAEWithConvolutions(ImputerContract):
    def make(self, **changes):
        return GPVAEImputer(**{**SMALL, "encoder": "conv", "random_state": 0, "device": "cpu", **changes})

    test_conventions_of_aeon = None  # of the class, which was checked above


class TestHIVAE(ImputerContract):
    def make(self, **changes):
        return HIVAEImputer(**{**SMALL, "random_state": 0, "device": "cpu", **changes})


class TestVAE(ImputerContract):
    def make(self, **changes):
        return VAEImputer(**{**SMALL, "random_state": 0, "device": "cpu", **changes})
