"""``python -m thoughtgate`` is the same as the ``thoughtgate`` command."""

import sys

from thoughtgate.cli.entry import main

sys.exit(main())
