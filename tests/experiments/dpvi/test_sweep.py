"""`dpvi-q` and `dpvi-clip` (J12, J13), on made-up records and a few steps."""

import dataclasses

import pytest
from pictures import drawn
from s2_records import REFERENCE, made_up

from bayesdp.experiments.common.style import pick
from bayesdp.experiments.dpvi import recipe, sweep


def test_the_code_sweeps_the_clip_norm_along_with_the_rate():
    for one in sweep.RATES:
        real = {way: {round(r.clip * r.sampling_rate, 9) for r in ones} for way, ones in one.recipes.items()}
        assert (len(real["paper"]), len(real["same clip"])) == (5, 1)
        assert real["same clip"] == {max(real["paper"])}


@pytest.mark.parametrize(
    ("name", "sweeps", "values"),
    [("dpvi-q", sweep.RATES, {"rates": (0.1,)}), ("dpvi-clip", sweep.CLIPS, {"clip_factors": (0.25, 1.0)})],
)
def test_small(name, sweeps, values):
    small = {"load": made_up, "sigmas": (4.0,), "epsilons": (1.0,), "repeats": 2, "steps": 20}
    keep = {way: ones[:1] for way, ones in sweeps[0].recipes.items()}
    one = dataclasses.replace(sweeps[0], **small, reference=REFERENCE, recipes=keep, **values)
    rows = sweep.compute([one])
    paper = pick(rows, way="paper")[0]
    assert paper["claimed"] == recipe.moments(4.0, paper["sampling_rate"], 20)
    assert paper["epsilon"] == recipe.exact(4.0, paper["sampling_rate"], 20)
    ours = pick(rows, way="ours")
    assert [row["epsilon"] for row in ours] == [1.0] * len(ours)
    if name == "dpvi-clip":
        assert ours[0]["clip_norm"] == pytest.approx(ours[1]["clip_norm"] / 4)
    assert len(drawn(name, rows).axes) == 3
