"""The mortality experiment on a few real stays."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.mortality.few_stays import few_stays
from seq2tens.data import Labelled, Sequences, physionet2012
from seq2tens.experiments import run
from seq2tens.experiments.core.registry import find
from seq2tens.experiments.mortality import experiment as mortality
from seq2tens.experiments.mortality.data import AsMeasured, Complete
from seq2tens.experiments.mortality.models import MODELS, TRAINING, written
from seq2tens.experiments.mortality.table import TABLE, MortalityCell
from seq2tens.training import Checkpoints, CSVLog, fit
from seq2tens.training.rng import initial

SMALL = {"width": 4, "dropout": 0.4, "spatial_dropout": 0.3, "batch_size": 8, "learning_rate": 1e-2}
data_only = pytest.mark.data("physionet2012/split.npz")


def cell(model="fcn", settings=SMALL, seed=0, purpose="final", epochs=2):
    return MortalityCell("mortality", model, written(settings), seed, purpose, epochs)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return few_stays(tmp_path_factory.mktemp("stays"))


def test_keys_never_change():
    """Tables on file depend on them."""
    assert MortalityCell("mortality", "fcn-ls2t", "published", 0).key == "1721b8132b30"
    assert cell().key == "c857ca4a5724"


def test_columns():
    """The report and the tables on file depend on them."""
    assert ",".join(TABLE.columns) == (
        "key,model,settings,seed,purpose,epoch_limit,validation_accuracy,validation_auprc,validation_auroc,"
        "test_accuracy,test_auprc,test_auroc,epochs,best_epoch,stopped,parameters,prepare_seconds,fit_seconds,"
        "epoch_seconds,predict_seconds,peak_mib,threads,n_train,n_validation,n_test,versions,commit,finished"
    )
    assert find("mortality").table is TABLE


def test_published_settings_are_the_papers():
    assert MODELS["fcn-ls2t"].resolve("published") == {
        "fcn_width": 64,
        "width": 256,
        "order": 3,
        "depth": 3,
        "weights": "recursive",
        "dropout": 0.3,
        "spatial_dropout": 0.4,
        "batch_size": 32,
        "learning_rate": 1e-4,
    }
    assert MODELS["fcn"].resolve("published")["batch_size"] == 4


@pytest.mark.parametrize("name", MODELS)
def test_settings_without_a_search_lie_in_the_space_that_is_searched(name):
    model = MODELS[name]
    assert model.settings.keys() == model.space.keys()
    for key, value in model.settings.items():
        assert value in model.space[key], key


def test_cells_are_named_for_people():
    assert str(MortalityCell("mortality", "fcn", "published", 3)) == "fcn (seed 3, settings published)"
    text = str(cell(settings=SMALL, purpose="trial"))
    assert text == f"fcn (seed 0, trial {written(SMALL)}, at most 2 epochs)"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "lstm"}, "`model` must be one of 'fcn-ls2t', .* got 'lstm'"),
        (
            {"settings": "default"},
            "`settings` of fcn must be 'published' or written out as JSON, got 'default'",
        ),
        ({"settings": '{"width":4}'}, r"`settings` must have the keys \['batch_size', .* got \['width'\]"),
        ({"settings": "{width"}, r"`settings` must be JSON, got .\{width."),
        ({"purpose": "fun"}, "`purpose` must be one of 'final', 'trial', got 'fun'"),
        ({"epoch_limit": 0}, "`epoch_limit` must be at least 1, got 0"),
    ],
)
def test_what_is_no_cell(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        MortalityCell.from_dict(cell().to_dict() | change)


class TestOnFewStays:
    pytestmark = data_only

    def test_a_row_is_what_training_and_testing_by_hand_give(self, data, tmp_path):
        row = mortality.measure(cell(), 1, data=str(data))
        stays = physionet2012.load(data)
        inputs = Complete(stays)
        with initial(0):
            network = MODELS["fcn"].make(
                in_features=119, **{k: v for k, v in SMALL.items() if k not in TRAINING}
            )
        result = fit(
            network,
            inputs.loss,
            inputs.source(stays.train),
            recipe=mortality.recipe(SMALL, 2),
            seed=0,
            validation=inputs.source(stays.validation),
            metrics=mortality.METRICS,
            progress="silent",
            callbacks=[CSVLog(tmp_path / "log.csv")],
        )
        chances = []
        for i in range(len(stays.test)):  # one by one: the order and the padding of batches do not matter
            values, lengths, *_ = inputs.source(stays.test).batch(torch.tensor([i]))
            with torch.no_grad():
                chances.append(float(network(values, lengths).double().softmax(1)[0, 1]))
        labels = stays.test.labels
        assert row.test_auprc == pytest.approx(average_precision_score(labels, chances), abs=1e-6)
        assert row.test_auroc == pytest.approx(roc_auc_score(labels, chances), abs=1e-6)
        assert row.test_accuracy == pytest.approx(np.mean((np.array(chances) > 0.5) == labels), abs=1e-6)
        assert row.validation_auprc == round(result.best["validation_auprc"], 6)
        assert row.validation_auprc == round(max(r["validation_auprc"] for r in result.history), 6)
        assert (row.epochs, row.epoch_limit, row.stopped) == (2, 2, "epochs")
        assert (row.n_train, row.n_validation, row.n_test) == (24, 24, 24)
        assert row.parameters == sum(p.numel() for p in network.parameters())

    def test_a_trial_never_sees_the_test_set(self, data, tmp_path):
        split = data / "physionet2012" / "split.npz"
        with np.load(split) as file:
            parts = dict(file)
        whole = mortality.measure(cell(purpose="trial"), 1, data=str(data))
        assert whole.test_auprc is whole.test_auroc is whole.test_accuracy is whole.n_test is None
        other = few_stays(tmp_path)
        np.savez(other / "physionet2012" / "split.npz", **(parts | {"test": parts["test"][:2]}))
        without = mortality.measure(cell(purpose="trial"), 1, data=str(other))
        for name in ("validation_accuracy", "validation_auprc", "validation_auroc"):
            assert getattr(without, name) == getattr(whole, name)

    @pytest.mark.parametrize("kind", [Complete, AsMeasured])
    def test_nothing_of_other_stays_reaches_training(self, kind, data):
        """Other test stays leave the weights as they are; other validation stays what is trained on."""
        stays = physionet2012.load(data)
        values = stays.validation.sequences
        loud = Labelled(
            Sequences(1e3 * values.values, values.offsets, values.times, values.static), labels=None
        )
        altered = replace(stays, test=loud)
        name, settings = ("fcn", SMALL) if kind is Complete else ("gru-simple", {**SMALL, "width": 4})
        wanted = cell(name, {key: settings[key] for key in MODELS[name].space})
        weights = []
        for found in (stays, altered):
            inputs = kind(found)
            sources = inputs.source(found.train), inputs.source(found.validation)
            network, _ = mortality.train(wanted, inputs, *sources)
            weights.append(network.state_dict())
        assert weights[0].keys() == weights[1].keys()
        assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
        other = kind(replace(stays, validation=loud))
        assert other.source(stays.train).digest == kind(stays).source(stays.train).digest

    @pytest.mark.slow
    def test_cells_run_in_processes_and_go_on_where_they_were(self, data, tmp_path):
        """Half of the training is done by hand, as by a run that was killed."""
        table, scratch, wanted = tmp_path / "m.csv", tmp_path / "scratch", cell(epochs=4)
        stays = physionet2012.load(data)
        inputs = Complete(stays)
        train, validation = inputs.source(stays.train), inputs.source(stays.validation)
        folder = scratch / wanted.key

        class Enough(Exception):
            pass

        class Stop(CSVLog):
            def epoch(self, row, model):
                super().epoch(row, model)
                if row["epoch"] == 3:
                    raise Enough

        with initial(0):
            network = MODELS["fcn"].make(
                in_features=119, **{k: v for k, v in SMALL.items() if k not in TRAINING}
            )
        with pytest.raises(Enough):
            fit(
                network,
                inputs.loss,
                train,
                recipe=mortality.recipe(SMALL, 4),
                seed=0,
                validation=validation,
                metrics=mortality.METRICS,
                checkpoint=Checkpoints(folder, seconds=0),
                callbacks=[Stop(tmp_path / "log.csv")],
                progress="silent",
            )
        assert len(list(folder.iterdir())) == 2
        summary = run([wanted], table, threads=1, data=data, scratch=scratch, progress="silent")
        assert summary.done == [wanted], summary.failed
        (row,) = TABLE.read(table)
        direct = mortality.measure(wanted, 1, data=str(data))
        times = dict.fromkeys(("prepare_seconds", "fit_seconds", "epoch_seconds", "predict_seconds"), 0.0)
        other = {"peak_mib": 0.0, "finished": "", "commit": ""}
        assert replace(row, **times, **other) == replace(direct, **times, **other)
        assert not folder.exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not model.complete])
    def test_every_baseline_is_trained(self, name, data):
        """One epoch by the settings that are run without a search."""
        wanted = MortalityCell("mortality", name, "default", 0, "final", 1)
        row = mortality.measure(wanted, 1, data=str(data))
        assert row.epochs == row.best_epoch == 1
        assert 0 < row.test_auprc <= 1
        stays = physionet2012.load(data)
        inputs = AsMeasured(stays)
        sizes = {k: v for k, v in MODELS[name].settings.items() if k not in TRAINING}
        network = MODELS[name].make(**inputs.sizes, **sizes)
        assert row.parameters == sum(p.numel() for p in network.parameters())

    def test_what_is_learned_besides_counts_in_training_only(self, data):
        stays = physionet2012.load(data)
        inputs = AsMeasured(stays)
        network = MODELS["ip-nets"].make(**inputs.sizes, width=4)
        batch = inputs.source(stays.train).batch(torch.arange(4))
        with torch.no_grad():
            plain = inputs.loss(network.eval(), batch).mean
            network.auxiliary_weight = 1e3
            assert inputs.loss(network, batch).mean == plain
            assert inputs.loss(network.train(), batch).mean > plain + 10


def test_settings_are_written_alike():
    assert written({"b": 1, "a": 0.5}) == written({"a": 0.5, "b": 1}) == '{"a":0.5,"b":1}'
    assert json.loads(written(SMALL)) == SMALL
