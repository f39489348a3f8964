"""The model card and the list of what was left out: Markdown, written from `Release` alone.

What was left out is said by kind, in words that are the same for every run: which files a folder happens to hold, a
ledger of people who asked to be forgotten above all, is itself a fact about people.
"""

from __future__ import annotations

from bayesdp.publish.release import Levels, Release
from bayesdp.report import orientation
from bayesdp.rounding import down, up
from bayesdp.unit import spoken

_LEFT_OUT = (
    ("Bayesian and per-instance ε, curves and tables of them", "computed from private data, and not paid for"),
    ("gradient norms, and everything else measured on training records", "the same"),
    ("losses and accuracies during training", "measured on people's records without noise"),
    ("exact test metrics, a confusion matrix, the accuracy of a constant answer", "people tested on are people too"),
    ("how many records were trained on, tested on, held out or watched, unless declared", "exact counts of people"),
    ("which records were trained on, tested on, held out or watched, and the secret that decided it", "who took part"),
    ("digests of the records", "they let anybody test a guess at a record"),
    ("intermediate parameters, optimiser state, keys of the noise", "not needed, or the noise could be taken away"),
    ("the job as it was typed, with the names of files", "it holds the secret of the split"),
    ("the tallies of the accountants", "costs of single records"),
    ("requests to be forgotten, studies and audits of the run", "they tell about single people"),
)


def model_card(release: Release) -> str:
    """MODEL_CARD.md, in the usual headings."""
    one = release.guarantee
    lines = [
        f"# {_plain(release.title)}",
        "",
        "## Model details",
        "",
        f"- Model: {_plain(release.model)}",
        f"- Learned by: {_plain(release.learner)}"
        + (f"; {_plain(release.optimizer)}" if release.optimizer else "")
        + f"; {release.steps:,} noisy steps",
        f"- Inputs: {', '.join(map(_plain, release.inputs))}",
        "- Output: "
        + (f"one of the classes {', '.join(map(_plain, release.answers))}" if release.answers else "a number"),
        f"- Made: {release.created}, with {release.generator}",
        f"- Contact: {_plain(release.contact) or 'not stated by those who published it'}",
        "- How to use it: `bayesdp predict BUNDLE records.csv`",
        *(
            ["- It holds code of its own, model.py, which runs when the model is used: read it first."]
            if release.own_code
            else []
        ),
        "",
        "## Intended use",
        "",
        _plain(release.intended_use) or "Not stated by those who published it.",
        "",
        "## Training data",
        "",
        "Records of people, which are not part of this bundle. "
        + (
            f"Their number was declared beforehand as {release.num_records:,}, whatever it truly was."
            if release.num_records is not None
            else "Their number was taken from the data and is taken to be public: who knows how sampling rates are "
            "chosen can compute it from the plan."
        ),
        "",
        *(f"- {_plain(sentence)}" for sentence in release.declared),
        *([""] if release.declared else []),
        "## Metrics",
        "",
        *_metrics(release),
        "",
        "## Privacy",
        "",
        f"DP ε = {up(one.epsilon)} at δ = {up(one.delta)}, for everybody and whatever the data "
        f"({one.adjacency} adjacency). {_plain(_meaning(release))}",
        "",
        f"- Noise multiplier: {_shown(release.noise)}; sampling rate (Poisson): {_shown(release.rates)}; clip norm: "
        f"{_shown(release.clip_norms)}; steps: {release.steps:,}"
        + (f"; chains: {release.chains:,}" if release.chains > 1 else ""),
        f"- Accounting: {release.engine}. `bayesdp verify BUNDLE` computes it again.",
        *(f"- {_plain(sentence)}" for sentence in one.assumptions),
        "",
        "What others have used (the unit that is protected differs, so that numbers are not comparable line by line):",
        "",
        "| who, and what | DP ε | protects | source |",
        "|---|---|---|---|",
        *(f"| {row.what} | {row.epsilon} | {row.unit} | {row.source} |" for row in orientation.USES),
        "",
        "## Limitations",
        "",
        "- The promise is about one record at a time. Several records of one person, or of a family, are protected "
        "less.",
        "- It does not hide what the model teaches about people in general.",
        "- It covers this bundle. Whatever else was published from the same data comes on top.",
        "- A prediction about somebody is a function of that person's features. About people whose records were "
        "trained on, predictions are not covered by this promise.",
        "- The checksums of manifest.json notice accidents. They do not notice a forger, who would write new ones.",
        "",
    ]
    return spoken("\n".join(lines), one.unit)


def left_out(release: Release) -> str:
    """LEFT_OUT.md."""
    rows = list(_LEFT_OUT)
    if release.paid is not None:
        rows.append(("further test metrics", "only the counts of metrics.json were paid for"))
    return "\n".join(
        [
            "# What was left out of this bundle, and why",
            "",
            "Only what is covered by the DP guarantee, was paid for, or was declared public is published. The list is "
            "the same whatever a run holds.",
            "",
            "| left out | why |",
            "|---|---|",
            *(f"| {what} | {why} |" for what, why in rows),
            "",
        ]
    )


def _metrics(release: Release) -> list[str]:
    if release.paid is None:
        return ["None were paid for, so none are published: exact test metrics tell about the people tested on."]
    found = release.paid.metrics()
    if not found:
        return ["Counts over test records were paid for, but the noise outweighs them: nothing can be said."]
    cost = f"Counts over test records with noise, DP ε = {up(release.paid.epsilon)} of the people tested on."
    return [cost, "", *(f"- {name}: {value:.4g}" for name, value in found.items())]


def _meaning(release: Release) -> str:
    right = release.guarantee.attacker_right
    sure = release.guarantee.attacker_success()
    words = f"Who starts undecided whether a record was used may become at most {up(100 * sure, 3)} % sure of it"
    return words + ("." if right is None else f", and is right at most {up(100 * right, 3)} % of the time.")


def _shown(levels: Levels) -> str:
    values = [level for level, _ in levels]
    if min(values) == max(values):
        return f"{values[0]:.6g}"
    return f"{down(min(values))} to {up(max(values))}, by a schedule (release.json has all)"


def _plain(text: str) -> str:
    """On one line, and without what Markdown or HTML would read as anything but text."""
    joined = " ".join(text.split())
    for letter in "\\`*_[]<>|#":
        joined = joined.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return joined
