import contracts


class TestReference(contracts.LS2TContract):
    backend = "reference"
