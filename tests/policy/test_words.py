"""Words of names, in every spelling that servers use."""

import pytest

from thoughtgate.policy.words import split_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("delete_file", {"delete", "file"}),
        ("delete-file", {"delete", "file"}),
        ("files.delete", {"files", "delete"}),
        ("files/delete", {"files", "delete"}),
        ("deleteFile", {"delete", "file"}),
        ("DeleteFile", {"delete", "file"}),
        ("DELETE_FILE", {"delete", "file"}),
        ("runSQLQuery", {"run", "sql", "query"}),
        ("HTTPDelete", {"http", "delete"}),
        ("s3delete2", {"s", "3", "delete", "2"}),
        ("undelete", {"undelete"}),
        ("löschen_файл", {"l", "ö", "schen", "файл"}),
        ("", set()),
        ("___", set()),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: set[str]) -> None:
    assert split_words(name) == words
