"""The model card: the usual headings, what was paid for, and nobody's markup."""

import re

from release_samples import PAID, release

from bayesdp.publish.card import left_out, model_card

HEADINGS = ["Model details", "Intended use", "Training data", "Metrics", "Privacy", "Limitations"]


def test_it_has_the_usual_headings_and_the_promise():
    one = release(intended_use="Only for planning.", contact="office@example.org")
    text = model_card(one)
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    assert "Only for planning." in text
    assert "office@example.org" in text
    assert re.search(r"^DP ε = \S+ at δ = 0\.0001, for everybody", text, re.M)
    assert "None were paid for" in text
    assert "was taken from the data and is taken to be public" in text
    assert "19.61" in text


def test_metrics_are_those_that_were_paid_for():
    text = model_card(release(paid=PAID, num_records=1000))
    assert "- test accuracy, with noise: 0.803\n" in text
    assert "declared beforehand as 1,000" in text
    assert "further test metrics" in left_out(release(paid=PAID))
    assert "nothing can be said" in model_card(release(paid=type(PAID)(**{**vars(PAID), "counts": (-9, 1, 1, 1)})))


def test_texts_from_outside_are_text():
    text = model_card(release(title="a | <b> `c`\n# d", inputs=("x|y", "[z](w)")))
    assert text.startswith("# a \\| &lt;b&gt; \\`c\\` \\# d\n")
    assert "x\\|y, \\[z\\](w)" in text


def test_the_list_does_not_depend_on_the_run():
    assert left_out(release()) == left_out(release(title="Another", num_records=7))
    assert left_out(release()).count("\n| ") > 8


def test_own_code_is_announced():
    assert "model.py" in model_card(release(own_code=True))
    assert "model.py" not in model_card(release())
