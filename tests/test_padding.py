import numpy as np

from bayesdp.padding import layout


def test_rows_of_people_lie_in_lines_filled_up_with_the_first():
    people, places, present = layout(np.array([7, 2, 7, 7, 4]), 3)
    assert people.tolist() == [2, 4, 7]
    assert places.tolist() == [[1, 1, 1], [4, 4, 4], [0, 2, 3]]
    assert present.tolist() == [[True, False, False], [True, False, False], [True, True, True]]


def test_of_more_rows_than_places_those_with_the_least_keys_are_kept():
    _, places, present = layout(np.array([0, 0, 0, 1]), 2, np.array([5.0, 1.0, 3.0, 9.0]))
    assert places.tolist() == [[1, 2], [3, 3]]
    assert present.tolist() == [[True, True], [True, False]]
