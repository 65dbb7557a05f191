import pytest

import gpsift as gs


def test_a_folder_is_made_where_it_is_missing(tmp_path):
    assert gs.Work().folder() is None
    assert gs.Work(checkpoint=tmp_path / "new" / "folder").folder().is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="must be a folder, and is a file"):
        gs.Work(checkpoint=tmp_path / "file").folder()


@pytest.mark.parametrize("jobs", [0, True, 1.5, "two"])
def test_what_is_no_number_of_processes_is_refused(jobs):
    with pytest.raises(ValueError, match="`jobs` must be a number of processes"):
        gs.Work(jobs=jobs)
