import optax
import pytest

from bayesdp.audit import audit
from bayesdp.audit.audit import best_number
from bayesdp.errors import InputError
from bayesdp.learn import SGD
from bayesdp.report.audit import Audit

PLAN = SGD(sampling_rate=1.0, steps=2, clip_norm=1.0, noise_multiplier=0.8, optimizer=optax.sgd(1.0))


@pytest.mark.simulation
def test_every_game_gives_both_forms_below_the_plans_own_and_the_best_is_above_half_of_it():
    told = []
    found = audit(PLAN, plays=8000, runs=1500, canaries=100, seed=3, told=told.append)
    assert told == ["step", "runs", "one-run"]
    assert [(one.method, one.form) for one in found.bounds] == [
        (game, form) for game in told for form in ("counting", "f-dp")
    ]
    assert not found.refuted
    assert found.best.epsilon > 0.5 * found.best.upper
    assert Audit.from_dict(found.to_dict()) == found
    assert found.bounds[1].upper == pytest.approx(found.bounds[3].upper)


def test_a_game_can_be_played_alone_and_others_are_refused():
    with pytest.raises(InputError, match="games"):
        audit(PLAN, games=("coin",))
    with pytest.raises(InputError, match="plays"):
        audit(PLAN, plays=1)


@pytest.mark.parametrize("form", ["counting", "f-dp"])
def test_the_number_of_guesses_follows_from_public_numbers(form):
    few, many = best_number(500, 3.0, 1e-5, 0.05, form), best_number(500, 0.3, 1e-5, 0.05, form)
    assert 0 < few <= 500
    assert 0 < many <= 500
