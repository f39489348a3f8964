"""The bundle: a folder that holds the model and says in public what was promised.

    model.json, params.npz (posterior.npz, model.py)   what `predict` needs
    metrics.json                                       counts over test records, where they were paid for
    release.json                                       the public facts, and the plan that ε follows from
    index.html, MODEL_CARD.md, LEFT_OUT.md             written from release.json alone
    manifest.json                                      a checksum of each of them, written last

`publishing` makes it of a run, `verify` checks it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from bayesdp.publish import card
from bayesdp.publish.release import FORMAT, VERSION, Release
from bayesdp.report.html.page import page

MANIFEST, RELEASE = "manifest.json", "release.json"
PAGE, CARD, LEFT_OUT = "index.html", "MODEL_CARD.md", "LEFT_OUT.md"
MANIFEST_FORMAT, MANIFEST_VERSION = "bayesdp/bundle", 1


def texts(release: Release) -> dict[str, bytes]:
    """release.json and what is written from it, by name."""
    values = {"format": FORMAT, "version": VERSION, **release.to_dict()}
    return {
        RELEASE: (json.dumps(values, allow_nan=False, indent=1, ensure_ascii=False) + "\n").encode(),
        PAGE: page(release.report(), public=True).encode(),
        CARD: card.model_card(release).encode(),
        LEFT_OUT: card.left_out(release).encode(),
    }


def manifest(files: Mapping[str, bytes]) -> bytes:
    """manifest.json: in one way only, so that no letter of it can be changed unnoticed."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    values = {"format": MANIFEST_FORMAT, "version": MANIFEST_VERSION, "sha256": sums}
    return (json.dumps(values, indent=1) + "\n").encode()
