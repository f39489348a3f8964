"""One record moves all histograms together by exactly what is paid for, under either adjacency (H22)."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from bayesdp import InputError, WorstCaseAccountant
from bayesdp.data.payment import Paid, Payment, paid_again, payment_of, sensitivity
from bayesdp.data.preparation.ranges import bin_counts, octave_counts
from bayesdp.divergence.hockey_stick import gaussian_epsilon

NUMBERS, TEXTS = (0.0, 0.3, 5.0, -7.5), ("a", "b")
RECORDS = [*itertools.product(NUMBERS, NUMBERS, TEXTS)]
HISTOGRAMS = 5
"""Two for each of two numbers, one for the text."""


def released(records):
    """All counts that get noise, of two columns of numbers and one of texts."""
    counts = []
    for place in range(2):
        values = np.array([record[place] for record in records], np.float64)
        counts += [octave_counts(values), bin_counts(values, 8.0, 256)]
    texts = Counter(record[2] for record in records)
    return np.concatenate([*counts, [texts[text] for text in TEXTS]])


OTHERS = [(), (RECORDS[0],), (RECORDS[-1], RECORDS[5])]


def test_no_record_that_is_added_moves_more_than_one_count_of_each_histogram():
    moved = [np.linalg.norm(released([*some, one]) - released(some)) for some in OTHERS for one in RECORDS]
    assert max(moved) == math.sqrt(HISTOGRAMS) == sensitivity(HISTOGRAMS, "add-remove")


def test_no_record_that_is_exchanged_moves_more_than_two():
    moved = [
        np.linalg.norm(released([*some, one]) - released([*some, other]))
        for some in OTHERS[:2]
        for one, other in itertools.combinations(RECORDS, 2)
    ]
    assert max(moved) == pytest.approx(math.sqrt(2 * HISTOGRAMS), rel=1e-12)
    # An accountant's unit is half of what an exchange can move.
    assert sensitivity(HISTOGRAMS, "replace-one") == pytest.approx(max(moved) / 2, rel=1e-12)


@pytest.mark.parametrize(("adjacency", "moved"), [("add-remove", math.sqrt(7)), ("replace-one", math.sqrt(14))])
def test_what_is_charged_is_the_gaussian_that_was_released(adjacency, moved):
    payment = Payment(6.0, 1e-7, adjacency)
    charged = WorstCaseAccountant(adjacency=adjacency)
    charged.step(noise_multiplier=Paid.by(payment, 7, levels=True).noise_multiplier)
    exact = gaussian_epsilon(1e-5, moved / payment.noise_std(7))
    assert exact <= charged.epsilon(1e-5) <= exact + 2e-4


def test_several_rows_of_a_person_move_as_many_times_more():
    assert Payment(2.0, 1e-7, rows_per_person=3).noise_std(4) == pytest.approx(3 * Payment(2.0, 1e-7).noise_std(4))


def test_no_delta_is_paid_where_no_levels_were_chosen():
    assert Paid.by(Payment(2.0, 1e-7), 4, levels=False).delta == 0
    assert Paid.by(Payment(2.0, 1e-7), 4, levels=True).delta == 1e-7


def test_what_was_paid_is_read_back_and_must_agree_with_itself():
    paid = Paid.by(Payment(2.0, 1e-7, "replace-one", held_out=0.25), 9, levels=True)
    assert Paid.from_dict(vars(paid)) == paid
    with pytest.raises(InputError, match="noise_std"):
        Paid.from_dict({**vars(paid), "histograms": 10})
    with pytest.raises(InputError, match="what preparation cost"):
        Paid.from_dict({"noise_std": 1.0})


def test_a_column_has_one_histogram_where_two_leave_too_much_noise_and_that_is_kept():
    def paying(records):
        return payment_of(epsilon=1.0, delta=1e-5, share=None, adjacency="add-remove", held_out=0, records=records)

    (few, one), (many, two) = paying(133).for_columns(13, 0), paying(5000).for_columns(13, 0)
    assert (few.of_numbers, one, many.of_numbers, two) == (1, 13, 2, 26)
    assert few.noise_std(13) == pytest.approx(paying(133).for_histograms(26).noise_std(26) / math.sqrt(2))
    again = paid_again(Paid.by(few, one, levels=False))
    assert again.for_columns(13, 0) == (again, one)
