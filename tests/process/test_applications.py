"""Finding the windows of macOS in the process table."""

from thoughtgate.process.applications import find_bundle, processes_of

TABLE = """\
  101 /Applications/Cursor.app/Contents/MacOS/Cursor
  102 /Applications/Cursor.app/Contents/Frameworks/Cursor Helper.app/Contents/MacOS/Cursor Helper
  103 /Applications/Visual Studio Code.app/Contents/MacOS/Electron
  104 /Applications/Cursor.app/Contents/Resources/app/bin/node
  105 /usr/bin/login
 junk
  106
"""


def test_the_main_process_of_a_bundle_is_found() -> None:
    assert find_bundle(TABLE, "Cursor") == [101]
    assert find_bundle(TABLE, "Visual Studio Code") == [103]
    assert find_bundle(TABLE, "Zed") == []


def test_nothing_is_found_without_an_application() -> None:
    assert processes_of("") == []
