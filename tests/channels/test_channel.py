"""What a channel is: anything with a name that can be told of questions and their ends."""

from pathlib import Path

from tests.support.approvals import NOW, a_desk, a_store, held

from thoughtgate.channels.channel import Channel
from thoughtgate.core.approval import Approval


class Paper:
    """The smallest channel there can be."""

    name = "paper"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show_request(self, approval: Approval) -> None:
        self.lines.append(f"{approval.tool}?")

    def show_outcome(self, approval: Approval) -> None:
        self.lines.append(f"{approval.tool}: {approval.status}")


def test_a_desk_tells_any_channel_of_a_question_and_of_its_end(tmp_path: Path) -> None:
    store, paper = a_store(tmp_path), Paper()
    channel: Channel = paper
    desk = a_desk(store, channels=(channel,))
    desk.ask("run.1", held(), "default", NOW)
    desk.close(NOW + 1)
    assert paper.lines == ["delete_file?", "delete_file: withdrawn"]
    store.close()
