"""An Opacus loop with witnesses, in an environment of its own: `make test-torch`.

What needs no PyTorch is tested in tests/interop/test_training_log.py.
"""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.accountants import PRVAccountant, create_accountant
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.interop.opacus import BayesdpAccountant, attach
from bayesdp.interop.torch_norms import WitnessNorms
from bayesdp.learn.models.networks import classifier
from bayesdp.mechanism import gradients_of

EACH = nn.CrossEntropyLoss(reduction="none")
MODES = ("hooks", "functorch", "ghost")


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, padding=1), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(64, 5)
    )


@pytest.fixture(scope="module")
def records():
    torch.manual_seed(1)
    return torch.randn(300, 1, 8, 8), torch.randint(0, 5, (300,))


def private(mode, net, records, most=0.5, **more):
    """A loop of three steps; what was attached, each step's witnesses' norms, and per-sample norms by both."""
    x, y = records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine()
        log = attach(engine, module=net, loss=EACH, holdout=(x[:150], y[:150]), watch=(x[150:152], y[150:152]))
        made = engine.make_private(
            module=net,
            optimizer=torch.optim.SGD(net.parameters(), lr=0.5),
            data_loader=DataLoader(TensorDataset(x[200:], y[200:]), batch_size=20),
            criterion=nn.CrossEntropyLoss(),
            noise_multiplier=1.0,
            max_grad_norm=most,
            grad_sample_mode=mode,
            **more,
        )
        model, optimizer, loader = made[0], made[1], made[-1]
        criterion = made[2] if mode == "ghost" else nn.CrossEntropyLoss()
        norms, seen, both = WitnessNorms(model, EACH), [], []
        for images, labels in list(loader)[:3]:
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            if len(images) and not more:
                both.append((norms(images, labels), theirs(mode, model)))
            seen.append(norms(x[:152], y[:152]))
            optimizer.step()
    return engine, log, np.array(seen), both


def theirs(mode, model):
    if mode == "ghost":
        return model.get_norm_sample().detach().numpy()
    each = [p.grad_sample.flatten(1).norm(dim=1) for p in model.parameters()]
    return torch.stack(each, 1).norm(dim=1).detach().numpy()


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_in_every_mode(mode, records, tmp_path):
    engine, log, seen, both = private(mode, convolutional(), records)
    for ours, opacus in both:
        np.testing.assert_allclose(ours, opacus, rtol=1e-5)
    people = bd.BayesianAccountant(cap=0.5)
    for norms in np.minimum(seen[:, :150], np.float32(0.5)):
        people.step(norms, noise_std=0.5, sampling_rate=0.2)
    dp, bdp, *watched = log.guarantees
    assert bdp.epsilon == pytest.approx(people.guarantee(1e-5).epsilon, rel=1e-5)
    np.testing.assert_allclose(log.curve().epsilon, people.curve(1e-5).epsilon, rtol=1e-5)
    assert len(watched) == 2
    opacus = PRVAccountant()
    opacus.history = list(engine.accountant.history)
    assert opacus.history == [(1.0, 0.2, 3)]
    assert dp.epsilon == engine.get_epsilon(1e-5) == pytest.approx(opacus.get_epsilon(1e-5), rel=0.01)
    assert "Opacus" in log.report(tmp_path / "page.html").read_text()


def test_norms_are_those_of_the_jax_learner():
    """The same weights and data: gradient norms to 1e-5."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 12)).astype(np.float32), rng.integers(0, 10, 64)
    loss = classifier("mlp", 10)
    params = loss.model.init(jax.random.key(0), (12,))
    dense = [layer for layer in params if layer]
    net = nn.Sequential(nn.Linear(12, 256), nn.Tanh(), nn.Linear(256, 10))
    with torch.no_grad():
        for layer, weights in zip((net[0], net[2]), dense, strict=True):
            layer.weight.copy_(torch.tensor(np.asarray(weights["kernel"]).T))
            layer.bias.copy_(torch.tensor(np.asarray(weights["bias"])))
    ours = gradients_of(loss).norms(params, (x, y), np.ones(64, bool), 1.0).raw
    np.testing.assert_allclose(WitnessNorms(net, EACH)(torch.tensor(x), torch.tensor(y)), ours, rtol=1e-5)


class Tied(nn.Module):
    """One layer used twice, one over several positions, a normalisation, and a parameter that does not train."""

    def __init__(self):
        super().__init__()
        self.first, self.again, self.norm = nn.Linear(6, 6), nn.Linear(6, 6), nn.LayerNorm(6)
        self.last = nn.Linear(6, 5)
        self.last.bias.requires_grad = False

    def forward(self, x):
        return self.last(self.norm(self.again(torch.tanh(self.again(self.first(x))))).mean(1))


def test_layers_of_all_kinds_against_one_record_at_a_time():
    torch.manual_seed(0)
    net, x, y = Tied(), torch.randn(30, 4, 6), torch.randint(0, 5, (30,))
    norms = WitnessNorms(net, EACH, batch=8)
    each = []
    for one, label in zip(x, y, strict=True):
        net.zero_grad()
        EACH(net(one[None]), label[None]).sum().backward()
        each.append(sum(p.grad.square().sum() for p in net.parameters() if p.grad is not None).sqrt().item())
    np.testing.assert_allclose(norms(x, y), each, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(norms.per_parameter(x, y), axis=1), each, rtol=1e-5)


def test_clipping_by_layer(records):
    _, log, _, _ = private("hooks", convolutional(), records, [0.1] * 6, clipping="per_layer")
    assert log.log.steps == log.log.population.steps == 3
    assert log.guarantees[1].epsilon <= log.guarantees[0].epsilon * 1.1


def test_refusals(records):
    x, y = records
    for module, words in ((nn.BatchNorm2d(1), "each record by itself"), (nn.Dropout(0.5), "at random")):
        with pytest.raises(InputError, match=words):
            WitnessNorms(nn.Sequential(module, nn.Flatten(), nn.Linear(64, 5)), EACH)
    with pytest.raises(InputError, match="a value for each record"):
        WitnessNorms(convolutional(), nn.CrossEntropyLoss())(x, y)
    engine, *_ = private("hooks", convolutional(), records)
    with pytest.raises(InputError, match="before make_private"):
        attach(engine, module=convolutional(), loss=EACH, holdout=(x, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = PrivacyEngine(accountant="bayesdp")
    assert isinstance(fresh.accountant, BayesdpAccountant)
    with pytest.raises(InputError, match="records to measure"):
        attach(fresh, module=convolutional(), loss=EACH)


def test_accountant_keeps_opacus_contract():
    account = create_accountant("bayesdp")
    for _ in range(3):
        account.step(noise_multiplier=1.0, sample_rate=0.1)
    assert len(account) == 3
    again = BayesdpAccountant()
    again.load_state_dict(account.state_dict())
    assert again.get_epsilon(1e-5) == account.get_epsilon(1e-5) > 0
