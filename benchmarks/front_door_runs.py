"""`bayesdp train` and `predict` for `front_door.py`, whatever version of bayesdp is on the path: many in one process.

Reads lines of JSON, {"train": arguments, "predict": arguments}, and answers each with a line, {"code": …, "said": …}.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile


def _code(arguments: list[str]) -> object:
    """The exit code of a command, which it leaves with."""
    from bayesdp.cli import main

    try:
        main(arguments)
    except SystemExit as left:
        return left.code
    return 0


def main() -> None:
    """Until there are no more lines."""
    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile() as said:
        # What the commands print, by whatever handle they hold, goes to a file.
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        for line in sys.stdin:
            asked = json.loads(line)
            said.truncate(said.seek(0))
            code = _code(["train", *asked["train"]]) or _code(["predict", *asked["predict"]])
            sys.stdout.flush()
            said.seek(0)
            print(json.dumps({"code": code, "said": said.read().decode()[-2000:]}), file=answers, flush=True)


if __name__ == "__main__":
    main()
