"""The imputation experiment on small data that is made up."""

import importlib.util
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from experiments.imputation.few_gaps import write_gaps
from seq2tens.data import forward_imputation, healing_mnist, mean_imputation, physionet2012, sprites
from seq2tens.experiments import run
from seq2tens.experiments.core.registry import find
from seq2tens.experiments.imputation import experiment as imputation
from seq2tens.experiments.imputation.data import load
from seq2tens.experiments.imputation.experiment import cells
from seq2tens.experiments.imputation.files import cell_files, read
from seq2tens.experiments.imputation.models import MODELS, SETTINGS, network
from seq2tens.experiments.imputation.table import TABLE, ImputationCell
from seq2tens.models.gpvae import HELD_OUT_METRICS, IncompleteSource, NegativeElbo
from seq2tens.training import Callback, Checkpoints, fit
from seq2tens.training.rng import seeded_initialization


def cell(dataset="hmnist", model="gp-vae-bls2t", seed=0, epochs=1, limit=0):
    return ImputationCell("imputation", dataset, model, seed, epochs, limit)


def rule(dataset, model):
    return cell(dataset, model, epochs=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_gaps(tmp_path_factory.mktemp("gaps"))


class TestCells:
    def test_keys_never_change(self):
        """Tables on file depend on them."""
        assert cell(epochs=20).key == "f2a0d8cf272d"
        assert cell(model="gp-vae", epochs=20).key == "df914f33ce11"
        assert cell(model="gp-vae", epochs=1, limit=256).key == "4030fd391985"
        assert rule("physionet", "forward").key == "01e76f95e1c5"

    def test_rows_of_another_protocol_do_not_pass_for_these(self):
        """Keys of cells as they were before the protocol was one of their fields."""
        before = {"e716acddad5e", "b57031833b86", "cf113bd1684e", "bc66f49eebe2", "549044bf7c7f"}
        assert not before & {one.key for one in cells()}
        with pytest.raises(ValueError, match="`protocol` must be one of 'published', got ''"):
            ImputationCell.from_dict(cell().to_dict() | {"protocol": ""})

    def test_columns(self):
        """The report and the tables on file depend on them."""
        assert ",".join(TABLE.columns) == (
            "key,dataset,model,seed,epoch_limit,limit,nll,mse,mse_probability,auroc,coverage,validation_nll,"
            "validation_mse,epochs,parameters,prepare_seconds,fit_seconds,epoch_seconds,predict_seconds,"
            "peak_mib,threads,n_train,n_test,versions,commit,finished,protocol,auroc_orders"
        )
        assert find("imputation").table is TABLE

    def test_rules_are_run_once_and_networks_from_every_seed(self):
        found = cells(["hmnist", "physionet"], ["mean", "gp-vae"], seeds=2)
        assert [str(one) for one in found] == [
            "hmnist mean",
            "hmnist gp-vae (seed 0)",
            "physionet mean",
            "physionet gp-vae (seed 0)",
            "hmnist gp-vae (seed 1)",
            "physionet gp-vae (seed 1)",
        ]
        assert {one.epoch_limit for one in found if one.model == "gp-vae"} == {20, 40}
        assert [len(cells([name])) for name in SETTINGS] == [2 + 5 * 4, 2 + 5 * 4, 5 * 2, 2 + 5 * 5]
        assert [one.model for one in cells(["physionet"], seeds=1)] == list(MODELS)[:7]

    def test_shortened_runs_are_other_cells(self):
        (whole,), (short,) = (
            cells(["hmnist"], ["vae"], seeds=1),
            cells(["hmnist"], ["vae"], seeds=1, epochs=3),
        )
        (few,) = cells(["hmnist"], ["vae"], seeds=1, limit=100)
        assert len({whole.key, short.key, few.key}) == 3
        assert (str(short), str(few)) == (
            "hmnist vae (seed 0, 3 epochs)",
            "hmnist vae (seed 0, 100 sequences)",
        )
        assert cells(["hmnist"], ["vae"], seeds=1, epochs=100) == [whole]  # never more than in the paper
        assert cells(["hmnist"], ["mean"], seeds=1, epochs=3, limit=5) == [rule("hmnist", "mean")]

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"dataset": "mnist"}, "`dataset` must be one of 'hmnist', 'sprites', .* got 'mnist'"),
            ({"model": "lstm"}, "`model` must be one of 'mean', .* got 'lstm'"),
            ({"epoch_limit": 0}, "`epoch_limit` must be at least 1, got 0"),
            ({"limit": -1}, "`limit` must be at least 0, got -1"),
            ({"model": "mean", "seed": 1}, "`seed` of mean, which is not trained, must be 0, got 1"),
        ],
    )
    def test_what_is_no_cell(self, change, sentence):
        with pytest.raises(ValueError, match=sentence):
            ImputationCell.from_dict(cell().to_dict() | change)

    @pytest.mark.parametrize("name", ["seeds", "epochs", "limit"])
    def test_numbers_are_positive(self, name):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
            cells(**{name: 0})


def train_by_hand(parts, wanted, **options):
    with seeded_initialization(wanted.seed):
        model = network(wanted.dataset, wanted.model)
    result = fit(
        model,
        NegativeElbo(),
        IncompleteSource(parts.train),
        recipe=SETTINGS[wanted.dataset].recipe(wanted.epoch_limit),
        seed=wanted.seed,
        validation=IncompleteSource(parts.test, scored=True),
        metrics=HELD_OUT_METRICS,
        progress="silent",
        **options,
    )
    return model, result


@pytest.mark.slow
def test_a_row_is_what_training_and_scoring_by_hand_give(data, tmp_path):
    wanted = cell(epochs=2)
    row = imputation.measure(wanted, 1, data=str(data), keep=str(tmp_path))
    parts = healing_mnist.load(data, validation=False)
    model, result = train_by_hand(parts, wanted)
    test = parts.test[:]
    values, observed, truth = (torch.from_numpy(a) for a in (test.values, test.observed, test.truth))
    hidden = torch.from_numpy(test.hidden)
    n_hidden = int(hidden.sum())
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        likelihood = model.log_likelihood(values, observed, truth, hidden, generator=generator)
        chance = model.reconstruct(values, observed)
    assert row.nll == pytest.approx(-float(likelihood.sum()) / n_hidden, abs=1e-5)
    assert row.mse == pytest.approx(float((chance.round() - truth)[hidden].square().mean()), abs=1e-5)
    assert row.mse_probability == pytest.approx(float((chance - truth)[hidden].square().mean()), abs=1e-5)
    filled = torch.where(observed, values, chance).round().flatten(1).numpy()
    assert row.auroc == pytest.approx(area(filled, test.labels), abs=1e-3)
    last = result.history[-1]
    assert row.validation_nll == round(last["validation_nll"], 6)
    assert row.validation_mse == round(last["validation_rounded_mse"], 6)
    assert (row.epochs, row.epoch_limit, row.limit, row.n_train, row.n_test) == (2, 2, 0, 24, 20)
    assert row.parameters == sum(p.numel() for p in model.parameters())
    curve = read(cell_files(tmp_path, wanted.key).curve)
    assert curve["epoch"] == [1, 2]
    assert curve["train_loss"] == [epoch["train_loss"] for epoch in result.history]
    assert curve["validation_mse"] == [epoch["validation_rounded_mse"] for epoch in result.history]
    points = read(cell_files(tmp_path, wanted.key).calibration)
    assert sum(points["entries"]) == n_hidden
    share = np.average(points["found"], weights=points["entries"])
    assert share == pytest.approx(float(truth[hidden].mean()), abs=1e-5)


def area(features, labels):
    half = len(labels) // 2
    classifier = LogisticRegression(tol=1e-5, max_iter=3000).fit(features[:half], labels[:half])
    chances = classifier.predict_proba(features[half:])
    return np.mean(
        [roc_auc_score(labels[half:] == c, chances[:, i]) for i, c in enumerate(classifier.classes_)]
    )


@pytest.mark.slow
def test_pictures_are_of_the_same_sequences_for_every_model(data, tmp_path):
    pictures = {}
    for wanted in (rule("hmnist", "mean"), rule("hmnist", "forward")):
        imputation.measure(wanted, 1, data=str(data), keep=str(tmp_path))
        path = cell_files(tmp_path, wanted.key).picture
        assert path.stat().st_size < 150_000
        pictures[wanted.model] = imread(path)[..., :3]
        assert not cell_files(tmp_path, wanted.key).curve.exists()
    one, other = pictures.values()
    assert one.shape == (9 * 30, 10 * 30, 3)
    lines = [(one[i * 30 : i * 30 + 30], other[i * 30 : i * 30 + 30]) for i in range(9)]
    assert [np.array_equal(*pair) for pair in lines] == [True, False, True] * 3
    truth = healing_mnist.load(data).test[[0, 6, 12]].truth.reshape(3, 10, 28, 28)
    assert np.array_equal(one[60:88, 30:58, 0], truth[0, 1])
    assert np.array_equal(one[240:268, :28, 2], truth[2, 0])


@pytest.mark.parametrize("dataset", ["hmnist", pytest.param("sprites", marks=pytest.mark.slow)])
def test_rules_are_those_of_the_library(dataset, data):
    parts = healing_mnist.load(data, validation=False) if dataset == "hmnist" else sprites.load(data)
    train, test = (part[range(len(part))] for part in (parts.train, parts.test))
    expected = {
        "mean": mean_imputation(test.with_nan, over="sequence"),
        "data-mean": mean_imputation(test.with_nan, train.with_nan),
        "forward": forward_imputation(test.with_nan),
    }
    for name, filled in expected.items():
        row = imputation.measure(rule(dataset, name), 1, data=str(data))
        filled = filled.round() if dataset == "hmnist" else filled
        error = np.square(filled - test.truth)[test.hidden].mean(dtype=np.float64)
        assert row.mse == pytest.approx(error, abs=2e-6)
        assert row.nll is row.coverage is row.epochs is row.parameters is row.mse_probability is None
        assert (row.auroc is None) == (dataset == "sprites")


def test_stays_are_standardised_and_judged_by_who_died(data):
    parts = load("physionet", str(data))
    raw = physionet2012.grid(physionet2012.load_set("a", data, pick="last").stays, pick="last")
    values = parts.train.truth
    for name in ("HR", "Temp"):
        channel = physionet2012.GRID_CHANNELS.index(name)
        seen = values[..., channel][raw.observed[..., channel]]
        assert (seen.mean(), seen.std()) == pytest.approx((0, 1), abs=1e-5)
        order = np.argsort(raw.truth[0, :, channel], kind="stable")
        assert np.array_equal(order, np.argsort(values[0, :, channel], kind="stable"))
    row = imputation.measure(rule("physionet", "mean"), 1, data=str(data))
    filled = mean_imputation(parts.test.with_nan, over="sequence")
    areas = [area_in_order(filled.reshape(24, -1), parts.labels, order) for order in range(20)]
    assert [float(text) for text in row.auroc_orders.split()] == pytest.approx(areas, abs=1e-6)
    assert row.auroc == pytest.approx(np.mean(areas), abs=1e-6)
    assert row.mse == pytest.approx(np.square(filled - values)[parts.test.hidden].mean(), rel=1e-5)
    assert row.nll is row.coverage is None


def area_in_order(features, labels, order):
    rows = np.random.default_rng(order).permutation(len(labels))
    first, second = np.array_split(rows, 2)
    classifier = LogisticRegression(solver="liblinear", C=1, tol=1e-10, max_iter=10_000)
    classifier.fit(features[first], labels[first])
    return roc_auc_score(labels[second], classifier.decision_function(features[second]))


def test_holes_are_some_of_what_was_observed_in_each_stay(data):
    raw = physionet2012.grid(physionet2012.load_set("a", data, pick="last").stays, pick="last")
    stays = load("physionet", str(data)).train
    assert np.array_equal(stays.observed | stays.hidden, raw.observed)
    drawn, holes = raw.observed.sum((1, 2)) // 10, stays.hidden.sum((1, 2))
    assert (holes <= drawn).all()
    assert (holes < drawn).any()  # some were drawn twice
    assert holes.sum() > 0.8 * drawn.sum()


@pytest.mark.data("physionet2012")
def test_real_stays_miss_as_much_as_published():
    if not os.environ.get("SEQ2TENS_DATA"):
        pytest.skip("SEQ2TENS_DATA is not set")
    stays = load("physionet", None).train
    assert len(stays) == 3997
    assert 1 - stays.observed.mean() == pytest.approx(0.8235, abs=5e-5)


class MeanOfTheSequence:
    """In place of BRITS, which needs another package."""

    def __init__(self, **options):
        self.options, self.weights_ = options, {"one": torch.zeros(2, 3)}

    def fit(self, X):
        assert X.shape[1:] == (35, 48)
        assert np.isnan(X).any()
        self.n_trained = len(X)
        return self

    def transform(self, X):
        return mean_imputation(X.transpose(0, 2, 1), over="sequence").transpose(0, 2, 1)


def test_brits_is_an_estimator_among_the_models(data, monkeypatch):
    made = []
    monkeypatch.setattr(
        imputation, "BRITSImputer", lambda **options: made.append(MeanOfTheSequence(**options)) or made[0]
    )
    row = imputation.measure(cell("physionet", "brits", seed=3, epochs=2, limit=20), 1, data=str(data))
    assert made[0].n_trained == row.n_train == 20
    options = {"width": 108, "epochs": 2, "patience": None, "batch_size": 64, "random_state": 3}
    assert made[0].options == options | {"device": "cpu"}
    same = imputation.measure(rule("physionet", "mean"), 1, data=str(data))
    assert (row.mse, row.auroc_orders) == (same.mse, same.auroc_orders)
    assert (row.epochs, row.parameters, row.nll) == (2, 6, None)


def test_our_imputer_is_among_the_models(data):
    row = imputation.measure(cell("physionet", "ls2t", epochs=1, limit=20), 1, data=str(data))
    assert (row.epochs, row.n_train) == (1, 20)
    assert row.parameters > 0
    assert 0 < row.mse < 2
    assert 0 < row.auroc < 1


def test_brits_without_pypots_says_how_to_install_it(data):
    if importlib.util.find_spec("pypots"):
        pytest.skip("PyPOTS is installed")
    with pytest.raises(ImportError, match=r"needs PyPOTS: pip install 'seq2tens\[baselines\]'"):
        imputation.measure(cell("physionet", "brits"), 1, data=str(data))


@pytest.mark.parametrize("dataset", SETTINGS)
@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.network is not None])
def test_networks_are_those_of_the_paper_or_ours(dataset, name):
    model = network(dataset, name)
    encoder, settings = model.encoder, SETTINGS[dataset]
    assert (encoder.convolution is None) == (name in ("vae", "hi-vae"))
    assert (encoder.covariance == "deviations") == (name in ("vae", "hi-vae"))
    if encoder.image is not None:
        assert encoder.image.last_relu == (name in SETTINGS["sprites"].models)
    if name in ("gp-vae-bls2t", "gp-vae-bls2t-no-relu"):
        width = settings.network["encoder_sizes"][0]
        assert encoder.block.out_features == 4 * width
        assert tuple(encoder.block.norm.weight.shape) == (settings.steps, 1, width)
        assert encoder.block.norm.eps == 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "model"),
    [("hmnist", "vae"), ("hmnist", "hi-vae"), ("physionet", "gp-vae-bls2t"), ("sprites", "gp-vae-bls2t")],
)
def test_networks_are_trained_on_every_data_set(dataset, model, data, tmp_path):
    wanted = cell(dataset, model, limit=4)
    row = imputation.measure(wanted, 1, data=str(data), keep=str(tmp_path))
    assert (row.epochs, row.limit, row.n_train) == (1, 4, 4)
    files = cell_files(tmp_path, wanted.key)
    assert files.curve.exists()
    assert files.calibration.exists()
    assert files.picture.exists() == (dataset != "physionet")
    assert (row.validation_nll is None) == (dataset != "hmnist")
    if dataset == "sprites":
        assert row.nll >= 0.5 * np.log(2 * np.pi)  # a variance of 1
        assert row.coverage > 0.99
        assert files.picture.stat().st_size < 150_000


@pytest.mark.slow
def test_cells_run_in_processes_and_go_on_where_they_were(data, tmp_path):
    """Half of the training is done by hand, as by a run that was killed."""
    table, scratch, wanted = tmp_path / "i.csv", tmp_path / "scratch", cell(model="gp-vae", epochs=3)
    folder = scratch / wanted.key

    class Enough(Exception):
        pass

    class Stop(Callback):
        def epoch(self, row, model):
            if row["epoch"] == 3:
                raise Enough

    with pytest.raises(Enough):
        train_by_hand(
            healing_mnist.load(data, validation=False),
            wanted,
            checkpoint=Checkpoints(folder, seconds=0),
            callbacks=[Stop()],
        )
    assert len(list(folder.iterdir())) == 2
    summary = run(
        [wanted], table, threads=1, data=data, scratch=scratch, progress="silent", keep=str(tmp_path)
    )
    assert summary.done == [wanted], summary.failed
    (row,) = TABLE.read(table)
    with threadpool_limits(1):  # the logistic regression is rounded otherwise on more threads
        direct = imputation.measure(wanted, 1, data=str(data))
    other = dict.fromkeys(
        ("prepare_seconds", "fit_seconds", "epoch_seconds", "predict_seconds", "peak_mib"), 0.0
    )
    other |= {"finished": "", "commit": ""}
    assert replace(row, **other) == replace(direct, **other)
    assert not folder.exists()
    assert read(cell_files(tmp_path, wanted.key).curve)["epoch"] == [1, 2, 3]
