"""With the key, whatever is rewritten before the last checkpoint of a record is found."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.records import write_run

from thoughtgate.core.envelope import CHAIN_MEMBER, GENESIS, Run, seal
from thoughtgate.record.reader import record_files, verify_record
from thoughtgate.record.verification import SIGNATURE, Verification

KEY = b"the key of the record"

FILE_SIZE = 9_000
"""Bytes of a file when there are several: room for a checkpoint or more in each."""

Lines = list[bytes]
Forgery = Callable[[Lines, random.Random], Lines]


def signed_record(path: Path, rotate_bytes: int = 0, name: str = "run") -> list[Lines]:
    """Write three signed runs, and return the lines of each file."""
    for number in (1, 2, 3):
        run = Run(f"{name}-{number}", host_id="host", proc_id="1", shim_id=f"shim-{number}")
        write_run(
            path,
            9,
            run=run,
            sign_key=KEY,
            checkpoint_every=8,
            rotate_bytes=rotate_bytes,
            keep=100,
        )
    return [file.read_bytes().splitlines() for file in record_files(path)]


def opened(line: bytes) -> bytes:
    """Return a line without its chain."""
    return line[: line.rindex(CHAIN_MEMBER.encode())]


def chained_anew(files: list[Lines], until: int) -> list[Lines]:
    """Give the first lines chains that fit, and the files among them beginnings that fit."""
    chain, number, made = GENESIS, 0, list[Lines]()
    for lines in files:
        fresh = Lines()
        for line in lines:
            number += 1
            if number > until:
                fresh.append(line)
                continue
            text, event = opened(line), json.loads(line)
            if event["type"] == "record_opened":
                text = text.replace(event["record"]["previous_chain"].encode(), chain.encode())
            closed, chain = seal(text, chain)
            fresh.append(closed[:-1])
        made.append(fresh)
    return made


def verify(path: Path, files: list[Lines]) -> Verification:
    """Put forged files in the places of the true ones, and verify them with the key."""
    for file, lines in zip(record_files(path), files, strict=True):
        file.write_bytes(b"".join(line + b"\n" for line in lines))
    return verify_record(path, key=KEY)


def checkpoints(lines: Lines) -> list[int]:
    return [at for at, line in enumerate(lines) if b'"type":"checkpoint"' in line]


def edit(lines: Lines, dice: random.Random) -> Lines:
    at = dice.randrange(len(lines))
    lines[at] = lines[at].replace(b"2025", b"2024")
    return lines


def remove(lines: Lines, dice: random.Random) -> Lines:
    at = dice.randrange(len(lines))
    return lines[:at] + lines[at + dice.randrange(1, 12) :]


def put_in(lines: Lines, dice: random.Random) -> Lines:
    lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
    return lines


def swap(lines: Lines, dice: random.Random) -> Lines:
    one, other = dice.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def remove_checkpoint(lines: Lines, dice: random.Random) -> Lines:
    del lines[dice.choice(checkpoints(lines))]
    return lines


def move_checkpoint(lines: Lines, dice: random.Random) -> Lines:
    line = lines.pop(dice.choice(checkpoints(lines)))
    lines.insert(dice.randrange(len(lines) + 1), line)
    return lines


def copy_checkpoint(lines: Lines, dice: random.Random) -> Lines:
    lines.insert(dice.randrange(len(lines) + 1), lines[dice.choice(checkpoints(lines))])
    return lines


def swap_checkpoints(lines: Lines, dice: random.Random) -> Lines:
    one, other = dice.choices(checkpoints(lines), k=2)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def restate_checkpoint(lines: Lines, dice: random.Random) -> Lines:
    """Let a checkpoint say something else of itself."""
    at = dice.choice(checkpoints(lines))
    old, new = dice.choice(
        [
            (b'"closing":false', b'"closing":true'),
            (b'"closing":true', b'"closing":false'),
            (b"hmac-sha256", b"hmac-sha1"),
            (b'"seq":', b'"seq":1'),
            (b"shim-1", b"shim-2"),
            (b"run-1", b"run-2"),
        ]
    )
    lines[at] = lines[at].replace(old, new)
    return lines


FORGERIES: list[Forgery] = [
    edit,
    remove,
    put_in,
    swap,
    remove_checkpoint,
    move_checkpoint,
    copy_checkpoint,
    swap_checkpoints,
    restate_checkpoint,
]


def forged(files: list[Lines], forgery: Forgery, dice: random.Random) -> list[Lines]:
    """Forge what stands before the last checkpoint, which is the last line of all."""
    with_checkpoint = [number for number, lines in enumerate(files) if checkpoints(lines[:-1])]
    chosen = dice.choice(with_checkpoint)
    lines = [*files[chosen]]
    kept = [lines.pop()] if chosen == len(files) - 1 else []
    # What opens a file stays where it is: without it the files do not even seem to follow.
    first = [lines.pop(0)] if chosen else []
    if not checkpoints(lines):
        return files
    return [*files[:chosen], first + forgery(lines, dice) + kept, *files[chosen + 1 :]]


@pytest.mark.parametrize("rotate_bytes", [0, FILE_SIZE])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_record_that_was_rewritten_and_chained_anew_is_found(
    tmp_path: Path, forgery: Forgery, rotate_bytes: int
) -> None:
    path = tmp_path / "audit.jsonl"
    files = signed_record(path, rotate_bytes)
    assert (len(files) > 3) == bool(rotate_bytes)
    assert verify(path, chained_anew(files, 10_000)).is_sound
    dice, found = random.Random(forgery.__name__), 0
    for _ in range(60):
        changed = forged(files, forgery, dice)
        if changed == files:
            continue
        found += 1
        length = sum(map(len, changed))
        until = dice.choice([length, length, dice.randrange(length)])
        assert not verify(path, chained_anew(changed, until)).is_sound
    assert found > 9


def test_a_rewritten_line_is_found_at_every_checkpoint_after_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    signed = checkpoints(lines)
    changed = [line.replace(b'"ALLOW"', b'"BLOCK"') for line in lines]
    report = verify(path, chained_anew([changed], len(lines)))
    found = [(finding.kind, finding.line) for finding in report.findings]
    assert found == [(SIGNATURE, at + 1) for at in signed if at > 3]
    assert "rewritten" in report.findings[0].message


def test_a_checkpoint_of_another_record_with_the_same_key_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    (others,) = signed_record(tmp_path / "other.jsonl", name="other")
    closing = others[checkpoints(others)[-1]]
    report = verify(path, chained_anew([[*lines[:20], closing]], 100))
    assert [finding.kind for finding in report.findings if finding.is_fault].count(SIGNATURE)


def test_a_tail_whose_closing_checkpoint_was_put_back_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    assert not verify(path, chained_anew([[*lines[:-9], lines[-1]]], 1000)).is_sound


def test_a_last_checkpoint_of_a_run_that_wrote_nothing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    event = json.loads(lines[-1])
    other = opened(lines[-1]).replace(b"run-3", b"run-9")
    other = other.replace(b'"seq":%d' % event["seq"], b'"seq":1')
    closed, _ = seal(other, json.loads(lines[-2])["chain"])
    report = verify(path, [[*lines[:-1], closed[:-1]]])
    assert [finding.kind for finding in report.findings if finding.is_fault] == [SIGNATURE]


def test_a_beginning_that_is_no_chain_is_not_followed(tmp_path: Path) -> None:
    """A chain is hashed with the line after it: one that is longer could swallow its beginning."""
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    swallowed = "ab" * 40
    body = (
        b'{"v":"1.0","type":"record_opened","record":{"previous_chain":"%b"}' % swallowed.encode()
    )
    closed, _ = seal(body, swallowed)
    report = verify(path, [[closed[:-1], *lines]])
    assert report.findings[0].is_fault


def test_whole_runs_missing_at_the_end_are_found_by_an_anchor_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (lines,) = signed_record(path)
    head = verify(path, [lines]).head
    closing = [at for at in checkpoints(lines) if b'"closing":true' in lines[at]]
    assert len(closing) == 3
    for at in closing[:-1]:
        assert verify(path, [lines[: at + 1]]).is_sound
        assert not verify_record(path, key=KEY, anchor=head).is_sound
