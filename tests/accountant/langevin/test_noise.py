"""Step size and noise multiplier: the test vectors (I-11), and there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError
from bayesdp.accountant.langevin import noise

RATE = 128 / 60_000


@pytest.mark.parametrize(("temperature", "z"), [(0.5, 3.1801855679997013), (1.0, 4.497461561128363)])
def test_s4s_mnist_setting(temperature, z):
    found = noise.noise_multiplier(0.3 / 60_000, sampling_rate=RATE, clip_norm=0.3, temperature=temperature)
    assert found == pytest.approx(z, rel=1e-14)


@pytest.mark.parametrize(("batch", "z"), [(128, 0.10413148188786399), (1024, 0.8330518551029119)])
def test_s4s_svhn_setting(batch, z):
    found = noise.noise_multiplier(0.1 / 604_388, sampling_rate=batch / 604_388, clip_norm=5, temperature=0.5)
    assert found == pytest.approx(z, rel=1e-14)


sizes = st.floats(1e-9, 1e3)


@given(sizes, st.floats(1e-4, 1), sizes, st.floats(0.1, 10), sizes)
def test_there_and_back(step, rate, clip, temperature, friction):
    setting = {"sampling_rate": rate, "clip_norm": clip, "temperature": temperature, "friction": friction}
    z = noise.noise_multiplier(step, **setting)
    assert noise.step_size(z, **setting) == pytest.approx(step, rel=1e-12)
    # The noise of the sum, seen from the iterate of SGLD (friction 1) or from the momentum: variance 2TBh.
    assert (step * z * clip / rate) ** 2 == pytest.approx(2 * temperature * friction * step, rel=1e-12)


def test_arrays_go_step_by_step():
    steps = np.array([1e-3, 1e-2])
    found = noise.noise_multiplier(steps, sampling_rate=np.array([0.1, 0.2]), clip_norm=2.0)
    one = [noise.noise_multiplier(h, sampling_rate=q, clip_norm=2.0) for h, q in zip(steps, (0.1, 0.2), strict=True)]
    np.testing.assert_allclose(found, one)


@pytest.mark.parametrize("bad", [{"step_size": 0.0}, {"sampling_rate": 2.0}, {"clip_norm": 0.0}, {"temperature": -1.0}])
def test_bad_input_names_the_argument(bad):
    good = {"step_size": 1e-3, "sampling_rate": 0.1, "clip_norm": 1.0}
    with pytest.raises(InputError, match=next(iter(bad))):
        noise.noise_multiplier(**{**good, **bad})
