"""An agent under ``wrap`` that is nothing but a pipe: its server's shim takes its place.

The test speaks to the shim over the wrapped agent's own standard streams.
"""

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    entry = json.loads(Path(sys.argv[1]).read_text("utf-8"))["mcpServers"]["sample"]
    os.execvpe(
        entry["command"],
        [entry["command"], *entry["args"]],
        {**os.environ, **entry.get("env", {})},
    )
