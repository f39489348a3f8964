"""`instance-epsdelta` (J19, I-10, ERR 14) on a few digits."""

import numpy as np
import pytest
from pictures import drawn

from bayesdp.data import load as load_data
from bayesdp.divergence.hockey_stick import sampled_delta
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.per_instance import epsdelta, training


@pytest.fixture(scope="module")
def rows():
    return epsdelta.compute(
        size=epsdelta.Size(
            model="logistic",
            epochs=2,
            trained_with=128,
            batches=(64, 128),
            points=8,
            drawn=8,
            chosen=load_data("digits"),
        )
    )


def only(rows, **where):
    (row,) = pick(rows, **where)
    return row


def test_the_papers_baseline_claims_too_little_up_to_batch_128():
    """ERR 14: what S3 compares itself with has a true δ above 10⁻⁵ at its own σ, by up to a tenth."""
    for batch, sigma in training.SIGMAS.items():
        rate = batch / 60000
        claimed = epsdelta.classical(sigma, rate)
        true = sampled_delta(claimed, 1 / sigma, sampling_rate=rate, direction="remove")
        assert (true > 1.05e-5) == (batch <= 128)
        assert (epsdelta.hockey(np.array([[1 / sigma]]), rate)[0] > claimed) == (batch <= 128)


def three(rows, **where):
    """ε by Corollary 3.1, and by H7 from batches drawn and from sizes."""
    names = (epsdelta.PRINTED, epsdelta.DRAWN, epsdelta.SIZES)
    return [only(rows, curve=name, stage="final", whose="all", **where)["epsilon"] for name in names]


def test_the_hockey_stick_is_below_the_corollary_for_the_mean_rule(rows):
    for who in ("half", "most"):
        corollary, drawn, sizes = three(rows, rule="mean", batch=64, who=who)
        assert drawn <= sizes
        assert drawn < corollary


def test_the_corollary_claims_less_than_a_clipped_record_pays(rows):
    """ERR 14: for the sum rule H7 is exact, and larger."""
    corollary, drawn, sizes = three(rows, rule="sum", batch=128, who="most")
    assert drawn == sizes
    assert corollary < drawn


def test_right_and_wrong_are_all(rows):
    final = pick(rows, rule="sum", batch=64, stage="final", curve=epsdelta.PRINTED, who="mean")
    counts = {row["whose"]: row["records"] for row in final}
    assert counts["all"] == sum(count for whose, count in counts.items() if whose != "all") == 8


def test_it_draws(rows):
    figure = drawn("instance-epsdelta", rows)
    assert len(figure.axes) == 6
    assert all(len(axes.lines) >= 5 for axes in figure.axes)
