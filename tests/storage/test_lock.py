"""One process at a time, and a lock that dies with its holder."""

import subprocess
import sys
import threading

import pytest

from bayesdp import InputError
from bayesdp.storage.lock import locked

HOLD = """
import sys, pathlib
from bayesdp.storage.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path):
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"held\n"
    return other


@pytest.mark.parametrize("name", ["file", "."])
def test_another_process_is_refused_until_the_holder_dies(tmp_path, name):
    path = tmp_path / name
    with holder(path) as other:
        with pytest.raises(InputError, match=r"to be free, got one that another process is working on"), locked(path):
            pass
        other.kill()
        other.wait()
        with locked(path, wait=True), locked(path):  # and again within one thread
            pass
    with locked(path):
        pass


def test_another_thread_is_another_holder(tmp_path):
    refused = []

    def try_it():
        try:
            with locked(tmp_path / "file"):
                refused.append(False)
        except InputError:
            refused.append(True)

    with locked(tmp_path / "file"):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert refused == [True]


def test_a_link_or_a_missing_folder_is_refused(tmp_path):
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "file", tmp_path / "nowhere" / "file"):
        with pytest.raises(InputError, match="to be writable"), locked(path):
            pass
    assert not (tmp_path / "elsewhere").exists()
