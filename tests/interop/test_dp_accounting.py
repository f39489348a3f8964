"""The adapter keeps dp-accounting's own contract and agrees with its accountants."""

import math

import pytest
from dp_accounting import NeighboringRelation, UnsupportedEventError, dp_event, privacy_accountant_test
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import bayesdp as bd
from bayesdp.accountant.worst_case import ENGINES, WorstCaseAccountant
from bayesdp.errors import InputError
from bayesdp.interop.dp_accounting import Adapter, event_of, guarantee_of
from bayesdp.ledger import Charge

ADJACENCIES = ("add-remove", "replace-one")


class TestContract(privacy_accountant_test.PrivacyAccountantTest):
    """dp-accounting's contract, for every engine and adjacency."""

    def _make_test_accountants(self):
        return [
            Adapter(WorstCaseAccountant(engine=engine, adjacency=adjacency))
            for engine in ENGINES
            for adjacency in ADJACENCIES
        ]


def sampled(z, q):
    return dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(z))


EVENT = dp_event.ComposedDpEvent(
    [
        dp_event.SelfComposedDpEvent(sampled(1.1, 0.01), 300),
        dp_event.NoOpDpEvent(),
        dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(8.0), sampled(2.0, 0.05)]),
    ]
)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_agrees_with_pld(relation):
    theirs = PLDAccountant(
        NeighboringRelation.ADD_OR_REMOVE_ONE if relation == "add-remove" else NeighboringRelation.REPLACE_ONE
    )
    theirs.compose(EVENT, 2)
    ours = Adapter(WorstCaseAccountant(engine="pld", adjacency=relation)).compose(EVENT, 2)
    assert ours.neighboring_relation == theirs.neighboring_relation
    assert ours.accountant.steps == 2 * 302
    assert ours.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=1e-6)
    assert ours.get_delta(1.5) == pytest.approx(theirs.get_delta(1.5), rel=1e-5)
    assert ours.ledger == theirs.ledger


def test_agrees_with_rdp():
    theirs, ours = RdpAccountant().compose(EVENT), Adapter(WorstCaseAccountant(engine="rdp")).compose(EVENT)
    assert ours.get_epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-9)
    assert ours.get_delta(2.0) == pytest.approx(theirs.get_delta(2.0), rel=1e-9)


def test_ends():
    spent = Adapter().compose(dp_event.GaussianDpEvent(1.0))
    assert spent.get_epsilon(0) == math.inf
    assert spent.get_epsilon(1) == 0
    assert spent.get_delta(math.inf) == 0
    assert Adapter().compose(sampled(0.0, 0.0)).get_epsilon(0) == 0  # nobody is ever sampled
    assert Adapter().compose(sampled(0.0, 0.1)).get_epsilon(0.5) == math.inf


def test_unsupported_events_compose_nothing():
    ours = Adapter()
    mixed = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.LaplaceDpEvent(1.0)])
    with pytest.raises(UnsupportedEventError, match="caused by subevent"):
        ours.compose(mixed)
    with pytest.raises(UnsupportedEventError):
        ours.compose(dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(1.0)))
    assert ours.accountant.steps == 0


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda a: a.get_epsilon(-0.1), "target_delta"),
        (lambda a: a.get_epsilon(1.1), "target_delta"),
        (lambda a: a.get_delta(-1), "target_epsilon"),
        (lambda a: a.get_delta(math.nan), "target_epsilon"),
        (lambda a: a.compose(sampled(1.0, 1.5)), "sampling_probability"),
        (lambda a: a.compose(sampled(-1.0, 0.5)), "noise_multiplier"),
    ],
)
def test_bad_input(call, word):
    accountant = Adapter().compose(dp_event.GaussianDpEvent(1.0))
    with pytest.raises(InputError, match=word):
        call(accountant)
    assert accountant.accountant.steps == 1
    assert accountant.ledger == dp_event.GaussianDpEvent(1.0)


def test_our_plans_as_their_events_and_back():
    """By dp-accounting's own PLD accountant too."""
    import optax

    plan = bd.SGD(
        sampling_rate=0.1,
        steps=20,
        noise_multiplier=1.5,
        noise_schedule=((0.5, 1.0), (0.5, 2.0)),
        optimizer=optax.sgd(1.0),
    )
    account = bd.WorstCaseAccountant()
    account.step(noise_multiplier=1.5, sampling_rate=0.1, steps=10)
    account.step(noise_multiplier=3.0, sampling_rate=0.1, steps=10)
    event = event_of(plan)
    assert event == event_of(account)
    assert guarantee_of(event, 1e-5).epsilon == account.epsilon(1e-5)
    theirs = PLDAccountant().compose(event).get_epsilon(1e-5)
    assert guarantee_of(event, 1e-5).epsilon == pytest.approx(theirs, rel=0.01)
    assert event_of(Charge(run="a", steps=((1.5, 0.1, 10), (3.0, 0.1, 10)))) == event


def test_plans_of_others_are_read_by_their_event():
    class TheirPlan:
        @property
        def dp_event(self):
            return dp_event.GaussianDpEvent(2.0)

    one = bd.WorstCaseAccountant()
    one.step(noise_multiplier=2.0)
    assert guarantee_of(TheirPlan(), 1e-5).epsilon == one.epsilon(1e-5)


def test_what_has_no_event_or_no_promise():
    assert isinstance(event_of(Charge(run="a", epsilon=float("inf"))), dp_event.NonPrivateDpEvent)
    assert isinstance(event_of(bd.WorstCaseAccountant()), dp_event.NoOpDpEvent)
    with pytest.raises(InputError, match="noisy steps alone"):
        event_of(Charge(run="a", epsilon=1.0))
    for wrong in (dp_event.NonPrivateDpEvent(), dp_event.LaplaceDpEvent(1.0), "event"):
        with pytest.raises(InputError, match="event"):
            guarantee_of(wrong, 1e-5)
