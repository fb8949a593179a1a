"""The mortality experiment on a few real stays."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments.mortality.few_stays import few_stays
from experiments.mortality.mortality_rows import row as made_up_row
from seq2tens.data import Labelled, Sequences, physionet2012
from seq2tens.experiments import run
from seq2tens.experiments.core.registry import find
from seq2tens.experiments.mortality import experiment as mortality
from seq2tens.experiments.mortality.data import AsMeasured, Complete, ZerosInFront
from seq2tens.experiments.mortality.models import MODELS, LogUniform, written
from seq2tens.experiments.mortality.recipes import MASKED, PAPER, RECIPES
from seq2tens.experiments.mortality.table import TABLE, MortalityCell
from seq2tens.training import Checkpoints, CSVLog, fit
from seq2tens.training.rng import seeded_initialization

SMALL = {"width": 4, "dropout": 0.4, "spatial_dropout": 0.3, "batch_size": 8, "learning_rate": 1e-2}
data_only = pytest.mark.data("physionet2012/split.npz")


def cell(model="fcn", settings=SMALL, seed=0, purpose="final", epochs=2, recipe=MASKED, split=0):
    return MortalityCell("mortality", model, written(settings), seed, purpose, epochs, recipe, split)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return few_stays(tmp_path_factory.mktemp("stays"))


def test_keys_never_change():
    """Tables on file depend on them."""
    assert MortalityCell("mortality", "fcn-ls2t", "published", 0).key == "1721b8132b30"
    assert cell().key == "c857ca4a5724"
    assert len({cell().key, cell(recipe=PAPER).key, cell(split=1).key, cell(split=2).key}) == 4


OLD = """\
key,model,settings,seed,purpose,epoch_limit,validation_accuracy,validation_auprc,validation_auroc,test_accuracy,\
test_auprc,test_auroc,epochs,best_epoch,stopped,parameters,prepare_seconds,fit_seconds,epoch_seconds,\
predict_seconds,peak_mib,threads,n_train,n_validation,n_test,versions,commit,finished
1721b8132b30,fcn-ls2t,published,0,final,200,0.814815,0.585175,0.887198,0.828333,0.558718,0.873846,177,127,\
patience,1420610,7.859,9858.831,36.155,6.852,3155.7,1,7671,1917,2400,torch 2,ce409f8,2026-11-16T10:21:02+00:00
"""


def test_rows_from_before_the_published_recipe_keep_their_meaning(tmp_path):
    """A file without the later columns is read, and gets them with the next row."""
    table, wanted = tmp_path / "m.csv", MortalityCell("mortality", "fcn-ls2t", "published", 0, recipe=PAPER)
    table.write_text(OLD)
    (first,) = TABLE.read(table)
    assert (first.recipe, first.split, first.test_auprc) == (MASKED, 0, 0.558718)
    assert first.threshold is first.test_accuracy_at_threshold is None
    assert wanted.key not in TABLE.finished(table)
    assert TABLE.append(table, made_up_row(wanted))
    assert TABLE.read(table) == [first, made_up_row(wanted)]


def test_columns():
    """The report and the tables on file depend on them."""
    assert ",".join(TABLE.columns) == (
        "key,model,settings,seed,purpose,epoch_limit,recipe,split,validation_accuracy,validation_auprc,"
        "validation_auroc,test_accuracy,test_auprc,test_auroc,threshold,test_accuracy_at_threshold,epochs,"
        "best_epoch,stopped,parameters,prepare_seconds,fit_seconds,"
        "epoch_seconds,predict_seconds,peak_mib,threads,n_train,n_validation,n_test,versions,commit,finished"
    )
    assert find("mortality").table is TABLE


def test_published_settings_are_the_papers():
    papers = {
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
    assert MODELS["fcn-ls2t"].resolve(MASKED, "published") == papers
    published = MODELS["fcn-ls2t"].resolve(PAPER, "published")
    power = published.pop("normalize")
    assert published == papers
    assert power == pytest.approx(1 / (1 + math.exp(-power)), abs=1e-8)  # their fixed point
    assert MODELS["fcn"].resolve(PAPER, "published") == MODELS["fcn"].resolve(MASKED, "published")
    assert MODELS["fcn"].resolve(PAPER, "published")["batch_size"] == 4


@pytest.mark.parametrize("name", MODELS)
def test_settings_without_a_search_lie_in_the_space_that_is_searched(name):
    for setup in MODELS[name].setups.values():
        for key, value in setup.settings.items():
            domain = setup.space[key]
            inside = domain.low <= value <= domain.high if isinstance(domain, LogUniform) else value in domain
            assert inside, key


def test_cells_are_named_for_people():
    named = MortalityCell("mortality", "fcn", "published", 3, recipe=PAPER, split=2)
    assert str(named) == "fcn (seed 3, settings published, paper, split 2)"
    text = str(cell(settings=SMALL, purpose="trial"))
    assert text == f"fcn (seed 0, trial {written(SMALL)}, paper-masked, at most 2 epochs)"


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
        ({"recipe": "fast"}, "`recipe` must be one of 'paper', 'paper-masked', got 'fast'"),
        ({"split": 6}, "`split` must be one of 0, 1, 2, 3, 4, 5, got 6"),
    ],
)
def test_what_is_no_cell(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        MortalityCell.from_dict(cell().to_dict() | change)


class TestOnFewStays:
    pytestmark = data_only

    @pytest.mark.parametrize("recipe", [MASKED, PAPER])
    def test_a_row_is_what_training_and_testing_by_hand_give(self, recipe, data, tmp_path):
        row = mortality.measure(cell(recipe=recipe), 1, data=str(data))
        stays, setup = physionet2012.load(data), MODELS["fcn"].setups[recipe]
        inputs = setup.inputs(stays)
        assert inputs.sizes == {"in_features": 119}
        with seeded_initialization(0):
            network = setup.network(inputs, SMALL)
        result = fit(
            network,
            inputs.loss,
            inputs.source(stays.train),
            recipe=setup.training(SMALL, 2),
            seed=0,
            validation=inputs.source(stays.validation),
            metrics=mortality.METRICS,
            progress="silent",
            callbacks=[CSVLog(tmp_path / "log.csv")],
        )

        def chances_of(part):
            chances = []
            for i in range(len(part)):  # one by one: the order and the padding of batches do not matter
                values, lengths, *_ = inputs.source(part).batch(torch.tensor([i]))
                with torch.no_grad():
                    logits = network(values, lengths).double()[0]
                chances.append(float((logits[-1] - (logits[0] if len(logits) == 2 else 0)).sigmoid()))
            return np.array(chances)

        chances, labels = chances_of(stays.test), stays.test.labels
        assert row.test_auprc == pytest.approx(average_precision_score(labels, chances), abs=1e-6)
        assert row.test_auroc == pytest.approx(roc_auc_score(labels, chances), abs=1e-6)
        assert row.test_accuracy == pytest.approx(np.mean((chances > 0.5) == labels), abs=1e-6)
        at_threshold = np.mean((chances >= row.threshold) == labels)
        assert row.test_accuracy_at_threshold == pytest.approx(at_threshold, abs=1e-6)
        others = chances_of(stays.validation)
        best = max(np.mean((others >= t) == stays.validation.labels) for t in [*others, 1.1])
        assert np.mean((others >= row.threshold) == stays.validation.labels) == best
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

    def test_published_inputs_are_those_of_the_authors(self, data):
        """Entry by entry as the authors' code has it: padding in front, no mask, all standardised alike."""
        stays = physionet2012.load(data)
        inputs, channels = ZerosInFront(stays), []
        mean = np.nanmean(stays.train.sequences.values, axis=0, dtype=np.float64)
        for part in (stays.train, stays.validation):
            sequences, found = part.sequences, []
            for i, values in enumerate(sequences):
                times = sequences.times[sequences.offsets[i] : sequences.offsets[i + 1]]
                filled, last = np.array(values, dtype=np.float64), np.empty(values.shape)
                for step, channel in np.ndindex(values.shape):
                    seen, first = not np.isnan(values[step, channel]), step == 0
                    last[step, channel] = times[step] if seen or first else last[step - 1, channel]
                    if not seen:
                        filled[step, channel] = mean[channel] if first else filled[step - 1, channel]
                static = np.tile(sequences.static[i], (len(values), 1))
                found.append(
                    np.concatenate([last, ~np.isnan(values), static, times[:, None], filled], axis=1)
                )
            channels.append(found)
        steps = np.concatenate(channels[0])
        center, spread = np.nanmean(steps, axis=0), np.nanstd(steps, axis=0)
        batch = inputs.source(stays.validation).batch(torch.arange(3))
        longest = max(part.sequences.lengths.max() for part in (stays.train, stays.validation, stays.test))
        assert batch.lengths is None
        assert batch.values.shape == (3, longest, 119)
        for row, steps in zip(batch.values.numpy(), channels[1], strict=False):
            wanted = np.nan_to_num((steps - center) / np.where(spread > 1e-9, spread, 1))
            np.testing.assert_allclose(row[-len(steps) :], wanted, atol=1e-4)
            assert not row[: -len(steps)].any()

    def test_later_splits(self, data, tmp_path):
        """A cell with a number is trained on that split of the file."""
        with pytest.raises(
            ValueError, match=r"`split` 2 must be in .*raindrop_splits.npz, which does not exist"
        ):
            physionet2012.load(data, split=2)
        home = few_stays(tmp_path) / "physionet2012"
        with np.load(home / "split.npz") as file:
            parts = dict(file)
        turned = {"train2": parts["test"], "val2": parts["train"], "test2": parts["val"][3:]}
        np.savez(home / "raindrop_splits.npz", **turned)
        stays = physionet2012.load(tmp_path, split=2)
        assert list(stays.test.ids) == list(parts["val"][3:])
        row = mortality.measure(cell(split=2, epochs=1), 1, data=str(tmp_path))
        assert (row.split, row.n_train, row.n_test) == (2, 24, 21)

    @pytest.mark.parametrize("kind", [Complete, ZerosInFront, AsMeasured])
    def test_nothing_of_other_stays_reaches_training(self, kind, data):
        """Other test stays leave the weights as they are; other validation stays what is trained on."""
        stays = physionet2012.load(data)
        values = stays.validation.sequences
        loud = Labelled(
            Sequences(1e3 * values.values, values.offsets, values.times, values.static), labels=None
        )
        altered = replace(stays, test=loud)
        name, settings = ("gru-simple" if kind is AsMeasured else "fcn"), SMALL
        recipe = PAPER if kind is ZerosInFront else MASKED
        space = MODELS[name].setups[recipe].space
        wanted = cell(name, {key: settings[key] for key in space}, recipe=recipe)
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

        setup = MODELS["fcn"].setups[MASKED]
        with seeded_initialization(0):
            network = setup.network(inputs, SMALL)
        with pytest.raises(Enough):
            fit(
                network,
                inputs.loss,
                train,
                recipe=setup.training(SMALL, 4),
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
    @pytest.mark.parametrize("recipe", RECIPES)
    @pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.named == "default"])
    def test_every_baseline_is_trained(self, name, recipe, data):
        """One epoch by the settings that are run without a search."""
        wanted = MortalityCell("mortality", name, "default", 0, "final", 1, recipe)
        row = mortality.measure(wanted, 1, data=str(data))
        assert row.epochs == row.best_epoch == 1
        assert 0 < row.test_auprc <= 1
        stays = physionet2012.load(data)
        setup = MODELS[name].setups[recipe]
        network = setup.network(setup.inputs(stays), setup.settings)
        assert row.parameters == sum(p.numel() for p in network.parameters())

    def test_what_is_learned_besides_counts_in_training_only(self, data):
        stays = physionet2012.load(data)
        inputs = AsMeasured(stays)
        network = MODELS["ip-nets"].setups[MASKED].make(**inputs.sizes, width=4)
        batch = inputs.source(stays.train).batch(torch.arange(4))
        with torch.no_grad():
            plain = inputs.loss(network.eval(), batch).mean
            network.auxiliary_weight = 1e3
            assert inputs.loss(network, batch).mean == plain
            assert inputs.loss(network.train(), batch).mean > plain + 10


def test_settings_are_written_alike():
    assert written({"b": 1, "a": 0.5}) == written({"a": 0.5, "b": 1}) == '{"a":0.5,"b":1}'
    assert json.loads(written(SMALL)) == SMALL
