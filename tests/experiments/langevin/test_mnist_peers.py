"""The other rows of S4's Table 1, redone."""

from bayesdp.data import load as load_data
from bayesdp.experiments.langevin import mnist_peers


def test_many_teachers_who_agree_teach_a_student():
    digits = load_data("digits")
    _, accuracy = mnist_peers.taught(20.0, 1e-5, digits, 0)
    assert accuracy > 0.6
