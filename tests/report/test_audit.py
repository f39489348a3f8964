import pytest

from bayesdp.errors import InputError
from bayesdp.report.audit import Audit, CanaryBounds, LowerBound

BOUND = LowerBound(method="step", form="counting", epsilon=1.0, upper=2.0, delta=1e-5, failure=0.01, plays=100)


def test_a_bound_above_its_upper_one_refutes():
    wrong = LowerBound(**BOUND.to_dict() | {"epsilon": 2.5})
    found = Audit(bounds=(BOUND, wrong))
    assert found.refuted == (wrong,)
    assert found.best == wrong
    assert [one["refutes"] for one in found.derived()] == [False, True]
    assert found.derived()[0]["reached"] == 0.5


def test_an_audit_comes_back_from_its_dict():
    each = CanaryBounds(names=("record 3",), lower=(0.5,), upper=(float("inf"),), failure=0.01, plays=50)
    found = Audit(bounds=(BOUND,), canaries=each, notes=("A sentence.",))
    assert Audit.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    "wrong", [{"method": "poker"}, {"epsilon": -1.0}, {"failure": 0.0}, {"plays": 0}], ids=lambda one: next(iter(one))
)
def test_what_is_no_bound_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        LowerBound(**BOUND.to_dict() | wrong)
    with pytest.raises(InputError, match="bounds"):
        Audit(bounds=())
