"""Who the witnesses are, how many by default, and how they are found among all records."""

import numpy as np
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.accountant.run_tallies import Counts
from bayesdp.learn.loop.witnesses import MEMBERS, Witnesses, drawn_members, members_wanted

DATA = (np.arange(10.0)[:, None], np.arange(10))
OTHERS = (np.array([[100.0], [101.0]]), np.array([100, 101]))
MINE = (np.array([[7.0]]), np.array([200]))
ROWS = np.array([1, 4, 8])


def test_members_are_drawn_beside_a_holdout_and_else_not():
    assert members_wanted(None, None) == 0
    assert members_wanted(None, OTHERS) == MEMBERS == 2000
    assert members_wanted(5, None) == 5
    assert members_wanted(0, OTHERS) == 0
    with pytest.raises(InputError, match="members"):
        members_wanted(-1, None)


def test_members_mean_the_same_for_every_learner(digits, plan):
    """None, whatever the learner: 2000 of the training records, or all there are, beside a holdout; else none."""
    x, y = digits.data[0], (digits.data[1] > 4).astype(np.int32)
    inside, outside = (x, y), (digits.holdout[0], (digits.holdout[1] > 4).astype(np.int32))

    def loss(params, example):
        return (params @ example[0] - example[1]) ** 2

    pair = (lambda w: -0.5 * (w @ w), lambda w, record: -loss(w, record))
    start, short = np.zeros(64, np.float32), {"sampling_rate": 0.1, "steps": 2, "engine": "rdp", "clip_norm": 1.0}
    vi = bd.VI(**short, noise_multiplier=1.0)
    walk = bd.SGLD(**short, step_size=1e-3)
    descent = bd.SGD(**short, noise_multiplier=1.0, optimizer=plan.optimizer)
    for given, members in (({}, 0), ({"holdout": outside}, len(x)), ({"holdout": outside, "members": 7}, 7)):
        runs = [
            descent.fit(loss, start, inside, **given),
            vi.fit(pair, inside, params=start, **given).run,
            walk.fit(pair, inside, params=start, **given).run,
            *(one.run for one in vi.fit_many(2, pair, inside, params=start, **given)),
        ]
        assert [len(run.members) for run in runs] == [members] * 5


def test_drawing_is_uniform_and_repeatable():
    assert drawn_members(10, 20, 0).tolist() == list(range(10))
    counts = np.bincount(np.concatenate([drawn_members(10, 3, seed) for seed in range(2000)]), minlength=10)
    assert abs(counts / 2000 - 0.3).max() < 0.04
    assert np.array_equal(drawn_members(100, 9, 5), drawn_members(100, 9, 5))


def test_a_pass_of_their_own_has_outsiders_members_and_watched_records():
    found = Witnesses.of(DATA, holdout=OTHERS, members=ROWS, watch=MINE, measured=False)
    assert found.counts == Counts(2, 3, 1)
    assert found.outside[1].tolist() == [100, 101, 1, 4, 8, 200]
    assert Witnesses.of(DATA, holdout=None, members=ROWS[:0], watch=None, measured=False).outside is None


@pytest.mark.parametrize(
    ("watch", "outside", "watched"),
    [(None, [100, 101], []), (MINE, [100, 101, 200], [200]), ("everyone", [100, 101], list(range(10)))],
)
def test_where_all_records_are_measured_members_are_found_among_them(watch, outside, watched):
    found = Witnesses.of(DATA, holdout=OTHERS, members=ROWS, watch=watch, measured=True)
    assert found.outside[1].tolist() == outside
    everyone = np.array([*DATA[1], *outside], np.float32)
    assert found.among(everyone).tolist() == [100, 101, 1, 4, 8, *watched]
    assert found.counts == Counts(2, 3, len(watched))


def test_other_words_than_everyone_are_refused():
    with pytest.raises(InputError, match="watch"):
        Witnesses.of(DATA, holdout=None, members=ROWS, watch="all", measured=True)
