"""Paper S3 as printed, beside sound numbers: which line is which (E4-E11, M8, M9)."""

import numpy as np
import pytest

from bayesdp.compose.expected import expected
from bayesdp.errors import InputError
from bayesdp.experiments.per_instance import as_printed
from bayesdp.experiments.per_instance.side_by_side import of_run, of_step

# --- formulas -----------------------------------------------------------------------------------------------------


def lines_of(lines):
    return {(line.item, line.way, line.quantity.split(" ")[0]): line.values for line in lines}


@pytest.fixture(scope="module")
def run():
    """Twenty steps without sampling, four checkpoints of six runs; the second record is clipped throughout."""
    rng = np.random.default_rng(0)
    distances = np.concatenate([rng.uniform(0.05, 0.2, (6, 4, 1)), np.ones((6, 4, 1))], axis=-1)
    options = {"noise_multiplier": 10.0, "sampling_rate": 1.0, "steps": 20, "order": 2, "delta": 1e-3, "failure": 0.05}
    return distances, options, of_run(distances, [0, 5, 10, 15], **options)


def test_a_run_line_by_line(run):
    distances, _, lines = run
    found = lines_of(lines)
    assert {line.way for line in lines} == {"printed", "estimate", "sound"}
    theorem = found["Theorem 3.3 with 3.2", "printed", "D_2"]
    # By hand: the checkpoint stands for its five steps, orders rounded up to 3.
    orders = as_printed.stated_orders(2, 20, 60)
    divergence = np.ceil(orders)[:, None, None] / 2 * np.repeat(np.moveaxis(distances, 1, 0), 5, axis=0) ** 2 / 100
    by_hand = expected(divergence * (orders - 1)[:, None, None], 2, 60.0)
    np.testing.assert_allclose(theorem, by_hand, rtol=1e-6)
    assert np.isinf(found["Theorem A.2", "printed", "D_2"]).all()  # the first order is 2^19
    worst = found["data-independent", "sound", "D_2"]
    np.testing.assert_allclose(worst, 20 / 100)
    # What the paper prints for the first record is below what checkpoints can certify: sixteen steps were not seen.
    unseen = 16 / 100
    assert theorem[0] < unseen <= found["one-Hölder (H2)", "sound", "D_2"][0]
    assert unseen <= found["one-Hölder (H2)", "estimate", "D_2"][0]
    assert theorem[1] > worst[1]  # for a clipped record it is worse than the worst case
    for item in ("Theorem 3.3, corrected", "one-Hölder (H2)"):
        assert (found[item, "sound", "D_2"] >= unseen).all()
    least = found["least of E7, H2 and worst case", "sound", "ε"]
    assert (least <= found["data-independent", "sound", "ε"]).all()
    assert (found["least of E7, H2 and worst case", "estimate", "ε"] <= least).all()
    assert found["ex-post (H3)", "sound", "ε"][0] <= found["ex-post (H3)", "sound", "ε"][1]


def test_a_short_run_has_theorem_a_2_too():
    found = lines_of(
        of_run(
            np.full((2, 3, 1), 0.5), [0, 1, 2], noise_multiplier=5.0, sampling_rate=1.0, steps=3, order=2, delta=1e-2
        )
    )
    # Orders 5, 3, 2: deterministic costs are their plain sum.
    assert float(found["Theorem A.2", "printed", "D_2"][0]) == pytest.approx((5 + 3 + 2) / 2 * 0.01, rel=1e-6)


def test_a_step_line_by_line():
    """I-10: H7 0.000971 against Corollary 3.1's 0.004849."""
    shifts = np.array([0.01, 0.1])
    known = lines_of(of_step(shifts, sampling_rate=0.01, largest=0.1, weights=[0.9, 0.1]))
    assert float(known["Corollary 3.1", "printed", "ε"][0]) == pytest.approx(0.004849, abs=5e-7)
    assert float(known["hockey stick (H7)", "sound", "ε"][0]) == pytest.approx(0.000971, abs=5e-7)
    assert known["averaged (H1)", "sound", "D_8"][0] < known["Theorem 3.2", "sound", "D_8"][0]
    sampled = lines_of(of_step(np.repeat(shifts, [18, 2]), sampling_rate=0.01, largest=0.2, failure=0.05))
    assert ("hockey stick (H7)", "estimate", "ε") in sampled
    estimate, bound = (sampled["averaged (H1)", way, "D_8"][0] for way in ("estimate", "sound"))
    assert estimate == pytest.approx(known["averaged (H1)", "sound", "D_8"][0])
    assert estimate < bound <= sampled["Theorem 3.2", "sound", "D_8"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": [1, 5, 10, 15]}, "at to rise from 0"),
        ({"at": [0, 5, 10]}, "4 checkpoints"),
        ({"at": [0, 5, 10, 20]}, "below 20"),
        ({"order": 2.5}, "order"),
        ({"distances": np.ones((2, 3))}, "distances"),
        ({"direction": "both"}, "direction"),
    ],
)
def test_bad_input(run, change, words):
    distances, options, _ = run
    with pytest.raises(InputError, match=words):
        of_run(**({"distances": distances, "at": [0, 5, 10, 15]} | options | change))
