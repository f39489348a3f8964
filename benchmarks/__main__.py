"""Every benchmark, one after the other, under a line that says how busy the machine was; an error if any failed.

Times on a shared machine are noise: only ratios measured side by side, best of several, are promised.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PARTS = ("accounting", "live_accounting", "instance", "clipping", "vi", "sgld")


def main() -> None:
    """Run the parts; a failed one does not keep the others from running."""
    print(f"{os.cpu_count()} cores, load over the last minute {os.getloadavg()[0]:.1f}", flush=True)
    here = Path(__file__).parent
    codes = [subprocess.run([sys.executable, str(here / f"{part}.py")], check=False).returncode for part in PARTS]
    raise SystemExit(max(map(abs, codes)))


if __name__ == "__main__":
    main()
