from estimators.imputers import test_autoencoder, test_interpolation, test_ls2t
from estimators.imputers.imputer_contract import ImputerContract
from seq2tens.estimators import IMPUTERS

MODULES = (test_autoencoder, test_interpolation, test_ls2t)


def test_every_imputer_of_the_shell_is_tested():
    classes = [cls for module in MODULES for name, cls in vars(module).items() if name.startswith("Test")]
    assert all(issubclass(cls, ImputerContract) for cls in classes)
    tested = {type(cls().make()) for cls in classes}
    own = {"ls2t", "gp-vae", "hi-vae", "vae", "mean", "forward", "linear"}
    assert {IMPUTERS[name] for name in own} == tested
