"""The readings of a URI and of an object's keys: what servers in other languages make of them.

A server may read a URI with a WHATWG parser (JavaScript's ``new URL``), with an RFC 3986 parser, or
hand its path to a file system, and may decode it more than once. It may match keys without regard
to case (Go). The policy is asked about every reading, and the strictest verdict counts.

Paths of files in arguments have readings too: separators, dots and case differ between systems.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from thoughtgate.wire.frame import fold_key

MAX_DECODING: Final = 3
"""How many levels of percent-encoding are decoded."""

MAX_READINGS: Final = 64
"""Maximum number of readings of a URI. An ordinary URI has one, and one with spaces three;
contrived ones have dozens. A URI with more is refused."""

MAX_READ: Final = 131_072
"""Maximum characters of all readings of a URI together; it bounds the time to find them."""

MAX_VARIANTS: Final = 64
"""Maximum number of keys of one object that fold to the same; more leave a condition undetermined,
because each would be tested by every rule."""

MAX_PATH: Final = 65_536
"""Maximum characters of a text that is read as a path; no system opens a longer one."""

MISSING: Final = object()
"""The value of a key that an object does not have."""

_DEFAULT_PORTS: Final = {
    "http": "80",
    "https": "443",
    "ws": "80",
    "wss": "443",
    "ftp": "21",
    "file": "",
}
"""The special schemes of the WHATWG standard; their backslashes are slashes."""

_NAME: Final = r"[A-Za-z0-9_!$&'()*+,;=:@.~-]"
_PLAIN: Final = re.compile(
    r"(?:file://(?=/(?:[^?#]*[^/?#])?\Z)"
    r"|(?:https?|wss?|ftp)://(?!xn--|[^/]*\.xn--)(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*(?=/)"
    r"|(?!(?:file|https?|wss?|ftp):)[a-z][a-z0-9+.-]*://[a-z0-9.-]*)"
    rf"(?:/(?!\.\.?(?:[/?#]|\Z)){_NAME}+)*/?"
    rf"(?:[?](?:{_NAME}|[/?])*)?"
)
"""A URI with one reading, which most have."""

_ENCODED: Final = re.compile("%([0-9A-Fa-f]{2})")
_ENCODED_RUN: Final = re.compile("(?:%[0-9A-Fa-f]{2})+")
_TO_ENCODE: Final = re.compile("[^!-~]+")
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_SLASHES: Final = re.compile("/{2,}")
_ENCODED_DOT: Final = re.compile("%2[eE]")
_DRIVE: Final = re.compile(r"[A-Za-z][:|]")
_PATH_END: Final = re.compile("[?#]")
_AUTHORITY_END: Final = re.compile("[/?#]")
_URL: Final = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.\t\n\r-]*):([\t\n\r]*[/\\])?")
"""A scheme as URL parsers find it: they skip white space before it and line ends inside it."""
_RESOLVES: Final = re.compile(r"\\|//|(?:\A|/)\.\.?(?:/|\Z)|[. ](?:/|\Z)")
"""What systems resolve in a path: a path without it has one reading."""

_REMOVED: Final = str.maketrans("", "", "\t\n\r")
_C0_AND_SPACE: Final = "".join(map(chr, range(0x21)))
_NUMBER: Final = re.compile("0[xX][0-9A-Fa-f]{0,8}|[0-9]{1,12}")
_IPV4_PARTS: Final = 4


def uri_readings(uri: str) -> tuple[str, ...] | None:
    """Return the other readings of a URI: empty if it has only one, None if it has too many."""
    if _PLAIN.fullmatch(uri):
        return ()
    found: dict[str, None] = {}
    level, size = {uri: None}, 0
    for _ in range(MAX_DECODING + 1):
        fresh: dict[str, None] = {}
        for text in level:
            for spelling in _spellings(text):
                if spelling not in found:
                    found[spelling] = fresh[spelling] = None
                    size += len(spelling)
                if len(found) > MAX_READINGS or size > max(MAX_READ, 2 * len(uri)):
                    return None
        level = {decoded: None for text in fresh if (decoded := _decoded(text)) not in found}
        if not level:
            break
    del found[uri]
    return tuple(found)


def _spellings(text: str) -> Iterator[str]:
    """Yield the spellings of a URI without decoding it, first itself."""
    yield text
    # Parsers of URLs strip the ends and remove line ends and tabs everywhere.
    cleaned = text.strip(_C0_AND_SPACE).translate(_REMOVED)
    # What decodes in C opens what is before a NUL.
    wholes = {cleaned: None, cleaned.partition("\0")[0]: None}
    scheme, _, _ = cleaned.partition(":")
    if scheme.lower() in _DEFAULT_PORTS:
        # What fetches a URL does not send its fragment.
        wholes[cleaned.partition("#")[0]] = None
    for whole in wholes:
        for parsed in _parsed(whole):
            yield parsed
            encoded = _TO_ENCODE.sub(_encode, parsed)
            yield _ENCODED.sub(lambda match: match.group().upper(), encoded)


def _parsed(text: str) -> Iterator[str]:
    yield text
    match = _SCHEME.match(text)
    if match is None:
        yield from _paths(text)
        if text[:1] in {"/", "\\"}:
            # Many servers open what is left after removing ``file://``, if it is there.
            yield from _special("file", "//" + _with_slashes(text))
        return
    scheme, rest = match.group()[:-1].lower(), text[match.end() :]
    for slashed in {rest: None, _with_slashes(rest): None}:
        if scheme in _DEFAULT_PORTS:
            yield from _special(scheme, slashed)
        authority, path, tail = _split(slashed)
        for host in _authorities(scheme, authority):
            for one in _paths(path):
                yield f"{scheme}:{host}{one}{tail}"


def _special(scheme: str, rest: str) -> Iterator[str]:
    """Yield the spellings of a URI whose scheme the WHATWG standard knows."""
    if scheme != "file":
        authority, path, tail = _split("//" + rest.lstrip("/"))
        for host in _authorities(scheme, authority):
            for one in _paths(path or "/"):
                yield f"{scheme}:{host}{one}{tail}"
        return
    authority, path, tail = _split(rest if rest.startswith("//") else "///" + rest.lstrip("/"))
    host = authority[2:]
    # Many programs ignore the host of a file URI, others take it for the first folder.
    for place in (path, f"/{host}{path}") if host else (path,):
        for one in _paths(_drive_path(place or "/"), drives=True):
            yield f"file://{one}{tail}"
            # A program that opens the file ignores the query and a slash at the end.
            yield f"file://{one}"
            yield f"file://{one.rstrip('/') or '/'}"


def _split(rest: str) -> tuple[str, str, str]:
    """Split what follows the scheme: authority with its slashes, path, query and fragment."""
    authority = ""
    if rest.startswith("//"):
        end = _AUTHORITY_END.search(rest, 2)
        cut = end.start() if end else len(rest)
        authority, rest = rest[:cut], rest[cut:]
    tail = _PATH_END.search(rest)
    cut = tail.start() if tail else len(rest)
    return authority, rest[:cut], rest[cut:]


def _with_slashes(rest: str) -> str:
    tail = _PATH_END.search(rest)
    cut = tail.start() if tail else len(rest)
    return rest[:cut].replace("\\", "/") + rest[cut:]


def _authorities(scheme: str, authority: str) -> Iterator[str]:
    """Yield the spellings of an authority: host in lower case, with and without user."""
    yield authority
    if not authority:
        return
    user, at, host = authority[2:].rpartition("@")
    name, colon, number = host.rpartition(":")
    if not colon or not (number.isdecimal() or not number):
        name, number = host, ""
    number = number.lstrip("0") or ("0" if number else "")
    shown = "" if number in {"", _DEFAULT_PORTS.get(scheme)} else f":{number}"
    # Parsers lower the case of hosts only for schemes that they know, so both forms count.
    hosts = dict.fromkeys((host, host.lower(), name + shown, name.lower() + shown))
    if scheme in _DEFAULT_PORTS:
        hosts |= {one + shown: None for one in _host_names(name)}
    for one in hosts:
        yield f"//{user}{at}{one}"
        yield f"//{one}"


def _host_names(host: str) -> Iterator[str]:
    """Yield the names of a host as browsers write them: decoded, in lower case, as a number."""
    name = _decoded(host).lower()
    yield name
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name).casefold().replace("\u3002", ".")
        yield name
        try:
            coded = name.encode("idna")
            # Without the characters that a host ignores, such as a soft hyphen.
            yield coded.decode("idna")
            name = coded.decode("ascii")
            yield name
        except UnicodeError:
            return
    elif "xn--" in name:
        try:
            yield name.encode("ascii").decode("idna")
        except UnicodeError:
            return
    # A dot at the end of a host only says that no domain is to be appended.
    if len(name) > 1 and name.endswith("."):
        yield name.removesuffix(".")
    number = _ipv4(name)
    if number:
        yield number
    yield from _ipv6(name)


def _ipv4(host: str) -> str:
    """Return the dotted form of an address written as numbers; empty for other hosts."""
    parts = host.removesuffix(".").split(".")
    if len(parts) > _IPV4_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return ""
    numbers = [_ipv4_part(part) for part in parts]
    value = sum(number << 8 * (3 - place) for place, number in enumerate(numbers[:-1]))
    value += numbers[-1]
    if value >> 32 or any(number >> 8 for number in numbers[:-1]):
        return ""
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _ipv6(host: str) -> Iterator[str]:
    """Yield the short form of an IPv6 address, and the IPv4 address that it stands for."""
    if not host.startswith("["):
        return
    try:
        address = ipaddress.IPv6Address(host[1:].removesuffix("]").partition("%")[0])
    except ValueError:
        return
    yield f"[{address.compressed}]"
    mapped = address.ipv4_mapped
    if mapped is not None:
        # Python's short form ends in the dotted address, that of browsers does not.
        high, low = divmod(int(mapped), 65_536)
        yield f"[::ffff:{high:x}:{low:x}]"
        yield f"[::ffff:{mapped}]"
        yield str(mapped)


def _ipv4_part(part: str) -> int:
    if part[:2] in {"0x", "0X"}:
        return int(part[2:] or "0", 16)
    octal = part.startswith("0") and not part.strip("01234567")
    return int(part, 8 if octal else 10)


def _drive_path(path: str) -> str:
    """Return a path whose first segment is a drive with a colon after the drive's letter."""
    if _DRIVE.fullmatch(path[1:].partition("/")[0]):
        return f"/{path[1]}:{path[3:]}"
    return path


def _paths(path: str, *, drives: bool = False) -> Iterator[str]:
    """Yield the path as parsers resolve it, as a file system does, and as one after the other do.

    With ``drives``, a parser never removes a drive from the beginning of a path.
    """
    dotted = _ENCODED_DOT.sub(".", path)
    plain = path if dotted == path else _with_plain_dots(path)
    found = {_resolve(plain, collapse=False, drives=one): None for one in {False, drives}}
    for parsed in found:
        yield parsed
        yield _SLASHES.sub("/", parsed)
    yield without_dot_segments(dotted)


def _with_plain_dots(path: str) -> str:
    """Decode the dots of those segments that consist of dots only."""
    segments = path.split("/")
    plain = (_ENCODED_DOT.sub(".", segment) for segment in segments)
    return "/".join(
        dotted if dotted in {".", ".."} else segment
        for dotted, segment in zip(plain, segments, strict=True)
    )


def without_dot_segments(path: str) -> str:
    """Return a path as a file system resolves it: without ``.``, ``..`` and empty segments."""
    return _resolve(_SLASHES.sub("/", path), collapse=True)


def _resolve(path: str, *, collapse: bool, drives: bool = False) -> str:
    if "." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for number, segment in enumerate(segments):
        if segment == "..":
            # The empty segment before the first slash is the root.
            is_drive = drives and len(kept) == 2 and _DRIVE.fullmatch(kept[1])  # noqa: PLR2004
            if (len(kept) > 1 or (kept and kept[0])) and not is_drive:
                kept.pop()
        elif segment != "." and (segment or not collapse or number in {0, len(segments) - 1}):
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/".join(kept)


def _decoded(uri: str) -> str:
    """Decode every percent sign once; of bytes that are not UTF-8, each becomes one character."""
    if "%" not in uri:
        return uri
    return _ENCODED_RUN.sub(_decode_run, uri)


def _decode_run(match: re.Match[str]) -> str:
    data = bytes.fromhex(match.group().replace("%", ""))
    try:
        return data.decode("utf-8")
    except UnicodeError:
        return data.decode("latin-1")


def _encode(match: re.Match[str]) -> str:
    data = match.group().encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def path_readings(path: str) -> tuple[str, ...]:
    """Return a file's path as systems resolve it: POSIX first, then Windows.

    Windows takes backslashes for slashes and ignores dots and spaces at the end of a name.
    """
    posix = without_dot_segments(path)
    slashed = path.replace("\\", "/")
    windows = without_dot_segments("/".join(map(_windows_name, slashed.split("/"))))
    return (posix,) if windows == posix else (posix, without_dot_segments(slashed), windows)


def _windows_name(segment: str) -> str:
    shown = segment.rstrip(" ")
    if shown in {".", ".."}:
        return shown
    return segment.rstrip(". ") or ("." if segment else "")


def fold_path(path: str) -> str:
    """Return the form that a path shares with all that a case-insensitive disk takes for it."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _text_readings(text: str) -> tuple[str, ...]:
    if len(text) > MAX_PATH:
        return ()
    if "\0" in text:
        # A program in C opens what is before it.
        return (text, *_text_readings(text.partition("\0")[0]))
    found = _URL.match(text) if ":" in text else None
    scheme = found[1].translate(_REMOVED).lower() if found else ""
    if found and (found[2] or scheme in _DEFAULT_PORTS):
        others = uri_readings(text)
        if others is None:
            return ()
        # A single letter is a drive.
        return (text, *others, *path_readings(text)) if len(scheme) == 1 else (text, *others)
    return (text, *path_readings(text)) if _RESOLVES.search(text) else (text,)


class ArgumentReadings:
    """The readings of keys and texts in arguments, found once per evaluation.

    Every rule that looks at an object or a text would otherwise read it again.
    """

    __slots__ = ("_objects", "_texts", "ambiguous", "search_steps")

    ambiguous: bool
    """Whether a reading was decided that another reading contradicts."""
    search_steps: int
    """Steps that searches for regular expressions may have taken."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Mapping[str, Any], dict[str, str | list[str]]]] = {}
        self._texts: dict[str, tuple[tuple[str, str], ...]] = {}
        self.ambiguous = False
        self.search_steps = 0

    def texts(self, text: str) -> tuple[tuple[str, str], ...]:
        """Return the readings of a text as a path or URL, each with its folded form.

        Empty if there are too many to trust any.
        """
        known = self._texts.get(text)
        if known is None:
            known = tuple((one, fold_path(one)) for one in _text_readings(text))
            self._texts[text] = known
        return known

    def values(self, members: Mapping[str, Any], key: str) -> tuple[Any, ...] | None:
        """Return the values that servers may read for a key; None if there are too many.

        Where only another spelling is present, the key is also missing.
        """
        names = self._index(members).get(fold_key(key))
        if names is None:
            return (MISSING,)
        if type(names) is str:
            return (members[key],) if names == key else (MISSING, members[names])
        if len(names) > MAX_VARIANTS:
            return None
        values = tuple([members[name] for name in names])
        return values if key in members else (MISSING, *values)

    def _index(self, members: Mapping[str, Any]) -> dict[str, str | list[str]]:
        known = self._objects.get(id(members))
        if known is not None:
            return known[1]
        index: dict[str, str | list[str]] = {}
        for name in members:
            folded = name.lower() if name.isascii() and "\0" not in name else fold_key(name)
            before = index.get(folded)
            if before is None:
                index[folded] = name
            elif type(before) is list:
                before.append(name)
            else:
                index[folded] = [str(before), name]
        # The object is kept with its index, so that its id cannot become another's.
        self._objects[id(members)] = (members, index)
        return index
