"""The folder of a run: what it may be, and what is said where it is something else."""

import re
from pathlib import Path

import pytest

import bayesdp
from bayesdp import InputError
from bayesdp.learn.loop.run_folder import File, RunFolder


def test_only_a_runs_folder_is_opened(tmp_path):
    for name in ("plan.json", "job.json"):
        folder = tmp_path / name.removesuffix(".json")
        folder.mkdir()
        with pytest.raises(InputError, match="to be the folder of a run"):
            RunFolder.open(folder)
        (folder / name).touch()
        assert RunFolder.open(folder).path == folder


def test_a_folder_is_free_finished_or_neither(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.check_free()
    folder = RunFolder.make(tmp_path / "run")
    folder.check_free()
    with pytest.raises(InputError, match=r"made by training, which has a job\.json"):
        folder.job_file()
    folder.job.touch()
    folder.checkpoint.touch()
    assert folder.job_file() == tmp_path / "run" / "job.json"
    with pytest.raises(InputError, match="It holds an unfinished run: go on with it by resume"):
        folder.check_free()
    with pytest.raises(InputError, match=r"to hold a finished run.*Go on with it: bayesdp resume"):
        folder.check_finished()
    with pytest.raises(InputError, match=r"which has a report\.json.*Go on with it"):
        folder.need(folder.report)
    folder.check_resumable()
    folder.page.touch()
    assert not folder.finished  # the checkpoint goes last
    folder.fingerprint.touch()
    folder.forget_checkpoint()
    assert folder.finished
    folder.check_finished()
    with pytest.raises(InputError, match=r"This one has finished: see its report\.html"):
        folder.check_resumable()
    with pytest.raises(InputError, match="It holds another run"):
        folder.check_free()


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "letter.txt").touch()
    with pytest.raises(InputError, match="It holds other files"):
        RunFolder(tmp_path).check_free()
    with pytest.raises(InputError, match="There is a file of that name"):
        RunFolder(tmp_path / "letter.txt").check_free()


def test_no_other_module_spells_a_name():
    names = [file.name for file in vars(RunFolder).values() if isinstance(file, File) and "." in file.name]
    spelled = re.compile("|".join(f"[\"'/]{re.escape(name)}[\"']" for name in names))
    source = Path(bayesdp.__file__).parent
    for path in source.rglob("*.py"):
        code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert path.name == "run_folder.py" or not spelled.findall(code), path
