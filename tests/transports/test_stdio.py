"""The gate's own standard streams."""

import asyncio
import os
import subprocess
import sys

from tests.support.waiting import read_some, run_async

from thoughtgate.transports.stdio import StdioHost


def test_lines_come_from_one_descriptor_and_frames_go_to_another() -> None:
    async def main() -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        lines: list[bytes] = []
        gone = asyncio.Event()
        host = StdioHost(
            on_line=lines.append, on_gone=gone.set, stdin_fd=in_read, stdout_fd=out_write
        )
        await host.start()
        os.write(in_write, b"one\ntwo")
        host.send(b"{}")
        assert read_some(out_read, 100) == b"{}\n"
        host.pause()
        host.resume()
        os.close(in_write)
        async with asyncio.timeout(10):
            await gone.wait()
        assert lines == [b"one", b"two"]
        await host.close()
        for descriptor in (in_read, out_write, out_read):
            os.close(descriptor)

    run_async(main())


def test_a_reader_that_leaves_is_noticed() -> None:
    async def main() -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        gone = asyncio.Event()
        host = StdioHost(
            on_line=lambda _: None, on_gone=gone.set, stdin_fd=in_read, stdout_fd=out_write
        )
        await host.start()
        os.close(out_write)
        os.close(out_read)
        host.send(b"{}")
        async with asyncio.timeout(10):
            await gone.wait()
        host.send(b"{}")
        await host.close()
        os.close(in_write)
        os.close(in_read)

    run_async(main())


def test_a_stray_print_cannot_reach_the_protected_stdout() -> None:
    code = (
        "import os\n"
        "from thoughtgate.transports.stdio import protect_stdout\n"
        "real = protect_stdout()\n"
        "print('stray')\n"
        "os.write(real, b'frame\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=20)
    assert done.stdout == b"frame\n"
    assert b"stray" in done.stderr
