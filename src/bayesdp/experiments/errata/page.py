"""Render docs/errata.md from the computed errata: `python -m bayesdp.experiments.errata.page docs/errata.md`."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np

from bayesdp import convert
from bayesdp.experiments.errata import LISTED, computed, income
from bayesdp.experiments.errata.erratum import SEVERITIES, VERDICTS, Erratum

TITLE = """\
# Errata of the five papers, with numbers

This page is written by a program (`python -m bayesdp.experiments.errata.page docs/errata.md`) and a test compares
the two, so it cannot go stale. Each entry says what is printed, gives a counter-example in numbers, and says what
this package does instead. "Truth" is an enumeration, a closed form or a lattice sum made apart from the library, or
a privacy loss distribution, exact up to its grid; where it is only a lower bound of the truth the label says so.

Papers ([in full](reference/papers.md)): S0, appendix of the ICML 2020 version of Bayesian DP; S1, its earlier arXiv
version; S2, DP variational inference; S3, per-instance Rényi DP of DP-SGD; S4, SG-MCMC as a private mechanism. Numbers
and letters such as C7 or H2 are items of the [reference](reference/README.md). A cost is λ·D_{λ+1}, λ = order − 1.
"""

REFERENCE = {
    "B": "divergences",
    "C": "bayesian",
    "D": "variational",
    "E": "per_instance",
    "F": "langevin",
    "H": "sound",
}
"""Letter of an item → its page in docs/reference."""

_NUDGE = 1 + 1e-12
"""Keeps numbers that end in a decimal half, such as 0.00234375, from being rounded by their last bit."""

SECTIONS = (
    ("Bayesian DP (S0, S1)", range(1, 13)),
    ("Private variational inference (S2)", range(13, 14)),
    ("Per-instance DP (S3)", range(14, 23)),
    ("Private Langevin dynamics (S4)", range(23, 36)),
)


INCOME = """\
## The income example of S1, section III-C, worked

A town publishes the mean income of its residents with ε₀-DP noise. One person earns far more than everybody else,
and an attacker wants to know whether they live there. S1 says that after a high outcome the attacker may be right
with probability 1/(1 + e^−ε₀): 88 % at ε₀ = 2.

In numbers: {residents} residents, {others} with incomes spread evenly from 20,000 to 80,000 and one with {cap},
which is also the cap B; Laplace noise of scale B/(N ε₀) on the mean. A resident of income x moves the mean by ε₀ x/B
noise units, and that is *their own* ε. The attacker looks for outcomes at or above the mean with the resident: half of
all when they are present, e^−ε of that when absent.

{attacks}

So the bound is attained, for one person and some outcomes: 88 % is the belief after a high outcome, not the rate of
right guesses, which for Laplace noise is 1 − e^(−ε₀/2)/2. For the other {others} residents the same release says next
to nothing. This is what Bayesian and per-instance accounting are for: the same noise, a number for each.

How much of that a single Bayesian ε at δ = 1e-5 can say depends on how rare the rich are (ε₀ = 2):

| share of rich people in μ | strong Bayesian ε, exact | S1's accounting (Chernoff, best λ) |
|---|---|---|
{rarities}

Where the rich are more frequent than δ the Bayesian ε must speak for them too and equals ε₀. Where they are not, it
forgets them, which is why a coverage is always shown beside it; and the moment bound, which averages e^(λD) over
people, still sees most of them. A holdout with an order statistic (H5, H12) states instead, for this town's
incomes: for 99 % of people ε is at most {most}; and it says for how many it does not speak.
"""


def render() -> str:
    """The whole page."""
    parts = [TITLE, _severities(), _summary(), _income()]
    for title, numbers in SECTIONS:
        parts.append(f"## {title}\n")
        parts += [_entry(e) for e in computed() if whole_number(e.number) in numbers]
    parts.append(_listed())
    return _linked("\n".join(parts))


def _linked(text: str) -> str:
    """Every item as a link to its place in the reference: (H5) → ([H5](reference/sound.md#h5))."""
    return re.sub(
        rf"(?<![\w-])([{''.join(REFERENCE)}])(\d+)\b",
        lambda item: f"[{item[0]}](reference/{REFERENCE[item[1]]}.md#{item[0].lower()})",
        text,
    )


def whole_number(label: str) -> int:
    """12 for "12b"."""
    return int(label.rstrip("bcde"))


def show(value: float) -> str:
    """Five significant digits, or three after the point in scientific notation: the same on every platform."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if not 1e-4 <= size < 1e7:
        mantissa, exponent = f"{size * _NUDGE:.3e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        decimals = max(0, 4 - math.floor(math.log10(size)))
        text = f"{size * _NUDGE:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 else text


def _severities() -> str:
    rows = [f"- **{letter}**: {words}" for letter, words in SEVERITIES.items()]
    return "\n".join(["Severity:\n", *rows, ""])


def _summary() -> str:
    rows = [
        _row(f"[{e.number}](#{_anchor(e)})", e.severity, e.paper, e.where, *map(show, (e.printed, e.truth, e.ours)))
        for e in computed()
    ]
    head = ["| no. | | paper | place | printed | truth | ours |", "|---|---|---|---|---|---|---|"]
    return "\n".join(["## All at a glance\n", *head, *rows, ""])


def _anchor(e: Erratum) -> str:
    return f"err-{e.number}"


def _entry(e: Erratum) -> str:
    rows = [
        _row(f"printed: {e.printed_label}", show(e.printed)),
        _row(f"truth: {e.truth_label}", show(e.truth)),
        _row(f"ours: {e.ours_label}", show(e.ours)),
        *(_row(label, show(value)) for label, value in e.more),
    ]
    return "\n".join(
        [
            f'### <a id="{_anchor(e)}"></a>{e.number} ({e.severity}): {e.paper}, {e.where}\n',
            f"{e.problem}\n",
            f"*Example.* {e.example}\n",
            "| | |",
            "|---|---|",
            *rows,
            "",
            f"{VERDICTS[e.verdict]}\n",
            f"*Instead:* {e.sound_version} *Printed version:* {e.printed_name}.\n",
        ]
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _listed() -> str:
    rows = [
        _row(f'<a id="err-{e.number}"></a>{e.number}', e.severity, e.paper, e.where, e.problem, e.reading)
        for e in LISTED
    ]
    head = ["| no. | | paper | place | printed | sound reading |", "|---|---|---|---|---|---|"]
    return "\n".join(["## Wording\n", "Nothing to compute here.\n", *head, *rows, ""])


def _income() -> str:
    typical = float(np.median(income.ORDINARY))
    head = (
        "| ε₀ | rich: belief after a high outcome | bound 1/(1 + e^−ε₀) | rich: right guesses over all outcomes "
        f"| income {typical:,.0f}: own ε | income {typical:,.0f}: belief |"
    )
    attacks = []
    for level in (2.0, 5.0, 10.0):
        rich, plain = income.attack(income.RICH, level), income.attack(typical, level)
        for_rich = level, rich.posterior, convert.attacker_success(level), rich.right_guesses
        attacks.append(_row(*map(show, (*for_rich, plain.epsilon, plain.posterior))))
    rarities = [
        _row(words, show(income.strong_bdp(2.0, share, 1e-5)), show(income.chernoff_bdp(2.0, share, 1e-5)))
        for words, share in (
            ("one in a thousand (this town)", 1e-3),
            ("one in 100,000", 1e-5),
            ("one in ten million", 1e-7),
        )
    ]
    return INCOME.format(
        residents=income.RESIDENTS,
        others=income.RESIDENTS - 1,
        cap=f"{income.CAP:,.0f}",
        attacks="\n".join([head, "|---|---|---|---|---|---|", *attacks]),
        rarities="\n".join(rarities),
        most=show(2 * float(np.quantile(income.ORDINARY, 0.99)) / income.CAP),
    )


def main(path: str) -> None:
    """Write the page to `path`."""
    Path(path).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
