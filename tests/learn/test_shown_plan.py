"""What was measured: a table that can be read, and nothing that is of another kind or far away."""

from bayesdp.learn.goals import GOALS
from bayesdp.learn.shown_plan import similar, table


def test_every_line_of_the_table_is_a_score_beside_a_constant_answer():
    assert {line.goal for line in table()} >= set(GOALS)
    for line in table():
        assert line.score <= 1
        assert 0 <= line.constant < 1
        assert line.sentence.startswith("Measured, ")


def test_similar_shapes_are_of_the_same_kind_and_near():
    near = similar(400, 30, 2, 1.0)
    assert near
    assert all(line.classes for line in near)
    assert all(100 < line.records < 2000 for line in near)
    assert not any(line.classes for line in similar(400, 10, 0, 1.0))
    assert similar(10**8, 10**6, 2, 1.0) == []
