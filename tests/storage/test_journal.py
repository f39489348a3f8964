"""Lines that are only ever added: what was cut off, edited or put back is noticed and named; a crash costs nothing."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError
from bayesdp.storage.journal import Journal


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "a.jsonl")
    for number in range(4):
        made.add({"spent": number})
    return made


def values(journal):
    return [line.value["spent"] for line in journal.lines()]


def refused(journal):
    with pytest.raises(InputError) as problem:
        journal.lines()
    assert "It cannot be relied on" in str(problem.value)
    return str(problem.value)


def test_lines_come_back_in_order_for_their_owner_only(journal):
    assert values(journal) == [0, 1, 2, 3]
    assert all(path.stat().st_mode & 0o077 == 0 for path in journal.path.parent.iterdir())
    last = journal.lines()[-1]
    assert journal.has((last.number, last.checksum))
    assert not journal.has((last.number, "0" * 64))
    assert not journal.has((last.number + 1, last.checksum))


def test_an_edit_is_named_by_its_line(journal):
    text = journal.path.read_text()
    journal.path.write_text(text.replace('"spent":2', '"spent":0'))
    assert "line 3 to be as it was written" in refused(journal)


def test_lines_taken_out_swapped_or_put_in_are_noticed(journal):
    lines = journal.path.read_bytes().splitlines(keepends=True)
    for other in (lines[:1] + lines[2:], [lines[0], lines[2], lines[1], lines[3]], [*lines[:2], *lines[1:]]):
        journal.path.write_bytes(b"".join(other))
        assert "to follow the one before it" in refused(journal)


@pytest.mark.parametrize("cut", [1, 2, 60, 400])
def test_what_was_cut_off_is_noticed(journal, cut):
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-cut])
    assert "lines were cut off, or an older copy was put back" in refused(journal)
    with pytest.raises(InputError):
        journal.add({"spent": 4})


def test_a_file_or_a_head_that_was_put_back_is_noticed(journal, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for path in (journal.path, journal._head):
        shutil.copy(path, old)
    known = journal.add({"spent": 4})
    journal.add({"spent": 5})
    now = journal.path.read_bytes()
    shutil.copy(old / journal.path.name, journal.path)
    assert "an older copy was put back" in refused(journal)
    journal.path.write_bytes(now)
    shutil.copy(old / journal._head.name, journal._head)
    assert "an older head was put back" in refused(journal)
    # Both together look like what they are a copy of; who kept a line elsewhere knows better.
    shutil.copy(old / journal.path.name, journal.path)
    assert values(journal) == [0, 1, 2, 3]
    assert not journal.has((known.number, known.checksum))
    journal._head.unlink()
    assert "a.jsonl.head beside it" in refused(journal)


def test_half_a_line_that_a_crash_left_was_never_acted_on(journal):
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + b'{"before":"12')
    assert values(journal) == [0, 1, 2, 3]
    journal.add({"spent": 4})
    assert values(journal) == [0, 1, 2, 3, 4]


def test_a_whole_line_that_the_head_does_not_know_yet_counts(journal):
    head = journal._head.read_bytes()
    journal.add({"spent": 4})
    journal._head.write_bytes(head)  # a crash between the two
    assert values(journal) == [0, 1, 2, 3, 4]


def test_a_full_disk_adds_nothing(journal, monkeypatch):
    real = os.write

    def full(handle, content):
        return real(handle, content[: len(content) // 2])  # what POSIX does where the last block is half full

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InputError, match="the disk is full"):
            journal.add({"spent": 4})
    assert values(journal) == [0, 1, 2, 3]


def test_processes_take_turns(tmp_path):
    code = """
import sys, pathlib
from bayesdp.storage.journal import Journal
for i in range(15):
    Journal(pathlib.Path(sys.argv[1])).add({"spent": int(sys.argv[2])})
"""
    path = tmp_path / "a.jsonl"
    several = [subprocess.Popen([sys.executable, "-c", code, str(path), str(i)]) for i in range(3)]
    assert [one.wait() for one in several] == [0, 0, 0]
    assert sorted(values(Journal(path))) == [0] * 15 + [1] * 15 + [2] * 15


@given(st.binary(max_size=200), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_journal_or_one_error(tmp_path_factory, content, head):
    journal = Journal(tmp_path_factory.mktemp("any") / "a.jsonl")
    journal.path.write_bytes(content)
    if head is not None:
        journal._head.write_bytes(head)
    with contextlib.suppress(InputError):
        assert journal.lines() == ()  # half a line
