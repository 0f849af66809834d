"""Secrets in text: tokens by their format and checksum, private keys, passwords in addresses, named values.

Each form is tried only where the automaton found its mark, and matches at that place or not at
all, so the work is linear. Documented examples and placeholders are no secrets.
"""

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from functools import lru_cache
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.redaction import Redactor


class Secret(NamedTuple):
    """A secret in a text."""

    check: str
    tier: str
    start: int
    end: int
    what: str


class _Form(NamedTuple):
    marks: tuple[str, ...]
    """What the secret begins with, in lower case."""
    expression: re.Pattern[str]
    what: str
    min_entropy: float = 2.5
    """Bits per character of the shortest honest token; placeholders have less."""
    tier: str = HARD


def _form(marks: str, expression: str, what: str, entropy: float = 2.5, tier: str = HARD) -> _Form:
    return _Form(tuple(marks.split()), re.compile(expression), what, entropy, tier)


_END: Final = r"(?![A-Za-z0-9_-])"

TOKEN_FORMS: Final = (
    _form("akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])", "an AWS access key id", 2.8),
    _form("akia asia", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", "an AWS access key id", 2.5, SOFT),
    _form("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,251}" + _END, "a GitHub token", 3.2),
    _form("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{16,35}" + _END, "a GitHub token", 3.2, SOFT),
    _form("github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}", "a GitHub token", 3.2),
    _form("glpat- gldt- glrt- glptt- glsoat-", r"gl(?:pat|dt|rt|ptt|soat)-[A-Za-z0-9_.=-]{16,64}", "a GitLab token", 3.0),
    _form("xoxb- xoxp- xoxa- xoxr- xoxs- xoxe xapp-", r"(?:xox[abeprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{12,255}", "a Slack token", 2.8),
    _form("sk_live_ rk_live_", r"[rs]k_live_[A-Za-z0-9]{16,247}", "a Stripe key", 3.0),
    _form("sk_test_ rk_test_", r"[rs]k_test_[A-Za-z0-9]{20,247}", "a Stripe test key", 3.6, SOFT),
    _form("whsec_", r"whsec_[A-Za-z0-9+/=]{20,80}", "a webhook secret", 3.0),
    _form("sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,200}", "an Anthropic key", 3.0),
    _form("sk-", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,200}", "an API key", 3.2),
    _form("aiza", r"AIza[A-Za-z0-9_-]{35}" + _END, "a Google API key", 3.0),
    _form("aiza", r"AIza[A-Za-z0-9_-]{28,40}", "a Google API key", 3.2, SOFT),
    _form("ya29.", r"ya29\.[A-Za-z0-9_-]{20,1024}", "a Google access token", 3.0),
    _form("gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,40}", "a Google client secret", 3.0),
    _form("npm_", r"npm_[A-Za-z0-9]{36}" + _END, "an npm token", 3.2),
    _form("pypi-", r"pypi-AgE[A-Za-z0-9_-]{16,400}", "a PyPI token", 3.0),
    _form("hf_", r"hf_[A-Za-z0-9]{30,40}" + _END, "a Hugging Face token", 3.2),
    _form("sg.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}", "a SendGrid key", 3.0),
    _form(" ".join([*(f"{mark}{digit}" for mark in ("ac", "sk") for digit in range(10)), *(f"sk{letter}" for letter in "abcdef")]), r"(?:AC|SK)[0-9a-f]{32}(?![0-9a-zA-Z])", "a Twilio id or key", 2.8, SOFT),
    _form("shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "a Shopify token", 2.8),
    _form("dop_v1_ doo_v1_", r"do[op]_v1_[0-9a-f]{64}", "a DigitalOcean token", 2.8),
    _form("lin_api_", r"lin_api_[A-Za-z0-9]{32,48}", "a Linear key", 3.0),
    _form("ntn_ secret_", r"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})" + _END, "a Notion token", 3.2),
    _form("hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,200}", "a Vault token", 3.0),
    _form("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,40}", "a Docker token", 3.0),
    _form("figd_", r"figd_[A-Za-z0-9_-]{30,60}", "a Figma token", 3.0),
    _form("atatt", r"ATATT3[A-Za-z0-9_=-]{50,300}", "an Atlassian token", 3.0),
    _form("key-", r"key-[0-9a-f]{32}(?![0-9a-zA-Z])", "a Mailgun key", 2.8),
    _form("xkeysib-", r"xkeysib-[0-9a-f]{40,80}-[A-Za-z0-9]{10,20}", "a Brevo key", 2.8),
    _form("rzp_live_ pk_live_ sq0 eaa", r"(?:rzp_live_[A-Za-z0-9]{14,30}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}|EAA[A-Za-z0-9]{60,250})", "a payment or platform token", 3.0),
    _form("nvapi- gsk_ pplx- r8_ tvly- fc- xai- key_live", r"(?:nvapi-|gsk_|pplx-|r8_|tvly-|xai-)[A-Za-z0-9_-]{24,100}", "an API key", 3.2),
    _form("sntrys_ sntryu_ glsa_ pscale_tkn_ pscale_pw_ lsv2_ sbp_ nrak- tskey- fm2_ dp.pt. dp.st. pcsk_ squ_ akcp pmak- dapi sk-lf- pat-na1- pat-eu1- e2b_ apify_api_ rnd_ vcp_ vck_ jina_ elevenlabs_ bsk_ ops_ey atlasv1",
        r"(?:sntry[su]_|glsa_|pscale_(?:tkn|pw)_|lsv2_(?:pt|sk)_|sbp_|NRAK-|tskey-|fm2_|dp\.[ps]t\.|pcsk_|squ_|AKCp|PMAK-|dapi|sk-lf-|pat-(?:na|eu)1-|e2b_|apify_api_|rnd_|vc[pk]_|jina_|bsk_|ops_ey)[A-Za-z0-9_+/=-]{24,400}", "an API key", 3.2),
    _form("age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{40,70}", "an age key", 3.0),
    _form("$6$ $5$ $2a$ $2b$ $2y$ $y$ $argon2", r"\$(?:[56]|y|argon2\w{1,2})\$[A-Za-z0-9./$=,+-]{30,160}|\$2[aby]\$[0-9]{2}\$[A-Za-z0-9./]{53}", "the hash of a password", 3.2, SOFT),
    _form("accountkey= sharedaccesskey=", r"(?i:accountkey|sharedaccesskey)=[A-Za-z0-9+/]{40,100}={0,2}", "an Azure key", 3.2),
    _form("sig=", r"sig=[A-Za-z0-9%+/]{40,100}(?:%3D|=)", "an Azure shared access signature", 3.2, SOFT),
    _form("hooks.slack.com/services/", r"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{18,30}", "a Slack webhook address", 2.8),
    _form("discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{15,21}/[A-Za-z0-9_-]{40,80}", "a Discord webhook address", 2.8),
    _form(":aa", r":AA[A-Za-z0-9_-]{33}", "a Telegram bot token", 3.0),
)  # fmt: skip

_AFTER_DIGITS: Final = (":aa",)
"""The mark of tokens that begin with the number of a bot."""
_JWT: Final = re.compile(
    r"(eyJ[A-Za-z0-9_-]{8,4096})\.([A-Za-z0-9_-]{4,8192})\.([A-Za-z0-9_-]{0,2048})"
)
_PEM: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?P<body>(?:(?!-----)[A-Za-z0-9+/=:,. \t\r\n\\-]){0,8000})(?:-----END [A-Z0-9 ]{0,40}-----)?"
)
_MIN_KEY: Final = 40
_PUTTY: Final = re.compile(r"PuTTY-User-Key-File-[23]:")
_URL: Final = re.compile(
    r"://([^\s/:@\"'<>`]{0,64}):([^\s/@\"'<>`]{3,128})@([A-Za-z0-9.\[\]:_-]{1,253})"
)
_NAMED: Final = re.compile(
    r"[\w.-]{0,40}[\"'\]]{0,2}[ \t]{0,3}(?:(?:for|of|to|on|für|de|pour|del|di)[ \t][\w .'-]{1,40}?[ \t]?(?=[:=]|is\b|was\b|ist\b|es\b|est\b))?(?:=>|:=|==?|:|\bis\b|\bwas\b|\bto\b|\bist\b|\best\b|\bes\b|\blautet\b)[ \t]{0,3}(?:(?:now|still|jetzt|again)[ \t])?(?:\\?[\"'`])?"
    r"(?P<value>[^\s\"'`,;<>(){}\[\]\\|]{4,256})"
)
_FLAG: Final = re.compile(r"[ =][\"']?(?P<value>[^\s\"'`,;<>(){}\[\]\\|]{6,256})")
_BEARER: Final = re.compile(
    r"(?i:bearer|basic|token)[ \t]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{12,2048})"
)

NAME_MARKS: Final = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "api key"),
    *("apikey", "access_key", "access-key", "accesskey", "private_key", "signing_key", "auth_key"),
    *("encryption_key", "account_key", "credential", "passwort", "contraseña", "mot de passe"),
    *("senha", "пароль", "密码", "パスワード", "db_pass", "pass:", "_pass=", "aws_secret", "_key="),
    *("login:", "pin code", "recovery code", "passcode", "kennwort", "pw:", "pw=", "pass ", "pw "),
)  # fmt: skip
"""Words that name a secret; its value follows."""

BEARER_MARKS: Final = ("bearer ", "basic ", "authorization: token")
KEY_MARKS: Final = ("private key", "putty-user-key-file")
URL_MARKS: Final = ("://",)
JWT_MARKS: Final = ("eyj",)

_PLACEHOLDER: Final = re.compile(
    r"(?i)example|xxxx|your[_-]?|placeholder|change_?me|redacted|dummy|\*\*\*|\.\.\.|…|insert|replace|<|>|\$\{|\{\{|%\(|%s"
    r"|todo|fake|sample|foobar|my[-_]?(?:secret|token|key|password)|not[-_]?a[-_]?real|secret[-_]?here|key[-_]?here|token[-_]?here|goes[-_]?here"
    r"|(?P<same>.)(?P=same){5}|^(?:none|null|nil|true|false|undefined|string|str|required|optional|empty|hidden|masked|unset|password|secret|token|test|testing|pass|default)$"
)
_CODE: Final = re.compile(
    r"^(?:os\.|process\.|env[.\[]|self\.|this\.|config[.\[]|settings\.|args\.|req(?:uest)?\.|ctx\.|user\.|data\.|params\.|secrets\.|vault[:.]|getpass|input|@|\$|&|\*|\.\.?/|~?/|https?:|[a-z]+://)"
    r"|^[A-Za-z_]+(?:\.[A-Za-z_]+)+$|^[A-Z][A-Z_]{3,}$|^[a-z]+(?:[_-][a-z]+)*$|^[a-z]+(?:[A-Z][a-z]+)+$|^[A-Z][a-z]+(?:[A-Z][a-z]+)*[.:!?]?$|^[A-Za-z]+[.:!?]?$|^-+$|^[0-9]{1,5}$|^(?:sha(?:1|256|512)|md5)[-:]"
)
"""Values that are code or plain words, not secrets."""


@lru_cache(maxsize=1024)
def entropy(text: str) -> float:
    """Return the bits per character of a text."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def is_placeholder(text: str) -> bool:
    """Tell whether a value only stands for a secret."""
    return _PLACEHOLDER.search(text) is not None


def find_token(text: str, start: int, form: _Form) -> Secret | None:
    """Return the token of a form that begins at a place."""
    before = text[max(0, start - 8) : start]
    if form.marks == _AFTER_DIGITS:
        outside = len(before) == 8 and before.isdigit()
    else:
        outside = not (before[-1:].isalnum() or before[-1:] == "_")
    if not outside:
        return None
    match = form.expression.match(text, start)
    tier = form.tier
    end = match.end() if match else 0
    value = match.group() if match else ""
    if match is None:
        value, end = _joined(text, start, form)
        tier = SOFT
    if not value or is_placeholder(value) or entropy(value) < form.min_entropy:
        return None
    if form.what == "an API key" and not any(one.isdigit() for one in value):
        return None
    if form.what == "a GitHub token" and value.startswith("gh") and not has_github_checksum(value):
        tier = SOFT  # the right form, but not one that GitHub issued
    return Secret(checks.SECRET_TOKEN, tier, start, end, form.what)


_SPLIT_MARKS: Final = ("akia", "ghp_", "xoxb", "aiza", "glpa", "sk-a", "sk_l", "sk-p")


def _joined(text: str, start: int, form: _Form) -> tuple[str, int]:
    """Return a token that was split by white space, and where it ends."""
    if text[start : start + 4].lower() not in _SPLIT_MARKS:
        return "", 0
    window = text[start : start + 140]
    if not any(one.isspace() for one in window[:60]):
        return "", 0
    match = form.expression.match(re.sub(r"\s+|[\"'+]", "", window))
    pieces = window.split()
    plausible = match is not None and all(len(one) < 48 for one in pieces[:3])
    if not plausible or match is None or not any(map(str.isdigit, match.group()[8:])):
        return "", 0
    return match.group(), min(len(text), start + len(match.group()) + len(pieces))


def has_github_checksum(token: str) -> bool:
    """Tell whether the last six characters are the checksum that GitHub puts there."""
    body = token.partition("_")[2]
    alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    number, digits = zlib.crc32(body[:-6].encode()), ""
    while number:
        number, rest = divmod(number, 62)
        digits = alphabet[rest] + digits
    return digits.rjust(6, "0") == body[-6:]


_SAMPLE: Final = re.compile(r"(?i)\be\.g\.|\bexample|\bsample|\bsuch as|\bfor instance|\bz\. ?B\.")


def find_jwt(text: str, start: int) -> Secret | None:
    """Return the JSON Web Token that begins at a place, if its header can be read."""
    match = _JWT.match(text, start)
    if match is None:
        return None
    try:
        header = json.loads(base64.urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    if not isinstance(header, dict) or not header.keys() & {"alg", "typ", "kid", "enc"}:
        return None
    if _SAMPLE.search(text, max(0, start - 40), start):
        return Secret(checks.SECRET_TOKEN, SOFT, start, match.end(), "a JSON Web Token")
    known = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"  # the example of jwt.io
    tier = SOFT if match[3] == known or not match[3] else HARD
    return Secret(checks.SECRET_TOKEN, tier, start, match.end(), "a JSON Web Token")


def find_private_key(text: str, near: int) -> Secret | None:
    """Return the private key whose first line contains a place."""
    at = text.rfind("-----BEGIN", max(0, near - 50), near + 1)
    if at < 0:
        putty = _PUTTY.match(text, near)
        return (
            Secret(checks.SECRET_KEY, HARD, near, putty.end(), "a private key") if putty else None
        )
    match = _PEM.match(text, at)
    if match is None:
        return None
    body = re.sub(r"\s|\\[nr]", "", match["body"])
    if len(body) < _MIN_KEY or is_placeholder(body[:60]):
        if len(body) < 5:
            return None  # the words alone, as documentation has them
        return Secret(checks.SECRET_KEY, SOFT, at, match.end(), "the start of a private key")
    return Secret(checks.SECRET_KEY, HARD, at, match.end(), "a private key")


_HARMLESS_HOSTS: Final = re.compile(
    r"(?i)^(?:localhost|127\.|host$|hostname|db$|example|.*\.example|.*example\.(?:com|org|net))"
)
_COMMON: Final = frozenset(
    {
        "password",
        "pass",
        "pwd",
        "secret",
        "user",
        "postgres",
        "root",
        "admin",
        "guest",
        "test",
        "mysql",
        "example",
        "changeme",
        "token",
        "x-oauth-basic",
        "passwd",
        "123",
        "1234",
        "username",
    }
)


def find_url_password(text: str, start: int) -> Secret | None:
    """Return the password in an address whose ``://`` is at a place."""
    match = _URL.match(text, start)
    if match is None:
        return None
    password = match[2]
    if (
        is_placeholder(password)
        or password.startswith(("$", "{", "[", "<", "%"))
        or is_placeholder(match[1])
    ):
        return None
    if password.lower() in _COMMON:
        return None
    known = _HARMLESS_HOSTS.match(match[3])
    weak = known or len(password) < 6
    return Secret(
        checks.SECRET_URL,
        SOFT if weak else HARD,
        match.start(2),
        match.end(2),
        "a password in an address",
    )


def find_named(text: str, start: int, end: int) -> Secret | None:
    """Return the secret that follows its name."""
    if text[end - 1] in ":=":
        end -= 1  # the mark has the sign between name and value
    match = _NAMED.match(text, end)
    if match is None:
        flag = text[max(0, start - 2) : start] == "--"
        match = _FLAG.match(text, end) if flag else _BESIDE.match(text, end)
        if match is None or not (flag or _is_random(match["value"])):
            return None
    name = text[max(0, start - 24) : match.start("value")].lower()
    if _PAGE.search(name):
        return None
    tier = judge_value(match["value"].rstrip(".,;:!?"), is_password=_is_password(text[start:end]))
    if not tier:
        return None
    if text[max(0, start - 1) : start] in {"?", "&"}:
        tier = SOFT  # a parameter of an address, such as the link of a mail
    return Secret(
        checks.SECRET_VALUE,
        tier,
        match.start("value"),
        match.end("value"),
        "a value that is named secret",
    )


_BESIDE: Final = re.compile(r"[ \t]{1,3}(?P<value>[A-Za-z0-9+/_.=-]{16,256})(?![\w@])")


def _is_random(value: str) -> bool:
    """Tell whether a value can be nothing but random, as behind the word password in .netrc."""
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return any(map(str.isdigit, value)) and (mixed or _HEXADECIMAL.fullmatch(value) is not None)


_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{32,128}")
_PAGE: Final = re.compile(
    r"(?:page|next|continuation|progress|sync|resume|cursor|max|num|count|total|input|output|prompt|completion|csrf|cache|token_?type|expires|limit)[_ -]{0,2}tokens?|tokens?[_ -]{0,2}(?:count|limit|used|type|url|name|id\b|usage|endpoint|expir\w*)|secret[_ -]?(?:name|id|arn|ref|manager|version)|key[_ -]?(?:name|id|ring)|tokeniz"
)
_PASSWORDS: Final = (
    "pass",
    "pwd",
    "senha",
    "contrase",
    "парол",
    "密",
    "パス",
    "kennwort",
    "login",
    "pin",
    "recovery",
)


def _is_password(name: str) -> bool:
    return any(one in name.lower() for one in _PASSWORDS)


def find_bearer(text: str, start: int) -> Secret | None:
    """Return the credentials of an authorization header."""
    match = _BEARER.match(text, start)
    if match is None:
        return None
    value = match["value"]
    if text[start : start + 5].lower() == "basic":
        return _basic(match)
    tier = judge_value(value, is_password=False)
    return (
        Secret(
            checks.SECRET_VALUE, tier, match.start("value"), match.end("value"), "a bearer token"
        )
        if tier
        else None
    )


def _basic(match: re.Match[str]) -> Secret | None:
    value = match["value"]
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        return None
    user, colon, password = plain.partition(":")
    if (
        not colon
        or not user.isprintable()
        or not password
        or is_placeholder(password)
        or password.lower() in _COMMON
    ):
        return None
    return Secret(
        checks.SECRET_VALUE,
        HARD,
        match.start("value"),
        match.end("value"),
        "credentials of basic authentication",
    )


_RANDOM: Final = 16
_STRONG: Final = 3.5


def judge_value(value: str, *, is_password: bool) -> str:
    """Return the tier of a value whose name says that it is secret; empty if it is none."""
    if is_placeholder(value) or _CODE.search(value) or value.lower() in _COMMON:
        return ""
    digits = any(one.isdigit() for one in value)
    letters = any(one.isalpha() for one in value)
    bits = entropy(value)
    if len(value) >= _RANDOM and digits and letters and bits >= _STRONG:
        return HARD
    if len(value) >= 12 and digits and letters and bits >= 2.8:
        return SOFT
    mixed = not value.isalnum() and letters
    return SOFT if is_password and len(value) >= 6 and (digits or mixed) and letters else ""


_NAMES: Final = Redactor()


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether the value of a member is secret by its name."""
    return _NAMES.is_secret_name(name)


def judge_member(name: str, value: str) -> str:
    """Return the tier of a member's value, if its name says that it is secret."""
    if len(value) > 512 or not is_secret_name(name):
        return ""
    password = _is_password(name)
    if " " in value.strip():
        words = value.split()
        phrase = (
            password and 3 <= len(words) <= 8 and all(map(str.isalpha, words)) and len(value) <= 64
        )
        return SOFT if phrase and not is_placeholder(value) else ""
    return judge_value(value, is_password=password)
