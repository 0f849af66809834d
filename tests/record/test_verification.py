import json
import random
from collections.abc import Callable

import pytest
from tests.support.records import RUN, T0, call

from thoughtgate.core.envelope import GENESIS, Envelope, Run, seal
from thoughtgate.core.record_events import Record
from thoughtgate.core.run_summary import SUCCEEDED, RunSummary, run_ended, run_started
from thoughtgate.policy.policy import Policy
from thoughtgate.record.evidence import (
    checkpoint,
    record_cut,
    record_gap,
    record_opened,
    record_repaired,
    torn_bytes,
)
from thoughtgate.record.verification import (
    MAX_FINDINGS,
    RecordLine,
    Verification,
    Verifier,
    parse_event,
    unreadable,
)

KEY = b"the key"


def sealed(records: list[Record], chain: str = GENESIS, run: Run = RUN) -> tuple[list[bytes], str]:
    envelope, lines = Envelope(run), []
    for record in records:
        line, chain = seal(envelope.wrap(record), chain)
        lines.append(line[:-1])
    return lines, chain


def signed_record(calls: int = 12) -> list[bytes]:
    envelope, chain, lines = Envelope(RUN), GENESIS, []
    records = [run_started(T0, Policy())]
    for number in range(1, calls + 1):
        records += call(number)
    records.append(run_ended(T0 + 99, T0, SUCCEEDED, RunSummary()))
    for number, record in enumerate(records, start=1):
        line, chain = seal(envelope.wrap(record), chain)
        lines.append(line[:-1])
        closing = number == len(records)
        if number % 10 == 0 or closing:
            signed = checkpoint(T0, KEY, chain, closing=closing)
            line, chain = seal(envelope.wrap(signed), chain)
            lines.append(line[:-1])
    return lines


def verify(
    lines: list[bytes],
    key: bytes = b"",
    anchor: str = "",
    *,
    cut: bool = False,
    being_written: bool = False,
) -> Verification:
    verifier = Verifier(key, anchor, being_written=being_written)
    for number, data in enumerate(lines, start=1):
        last = number == len(lines)
        verifier.feed(RecordLine("audit.jsonl", number, data, ended=not (cut and last)))
    return verifier.finish()


def places(report: Verification) -> list[tuple[str, int]]:
    return [(finding.kind, finding.line) for finding in report.findings if finding.is_fault]


def test_an_untouched_record_is_sound() -> None:
    report = verify(signed_record(), KEY)
    assert report.findings == ()
    assert report.runs == 1
    assert report.checkpoints == 4


def edit_byte(lines: list[bytes], dice: random.Random) -> list[bytes]:
    place = dice.randrange(len(lines))
    line = bytearray(lines[place])
    at = dice.randrange(len(line))
    line[at] = dice.choice([byte for byte in range(32, 127) if byte != line[at]])
    return [*lines[:place], bytes(line), *lines[place + 1 :]]


def edit_value(lines: list[bytes], dice: random.Random) -> list[bytes]:
    place = dice.randrange(len(lines))
    changed = lines[place].replace(b"2025", b"2024").replace(b"run-1", b"run-9")
    return [*lines[:place], changed, *lines[place + 1 :]]


def remove(lines: list[bytes], dice: random.Random) -> list[bytes]:
    place, count = dice.randrange(len(lines)), dice.randrange(1, 4)
    return [*lines[:place], *lines[place + count :]]


def swap(lines: list[bytes], dice: random.Random) -> list[bytes]:
    one, other = dice.sample(range(len(lines)), 2)
    lines = [*lines]
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def copy(lines: list[bytes], dice: random.Random) -> list[bytes]:
    lines = [*lines]
    lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
    return lines


def put_in(lines: list[bytes], dice: random.Random) -> list[bytes]:
    forged, _ = sealed(call(500))
    lines = [*lines]
    lines.insert(
        dice.randrange(len(lines) + 1), dice.choice([forged[0], b"", b"#", b'{"v":"1.0"}'])
    )
    return lines


def cut_tail(lines: list[bytes], dice: random.Random) -> list[bytes]:
    return lines[: dice.randrange(1, len(lines))]


def cut_line(lines: list[bytes], dice: random.Random) -> list[bytes]:
    place = dice.randrange(len(lines))
    return [*lines[:place], lines[place][: dice.randrange(len(lines[place]))]]


def forge_rest(lines: list[bytes], dice: random.Random) -> list[bytes]:
    """Rewrite the record from some line on with a chain that fits, but without the key."""
    place = dice.randrange(1, len(lines))
    chain = lines[place - 1][-66:-2].decode()
    forged, _ = sealed(call(700), chain)
    return [*lines[:place], *forged]


TAMPERINGS: list[Callable[[list[bytes], random.Random], list[bytes]]] = [
    edit_byte,
    edit_value,
    remove,
    swap,
    copy,
    put_in,
    cut_tail,
    cut_line,
    forge_rest,
]


def test_a_thousand_random_tamperings_are_found() -> None:
    dice, original, tried = random.Random(20251009), signed_record(), 0
    while tried < 1000:
        tamper = dice.choice(TAMPERINGS)
        lines = tamper(original, dice)
        if lines == original:
            continue
        tried += 1
        report = verify(lines, KEY)
        assert not report.is_sound, (tamper.__name__, tried)


@pytest.mark.promise("edited-record-is-found")
def test_an_edited_line_is_named_and_no_other() -> None:
    lines = signed_record()
    lines[6] = lines[6].replace(b"read_file", b"list_file")
    assert places(verify(lines, KEY)) == [("edited", 7)]


def test_a_line_whose_chain_alone_was_edited_is_named_and_no_other() -> None:
    lines = signed_record()
    lines[6] = lines[6][:-66] + b"0" * 64 + b'"}'
    assert places(verify(lines, KEY)) == [("edited", 7)]


def test_removed_lines_are_named_at_the_line_after_them() -> None:
    lines = signed_record()
    del lines[4:6]
    report = verify(lines, KEY)
    assert places(report) == [("removed", 5)]
    assert "2 or more lines" in report.findings[0].message


def test_a_removed_beginning_is_named() -> None:
    assert places(verify(signed_record()[3:], KEY)) == [("removed", 1)]


def test_swapped_lines_are_named() -> None:
    lines = signed_record()
    lines[4], lines[5] = lines[5], lines[4]
    assert ("moved", 6) in places(verify(lines, KEY))


def test_a_copied_line_is_named() -> None:
    lines = signed_record()
    lines.insert(8, lines[3])
    assert ("moved", 9) in places(verify(lines, KEY))


def test_a_cut_tail_is_found_with_the_key() -> None:
    lines = signed_record()[:-5]
    report = verify(lines, KEY)
    assert places(report) == [("truncated", len(lines))]
    assert report.findings[0].message.startswith(
        "from line 34 on nothing is signed (4 lines) after the last checkpoint "
        "(line 33, 2025-10-09T08:53:20.000Z), and none closes the record: "
    )
    assert "a run that goes on elsewhere" in report.findings[0].message
    assert places(verify(lines)) == []


def test_a_tail_cut_right_after_a_checkpoint_is_found() -> None:
    report = verify(signed_record()[:33], KEY)
    assert places(report) == [("truncated", 33)]
    assert report.findings[0].message.startswith("nothing follows after the last checkpoint (line")


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (33, "every line up to the last checkpoint (line 33, 2025-10-09T08:53:20.000Z) is signed"),
        (34, "1 line after the last checkpoint (line 33, 2025-10-09T08:53:20.000Z) is not signed yet"),
        (35, "2 lines after the last checkpoint (line 33, 2025-10-09T08:53:20.000Z) are not signed yet"),
    ],
)  # fmt: skip
def test_the_open_end_of_a_record_that_is_being_written_is_a_note(kept: int, said: str) -> None:
    report = verify(signed_record()[:kept], KEY, being_written=True)
    assert report.is_sound
    assert [(one.kind, one.line) for one in report.findings if one.kind != "open_run"] == [
        ("being_written", kept)
    ]
    assert report.findings[0].message == f"{said}: the record is being written here"


def test_lines_that_are_not_signed_yet_are_chained_all_the_same() -> None:
    lines = signed_record()[:36]
    lines[34] = lines[34].replace(b"read_file", b"list_file")
    assert places(verify(lines, KEY, being_written=True)) == [("edited", 35)]


def test_being_written_excuses_no_missing_signature_and_is_nothing_without_a_key() -> None:
    assert places(verify(sealed(call(1))[0], KEY, being_written=True)) == [("unsigned", 3)]
    closed = verify(signed_record(), KEY, being_written=True)
    assert closed.findings == ()
    open_end = verify(signed_record()[:36], being_written=True)
    assert [finding.kind for finding in open_end.findings] == ["open_run"]


def test_a_last_checkpoint_in_an_older_file_is_named_with_it() -> None:
    lines = signed_record()[:12]
    verifier = Verifier(KEY)
    for number, data in enumerate(lines, start=1):
        name, place = ("a.000001", number) if number < 12 else ("a", 1)
        verifier.feed(RecordLine(name, place, data))
    [finding] = [one for one in verifier.finish().findings if one.is_fault]
    assert finding.message.startswith("from line 1 on nothing is signed (1 line)")
    assert "(line 11 of a.000001, " in finding.message


def test_a_cut_tail_is_found_with_an_anchor() -> None:
    lines = signed_record()
    head = verify(lines).head
    assert verify(lines, anchor=head).is_sound
    assert places(verify(lines[:-1], anchor=head)) == [("anchor", len(lines) - 1)]


def test_without_a_key_an_unfinished_run_is_noted() -> None:
    report = verify(signed_record()[:10])
    assert report.is_sound
    assert [finding.kind for finding in report.findings] == ["open_run"]


def test_a_record_without_checkpoints_is_a_fault_when_there_is_a_key() -> None:
    lines, _ = sealed(call(1))
    assert places(verify(lines, KEY)) == [("unsigned", 3)]


def test_a_last_line_without_its_end_is_torn() -> None:
    lines, _ = sealed(call(1))
    assert places(verify(lines, cut=True)) == [("torn", 3)]
    assert places(verify([*lines, b'{"v":'], cut=True)) == [("torn", 4)]


def test_a_torn_line_that_was_closed_off_is_only_noted() -> None:
    lines, chain = sealed(call(1))
    torn = b'{"v":"1.0","ty'
    more, _ = sealed([record_repaired(T0, torn_bytes(torn)), *call(2)], chain, Run("run-2"))
    report = verify([*lines, torn, *more])
    assert report.is_sound
    assert [(finding.kind, finding.line) for finding in report.findings] == [("repaired", 4)]
    changed = verify([*lines, torn + b"!", *more])
    assert places(changed) == [("foreign", 4)]


def test_a_gap_that_the_record_states_is_a_note() -> None:
    lines, _ = sealed([record_gap(T0, 7, "full"), *call(1)])
    report = verify(lines)
    assert report.is_sound
    assert report.findings[0].message.startswith("7 events")


def numbered(numbers: list[int], chain: str = GENESIS, run: Run = RUN) -> list[bytes]:
    """Lines with these numbers, in a chain that fits."""
    envelope, lines = Envelope(run), []
    for number in numbers:
        envelope.seq = number - 1
        line, chain = seal(envelope.wrap(call(1)[0]), chain)
        lines.append(line[:-1])
    return lines


def test_lines_cut_off_while_their_gate_ran_are_found_though_the_chain_fits() -> None:
    report = verify(numbered([1, 2, 5, 6, 8]))
    assert places(report) == [("removed", 3), ("removed", 5)]
    two, one = (finding.message for finding in report.findings)
    assert two == "2 lines of run run-1 before this one are gone: cut off while its gate ran"
    assert one == "1 line of run run-1 before this one is gone: cut off while its gate ran"


def test_a_writer_whose_first_lines_are_gone_is_found_though_the_chain_fits() -> None:
    first, chain = sealed(call(1))
    assert places(verify([*first, *numbered([4, 5], chain, Run("run-2"))])) == [("removed", 4)]


def test_a_number_that_comes_again_is_found_though_the_chain_fits() -> None:
    report = verify(numbered([1, 2, 2, 3]))
    assert places(report) == [("moved", 3)]
    assert report.findings[0].message == "number 2 of run run-1 was there before"


def test_each_writer_of_a_file_counts_its_own_lines() -> None:
    chain, lines = GENESIS, []
    envelopes = [Envelope(RUN._replace(shim_id=shim)) for shim in ("a", "b")]
    for turn in (0, 1, 1, 0, 1, 0):
        line, chain = seal(envelopes[turn].wrap(call(1)[0]), chain)
        lines.append(line[:-1])
    assert verify(lines).findings == ()


def test_an_edited_number_is_named_at_its_line_and_no_other() -> None:
    lines = signed_record()
    lines[6] = lines[6].replace(b'"seq":7,', b'"seq":70,')
    report = verify(lines, KEY)
    assert places(report) == [("edited", 7)]
    assert report.findings[0].message.endswith("number 7 stood here, not 70")
    lines[6] = lines[6].replace(b'"seq":70,', b'"seq":2,')
    assert places(verify(lines, KEY)) == [("edited", 7)]


def test_a_line_edited_in_number_and_chain_is_not_taken_for_a_gap() -> None:
    lines = signed_record()
    lines[6] = lines[6].replace(b'"seq":7,', b'"seq":900,')[:-66] + b"0" * 64 + b'"}'
    assert places(verify(lines, KEY)) == [("edited", 7), ("edited", 8)]


def test_an_edited_number_leaves_later_faults_as_they_are() -> None:
    lines = signed_record()
    lines[6] = lines[6].replace(b'"seq":7,', b'"seq":900,')
    del lines[20:22]
    report = verify(lines, KEY)
    assert places(report) == [("edited", 7), ("removed", 21)]
    assert report.findings[1].message == "2 or more lines before this one are gone (run run-1)"


def test_a_number_that_no_other_line_confirms_is_not_trusted() -> None:
    lines, _ = sealed(call(1))
    lines[2] = lines[2].replace(b'"seq":3,', b'"seq":900,', 1)
    [finding] = verify(lines).findings
    assert finding.message.startswith("897 or more lines before this one are gone (run run-1)")
    assert finding.message.endswith("unless its number was edited")


def test_what_a_writer_saw_cut_off_is_a_fault() -> None:
    report = verify(sealed([*call(1), record_cut(T0, 412)])[0])
    assert places(report) == [("removed", 4)]
    assert report.findings[0].message.startswith("412 or more bytes before this line were cut off")


def test_writers_of_a_record_whose_beginning_is_not_kept_may_begin_anywhere() -> None:
    opened = record_opened(T0, number=4, previous_file="a.000003", previous_chain="ab" * 32)
    first, chain = sealed([opened], "ab" * 32)
    later = numbered([40, 41, 43], chain, Run("run-2"))
    assert places(verify([*first, *later])) == [("removed", 4)]


def test_a_file_that_continues_a_lost_one_begins_there() -> None:
    opened = record_opened(
        T0, number=4, previous_file="audit.jsonl.000003", previous_chain="ab" * 32
    )
    lines, _ = sealed([opened, *call(1)], "ab" * 32)
    report = verify(lines)
    assert report.is_sound
    assert report.findings[0].kind == "begins"


def test_a_file_that_begins_anew_after_another_is_a_fault() -> None:
    first, _ = sealed(call(1))
    second, _ = sealed(call(1), run=Run("run-2"))
    verifier = Verifier()
    for name, lines in (("a.000001", first), ("a", second)):
        for number, data in enumerate(lines, start=1):
            verifier.feed(RecordLine(name, number, data))
    assert [(f.kind, f.file, f.line) for f in verifier.finish().findings] == [("removed", "a", 1)]


def test_files_that_follow_one_another_are_one_record() -> None:
    first, chain = sealed(call(1))
    opened = record_opened(T0, number=2, previous_file="a.000001", previous_chain=chain)
    second, _ = sealed([opened], chain, Run("run-2"))
    verifier = Verifier()
    for name, lines in (("a.000001", first), ("a", second)):
        for number, data in enumerate(lines, start=1):
            verifier.feed(RecordLine(name, number, data))
    assert verifier.finish().is_sound


def test_a_file_missing_between_two_is_a_fault() -> None:
    first, _ = sealed(call(1))
    opened = record_opened(T0, number=3, previous_file="a.000002", previous_chain="cd" * 32)
    second, _ = sealed([opened], "cd" * 32, Run("run-2"))
    verifier = Verifier()
    for name, lines in (("a.000001", first), ("a", second)):
        for number, data in enumerate(lines, start=1):
            verifier.feed(RecordLine(name, number, data))
    assert [(f.kind, f.file, f.line) for f in verifier.finish().findings] == [("removed", "a", 1)]


def test_a_line_of_another_contract_is_named() -> None:
    lines, chain = sealed(call(1))
    opened = (
        Envelope(RUN).wrap(Record("message", T0, "", "0", {})).replace(b'"v":"1.3"', b'"v":"2.0"')
    )
    line, _ = seal(opened, chain)
    assert ("version", 4) in places(verify([*lines, line[:-1]]))


def test_a_file_that_is_broken_throughout_gives_a_bounded_report() -> None:
    report = verify([b"x"] * (MAX_FINDINGS + 10))
    assert len(report.findings) == MAX_FINDINGS


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"nul", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_no_event(data: bytes) -> None:
    assert parse_event(data) is None


def test_a_lone_surrogate_is_read() -> None:
    assert parse_event(b'{"a":"\\ud800"}') == {"a": "\ud800"}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b'{"run_id":"\\ud800"}', "half of a surrogate pair in an id"),
        (b'{"call":{"call_id":"\\udfff"}}', "half of a surrogate pair in an id"),
        (b'{"source":{"shim_id":"x\\ud800"}}', "half of a surrogate pair in an id"),
        (b'{"v":"\\ud800"}', "half of a surrogate pair in an id"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        ('{"a":1}'.encode("utf-16-le"), "not a JSON object"),
        (b"[]", "not a JSON object"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(data: bytes, fault: str) -> None:
    assert parse_event(data) is None
    assert unreadable(data) == fault


def test_a_finding_can_be_printed_whatever_the_line_states() -> None:
    said = {"v": "1.0", "type": "record_gap", "record": {"lost": "\ud800"}}
    line, _ = seal(json.dumps(said)[:-1].encode(), GENESIS)
    verifier = Verifier()
    verifier.feed(RecordLine("f", 1, line[:-1]))
    verifier.feed(RecordLine("f", 2, b'{"run_id":"\\ud800"}'))
    gap, foreign = verifier.finish().findings
    assert gap.message.encode() == b"\\ud800 events could not be written here"
    assert "half of a surrogate pair" in foreign.message
