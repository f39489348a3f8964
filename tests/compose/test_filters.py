"""Individual filters (H4): the budget is never passed, whatever an adaptive adversary asks for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.compose.filters import GaussianFilter, RenyiBudgets, RenyiFilter
from bayesdp.divergence.hockey_stick import gaussian_delta, gaussian_shift
from bayesdp.errors import InputError


def test_admits_up_to_the_budget_and_drops_for_good():
    guard = RenyiFilter(3, order=3.0, budget=1.0)
    assert guard.admit([1.0, 2.0, 4.0]).tolist() == [True, True, False]  # divergences 0.5, 1, 2
    assert guard.spent.tolist() == [0.5, 1.0, 0.0]
    assert guard.admit([0.0, 0.1, 0.0]).tolist() == [
        True,
        False,
        False,
    ]  # the third is out although it costs nothing
    assert guard.admit([1.0, 0.0, 0.0]).tolist() == [True, False, False]
    assert guard.spent.tolist() == [1.0, 1.0, 0.0]
    assert guard.admit([math.inf, 0, 0]).tolist() == [False, False, False]
    assert guard.spent.tolist() == [1.0, 1.0, 0.0]


def test_gaussian_budget_of_the_vectors():
    """I-13: μ(1, 1e-5), and the budget on squared norms at noise 2."""
    mu = float(gaussian_shift(1.0, 1e-5))
    assert mu == pytest.approx(0.268051123211294, rel=1e-11)
    assert mu**2 * 2**2 == pytest.approx(0.287405618619346, rel=1e-11)
    guard = GaussianFilter(2, mu)
    norms = np.array([math.sqrt(0.287405618), math.sqrt(0.28740562)])
    assert guard.admit(norms / 2).tolist() == [True, False]


requests = st.lists(
    st.lists(
        st.one_of(st.floats(0, 1.5), st.just(math.inf), st.sampled_from([1.0, 0.999999])),
        min_size=3,
        max_size=3,
    ),
    max_size=12,
)


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
@given(requests, st.floats(0, 10), st.floats(1.01, 64))
def test_adaptive_adversary_never_passes_the_budget(kind, fractions, budget, order):
    """Each request is a multiple of what is left, so that records run close to their limit."""
    guard = RenyiFilter(3, order, budget) if kind == "renyi" else GaussianFilter(3, budget)
    limit = budget if kind == "renyi" else budget**2
    for fraction in fractions:
        before, active = guard.spent, guard.active
        wanted = np.array(fraction) * np.maximum(limit - before, 1e-3)
        taken = guard.admit(wanted * (order - 1) if kind == "renyi" else np.sqrt(wanted))
        after = guard.spent
        assert np.all(after <= limit)
        assert not np.any(taken & ~active)  # nobody comes back
        assert np.array_equal(after[~taken], before[~taken])  # totals of the dropped are frozen
        assert after[taken] == pytest.approx((before + wanted)[taken], rel=1e-12, abs=1e-15)
        refused = active & ~taken
        assert np.all((before + wanted)[refused] >= limit * (1 - 1e-12))
        assert np.array_equal(guard.active, taken)


def adversary(guard, paths, steps, scale, charge):
    """One path per record: spend more after a likely outcome, stop when dropped; the loss of every path."""
    rng = np.random.default_rng(5)
    loss = np.zeros(paths)
    for _ in range(steps):
        shift = np.where(loss > 0, 2 * scale, scale)
        taken = guard.admit(charge(shift))
        shift = np.where(taken, shift, 0.0)
        loss += shift * rng.standard_normal(paths) + shift**2 / 2
    return loss


def test_gaussian_filter_keeps_gdp_under_adaptivity():
    """The adaptive run's hockey stick stays below μ-GDP's; without the filter it does not."""
    paths, mu = 200_000, 1.0
    for limit, within in ((mu, True), (10.0, False)):
        loss = adversary(GaussianFilter(paths, limit), paths, 12, 0.25, lambda r: r)
        for epsilon in (0.5, 1.0, 2.0):
            gain = np.maximum(0, 1 - np.exp(np.minimum(epsilon - loss, 0)))
            slack = 4 * gain.std() / math.sqrt(paths)
            allowed = float(gaussian_delta(epsilon, mu))
            assert (gain.mean() <= allowed + slack) == within


def test_renyi_filter_keeps_rdp_under_adaptivity():
    order, budget, paths = 3.0, 0.5, 200_000
    for limit, within in ((budget, True), (50.0, False)):
        guard = RenyiFilter(paths, order, limit)
        loss = adversary(guard, paths, 12, 0.2, lambda r: (order - 1) * order * r**2 / 2)
        moment = np.exp((order - 1) * loss)
        slack = 5 * moment.std() / math.sqrt(paths)
        assert (moment.mean() <= math.exp((order - 1) * budget) + slack) == within


def test_state_round_trip_goes_on_alike():
    for guard in (RenyiFilter(4, 8.0, 1.0), GaussianFilter(4, 1.0)):
        guard.admit([0.1, 0.2, 3.0, 30.0])
        copy = type(guard).restore(guard.state())
        assert np.array_equal(copy.spent, guard.spent)
        assert copy.admit([0.5, 0.9, 0.1, 0.1]).tolist() == guard.admit([0.5, 0.9, 0.1, 0.1]).tolist()
        assert copy.state().keys() == guard.state().keys()
        guard.spent[:] = 0
        guard.state()["spent"][:] = 0
        assert guard.spent.any()  # what is handed out is a copy


def test_refused_calls_change_nothing():
    guard = RenyiFilter(2, 2.0, 1.0)
    guard.admit([0.25, 0.5])
    for bad in ([0.1], [0.1, -0.1], [0.1, math.nan], [[0.1, 0.1]], ["a", "b"]):
        with pytest.raises(InputError, match="costs"):
            guard.admit(bad)
    assert guard.spent.tolist() == [0.25, 0.5]
    assert guard.active.all()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: RenyiFilter(0, 2, 1), "records"),
        (lambda: RenyiFilter(1, 1, 1), "order"),
        (lambda: RenyiFilter(1, 2, -1), "budget"),
        (lambda: RenyiFilter(1, 2, math.inf), "budget"),
        (lambda: GaussianFilter(1, -1), "mu"),
        (lambda: GaussianFilter(2, 1).admit([1.0]), "shifts"),
        (lambda: RenyiFilter.restore(GaussianFilter(1, 1).state()), "kind"),
        (lambda: RenyiFilter.restore({"kind": "renyi-filter"}), "missing"),
        (
            lambda: RenyiFilter.restore({**RenyiFilter(2, 2, 1).state(), "spent": np.array([2.0, 0.0])}),
            "spent",
        ),
        (
            lambda: GaussianFilter.restore({**GaussianFilter(2, 1).state(), "active": np.array([True])}),
            "records",
        ),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_limits_of_their_own_at_orders_of_their_own():
    chosen = RenyiBudgets([2.0, 3.0], [[1.0, math.inf], [math.inf, 0.5], [1.0, 0.25], [0.0, math.inf]])
    # Divergences: the costs at order 2, half of them at order 3.
    assert chosen.admit([[0.6, 9.0], [9.0, 0.6], [0.6, 0.4], [0.1, 0.1]]).tolist() == [True, True, True, False]
    assert chosen.admit([[0.4, 9.0], [9.0, 0.4], [0.1, 0.2], [0.0, 0.0]]).tolist() == [True, True, False, False]
    assert chosen.admit([[0.1, 0.0], [0.0, 0.1], [0.0, 0.0], [0.0, 0.0]]).tolist() == [False, False, False, False]
    assert (chosen.spent <= chosen.budgets).all()
    again = RenyiBudgets.restore(chosen.state())
    assert np.array_equal(again.spent, chosen.spent)
    assert np.array_equal(again.active, chosen.active)
    with pytest.raises(InputError, match="at most the budget"):
        RenyiBudgets.restore(chosen.state() | {"spent": chosen.spent + 2})
    same = RenyiFilter(1, 3.0, 0.5)
    one = RenyiBudgets([3.0], [[0.5]])
    for cost in (0.3, 0.5, 0.2, 0.1):
        assert same.admit([cost]).tolist() == one.admit([[cost]]).tolist()
        assert np.array_equal(same.spent, one.spent[:, 0])


def test_gaussian_budgets_of_their_own():
    chosen = GaussianFilter(3, np.array([1.0, 2.0, 0.0]))
    assert chosen.admit([1.0, 1.0, 0.1]).tolist() == [True, True, False]
    assert chosen.admit([0.1, 1.5, 0.0]).tolist() == [False, True, False]
    again = GaussianFilter.restore(chosen.state())
    assert np.array_equal(again.active, chosen.active)


@pytest.mark.parametrize(
    ("orders", "budgets"),
    [([3.0, 2.0], [[1.0, 1.0]]), ([2.0], [1.0]), ([2.0], [[math.inf]]), ([1.0], [[1.0]]), ([2.0], [[-1.0]])],
)
def test_bad_limits(orders, budgets):
    with pytest.raises(InputError):
        RenyiBudgets(orders, budgets)
    with pytest.raises(InputError):
        RenyiBudgets([2.0], [[1.0]]).admit([[1.0, 2.0]])
