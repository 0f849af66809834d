"""Addresses that carry data out or lead where nothing honest does."""

import base64
import binascii
import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.checks import ARGUMENTS, DEFINITION
from thoughtgate.policy.inspection.finding import HARD, SOFT


class Link(NamedTuple):
    """An address with a finding."""

    check: str
    tier: str
    start: int
    end: int
    what: str


SCHEME_MARKS: Final = (
    "data:text/html",
    "data:application/javascript",
    "data:text/javascript",
    "javascript:",
    "vbscript:",
    "data:text/plain;base64",
    "data:image/svg",
    "gopher://",
    "dict://",
    "phar://",
    "php://",
)
METADATA_MARKS: Final = (
    "169.254.169.254",
    "metadata.google.internal",
    "100.100.100.200",
    "169.254.170.2",
    "fd00:ec2::254",
    "2852039166",
    "0xa9fea9fe",
    "metadata.azure.com",
    "169.254.169.253",
    "[::ffff:169.254.169.254]",
    "0251.0376.0251.0376",
)

_URL: Final = re.compile(r"(?:https?|ftp|hxxps?)://[^\s\"'<>`\\^|]{1,2000}", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:https?|ftp|hxxps?)\Z", re.IGNORECASE)
_IMAGE: Final = re.compile(
    r"!\[[^\]\n]{0,200}\]\(\s?<?$|<(?:img|image|iframe|script|link|video|audio|source|embed|object)\b[^>]{0,200}(?:src|href|data)\s?=\s?[\"']?$|url\(\s?[\"']?$",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(r"\]\(\s?<?$|href\s?=\s?[\"']?$", re.IGNORECASE)
_COLLECTORS: Final = (
    *("webhook.site", "requestbin", "ngrok", "pipedream.net", "burpcollaborator.net", "oastify.com", "oast.", "interact.sh"),
    *("interactsh", "beeceptor.com", "hookbin.com", "requestcatcher.com", "trycloudflare.com", "loca.lt", "localtunnel.me"),
    *("serveo.net", "localhost.run", "transfer.sh", "file.io", "0x0.st", "termbin.com", "ix.io", "canarytokens", "dnslog.cn"),
    *("ceye.io", "postb.in", "ptsv2.com", "ptsv3.com", "smee.io", "typedwebhook.tools", "webhook.cool", "hookdeck", "mockbin"),
    *("bore.pub", "pagekite.me", "telebit", "playit.gg", "tunnelmole", "pinggy", "zrok.io", "expose.dev", "devtunnels.ms"),
    *("webhookinbox.com", "httpdump", "request.bin", "svix.com/in", "grabify", "iplogger", "anonfiles", "bashupload.com", "paste.ee", "xss.report", "xss.ht", "ezxss", "dpaste.org"),
)  # fmt: skip
"""Parts of hosts that collect requests, tunnel to private machines or take files of anyone."""
_WEBHOOKS: Final = (
    "discord.com/api/webhooks",
    "discordapp.com/api/webhooks",
    "api.telegram.org/bot",
    "hooks.slack.com/services",
    "hooks.zapier.com",
    "maker.ifttt.com/trigger",
    "script.google.com/macros",
)
_COLLECTOR: Final = re.compile("|".join(map(re.escape, (*_COLLECTORS, *_WEBHOOKS))))
_FILLED: Final = re.compile(
    r"[{\[<($%]{1,3}[\s_-]?(?:insert|put|your|the|user|all|full|base64|urlencode|encoded|api|secret|password|token|data|content|conversation|history|chat|context|message|prompt|system|key|env|file|summary|response|result|credentials|output|text|here|encode|stolen|email|card|session|cookie|memory|ssn)[^}\]>)]{0,60}[}\]>)]?"
    r"|%7b(?:data|content|secret|conversation|history|token|key)|=(?:base64|encoded?|btoa|exfil|stolen)(?:[(_]|$|&)|=(?:your|the)[_-](?:data|secret|token|key|password|conversation)",
    re.IGNORECASE,
)
_CARRIERS: Final = re.compile(
    r"(?i)^(?:d|data|dump|leak|exfil|secret|secrets|payload|content|msg|history|conversation|chat|info|stolen|c|loot|creds?|credentials|password|pw|token|key|apikey|api_key|env|cookie|cookies|session|body|text|log|note|email|context|memory|prompt|q|p|x|b64|enc|file|ssn|card|s|k|m|v|u)$"
)
_TELLING: Final = re.compile(
    r"(?i)exfil|stolen|steal|leak|collect|attacker|evil|malicious|c2\b|loot|harvest|\bgrab|beacon|pwn"
)
_SHORTENERS: Final = ("bit.ly/", "tinyurl.com/", "is.gd/", "t.ly/", "cutt.ly/", "rb.gy/")
_MIN_CARRIED: Final = 12
_LONG_CARRIED: Final = 100
_HEX: Final = re.compile(r"[0-9a-fA-F-]+")


def judge_link(text: str, start: int, kind: str) -> Link | None:
    """Return what is wrong with the address whose ``://`` is at a place."""
    scheme = _SCHEME.search(text, max(0, start - 6), start)
    match = _URL.match(text, scheme.start()) if scheme else None
    if match is None:
        return None
    start = match.start()
    url, end = match.group().rstrip(".,;:!?)"), match.end()
    lead = text[max(0, start - 260) : start]
    if lead.endswith("("):
        url = url.partition(")")[0]  # Markdown: what follows the parenthesis is no address
        end = start + len(url)
    embedded = any(one in lead for one in ("![", "<", "url(")) and bool(_IMAGE.search(lead))
    carries = _carried(url, embedded=embedded)
    if carries:
        hard = embedded or carries == HARD or _is_collector(url)
        what = "an image that carries data out" if embedded else "a link that carries data out"
        return Link(checks.LINK_DATA, HARD if hard else SOFT, start, end, what)
    return _judge_host(url, start, end, kind, embedded=embedded)


def _is_collector(url: str) -> bool:
    return _COLLECTOR.search(url.lower()[:140]) is not None


def _judge_host(url: str, start: int, end: int, kind: str, *, embedded: bool) -> Link | None:
    if _is_collector(url):
        return Link(
            checks.LINK_HOST,
            HARD if kind == DEFINITION else SOFT,
            start,
            end,
            "an address that collects requests",
        )
    try:
        host = urlsplit(url).hostname or ""
        address = ipaddress.ip_address(host)
    except ValueError:
        if kind != ARGUMENTS and _TELLING.search(host):
            return Link(checks.LINK_HOST, SOFT, start, end, "an address with a telling name")
        if kind == DEFINITION and any(one in url.lower() for one in _SHORTENERS):
            return Link(checks.LINK_HOST, SOFT, start, end, "a shortened address")
        return None
    if not address.is_global:
        return None
    return (
        Link(checks.LINK_HOST, SOFT, start, end, "an address without a name")
        if kind != "result" or embedded
        else None
    )


def _carried(url: str, *, embedded: bool) -> str:
    """Return how clearly an address carries data: hard, soft or empty."""
    filled = _FILLED.search(url)
    _, _, query = url.partition("?")
    if filled:
        in_query = url.find("?") >= 0 and filled.start() > url.find("?")
        return HARD if embedded and in_query else SOFT if in_query or embedded else ""
    best = ""
    for pair in query.split("&")[:50]:
        name, _, value = pair.partition("=")
        if len(value) < _MIN_CARRIED or _HEX.fullmatch(value):
            continue
        if _is_encoded_text(value):
            return HARD
        words = unquote(value.replace("+", " ")).split()
        named = _CARRIERS.match(name)
        if named and embedded:
            best = HARD
        elif (named and len(value) > _LONG_CARRIED) or (embedded and len(words) > 3):
            best = best or SOFT
    if not best and embedded:
        path = urlsplit(url).path if "[" not in url else ""
        last = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        if _is_encoded_text(last):
            return HARD
    return best


def _is_encoded_text(value: str) -> bool:
    """Tell whether a value is text in base64."""
    plain = unquote(value).rstrip("=")
    if len(plain) < 16 or not re.fullmatch(r"[A-Za-z0-9+/_-]+", plain):
        return False
    padded = plain.replace("-", "+").replace("_", "/") + "=" * (-len(plain) % 4)
    try:
        decoded = base64.b64decode(padded).decode("ascii")
    except (ValueError, binascii.Error):
        return False
    return decoded.isprintable() and sum(
        one.isalnum() or one in " :=@._-" for one in decoded
    ) > 0.85 * len(decoded)


def judge_scheme(text: str, start: int, kind: str) -> Link | None:
    """Return what is wrong with an address that is itself a document."""
    if (
        text.startswith("data:image/svg", start)
        and "<script" not in text[start : start + 400].lower()
    ):
        return None
    if text[start : start + 11].lower() == "javascript:" and not re.match(
        r"(?i)javascript:[a-z_(!]", text[start : start + 16]
    ):
        return None
    tier = HARD if kind == DEFINITION else SOFT
    return Link(
        checks.LINK_HOST, tier, start, min(len(text), start + 40), "an address with active content"
    )


def judge_metadata(text: str, start: int, end: int, kind: str) -> Link | None:
    """Return the finding for the address of a cloud's metadata service."""
    if text[end : end + 1].isdigit() or text[start - 1 : start].isdigit():
        return None
    fetched = (
        "://" in text[max(0, start - 8) : start]
        or "/latest/" in text[end : end + 10]
        or "curl" in text[max(0, start - 30) : start]
    )
    tier = HARD if kind == ARGUMENTS or (kind == DEFINITION and fetched) else SOFT
    return Link(checks.LINK_HOST, tier, start, end, "the metadata service of a cloud")
