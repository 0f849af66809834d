"""What only definitions have: names that imitate others, and schemas that ask for too much."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.finding import HARD, SOFT, Finding
from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.secret_values import is_secret_name
from thoughtgate.policy.inspection.texts import render_pointer
from thoughtgate.policy.inspection.words import Positions

_LEET: Final = str.maketrans("013457", "oleast")
_MIN_SIMILAR: Final = 6
"""Letters of a name from which one other letter is an imitation and not another word."""
_GENERIC: Final = frozenset(
    {"search", "query", "list", "get", "read", "write", "fetch", "create", "delete", "update", "help", "status", "version", "ping", "echo", "run", "execute", "add", "find", "health"}
)  # fmt: skip
"""Names that many servers have without imitating each other."""


def find_shadowing(
    entry: Mapping[str, Any], text: str, neighbours: Mapping[str, Collection[str]]
) -> Iterator[Finding]:
    """Yield names and descriptions that imitate or refer to another server's tool."""
    name = entry.get("name")
    if not isinstance(name, str):
        return
    folded = _folded(name)
    for server, names in neighbours.items():
        for other in names:
            tier, how = _similarity(name, folded, other)
            if tier:
                what = f"{how} {other!r} of the server {server!r}"
                yield Finding(checks.SHADOW_NAME, tier, "/name", 0, len(name), what)
    yield from _references(name, text, neighbours)


@lru_cache(maxsize=10_000)
def _folded(name: str) -> str:
    """Return a name without what makes it look like another one; the same names come again."""
    return re.sub(r"[^a-z0-9]", "", normalise(name).text).translate(_LEET)


def _similarity(name: str, folded: str, other: str) -> tuple[str, str]:
    if name == other:
        # Common, and harmless where agents see the servers apart: every call names its server.
        return SOFT, "has the same name as"
    like = _folded(other)
    if folded == like:
        plain = re.sub(r"[^a-z0-9]", "", name.lower()) == re.sub(r"[^a-z0-9]", "", other.lower())
        return (SOFT if plain else HARD), "is written like"
    if min(len(folded), len(like)) >= _MIN_SIMILAR and _one_edit(folded, like):
        plural = folded + "s" == like or like + "s" == folded
        return ("", "") if plural else (SOFT, "differs by one letter from")
    return "", ""


def _one_edit(one: str, other: str) -> bool:
    """Tell whether two texts differ by one letter, or by two neighbours that changed places."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    limit = min(len(one), len(other)) - start
    while end < limit and one[-1 - end] == other[-1 - end]:
        end += 1
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    swapped = len(left) == 2 and left == right[::-1]
    return swapped or max(len(left), len(right)) <= 1


_NEAR: Final = 120
_MIN_NAME: Final = 5


def _references(
    name: str, text: str, neighbours: Mapping[str, Collection[str]]
) -> Iterator[Finding]:
    lowered = text.lower()
    told: Positions | None = None
    for server, names in neighbours.items():
        for other in names:
            needle = other.lower()
            if (
                len(needle) < _MIN_NAME
                or other == name
                or needle in _GENERIC
                or needle not in lowered
            ):
                continue
            match = re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", lowered)
            if match is None:
                continue
            told = told or Positions(lowered)
            span = [match.span()]
            orders = told.of(lex.INSTEAD, lex.ALTER, lex.EVERY, lex.NOT, lex.BEFORE, lex.IGNORE)
            if told.close(orders, span, _NEAR):
                what = f"gives instructions about {other!r} of the server {server!r}"
                yield Finding(checks.SHADOW_TEXT, HARD, "/description", 0, 0, what)
            elif "_" in needle:
                what = f"refers to {other!r} of the server {server!r}"
                yield Finding(checks.SHADOW_TEXT, SOFT, "/description", 0, 0, what)


_TALK_NAME: Final = re.compile(
    r"(?:conversation|chat|dialog(?:ue)?|message|session)_?(?:history|log|context|transcript|so_?far|dump|text|content)|(?:full|entire|complete|whole|prior|previous|raw|all)_?(?:conversation|chat|context|dialog(?:ue)?|messages?|transcript|prompt|history|session)"
    r"|system_?(?:prompt|message|instructions?)|(?:user|original|initial|raw)_?(?:prompt|query_text|message|request_text|utterance)|chain_?of_?thought|reasoning_?(?:trace|log)|scratchpad|internal_?(?:reasoning|thoughts|monologue)|model_?(?:reasoning|instructions|context|memory)|available_?tools|tool_?(?:list|inventory|results_?log)|transcript|agent_?(?:context|memory|instructions)|previous_?(?:messages|tool_?outputs?|results)|conversation|llm_?(?:context|instructions)|developer_?(?:message|prompt)"
)
_SECRET_NAME: Final = re.compile(
    r"(?:ssh|private|rsa|pgp|gpg|signing)_?keys?|id_?rsa|env(?:ironment)?_?(?:vars?|variables?|dump|content|file)|dot_?env|environ|aws_?(?:secret|access|credentials)\w*|seed_?phrase|mnemonic|recovery_?(?:phrase|codes?)|\bssn\b|social_?security\w*|\bcvv\b|cvc|credit_?card\w*|card_?number|master_?password|session_?cookies?|browser_?cookies|all_?(?:credentials|secrets|keys|passwords)|(?:user|admin|root|sudo|account|email|bank|login|system|db|database|windows|github|google)_?(?:password|credentials|passwd|pwd|pin)|credentials?(?:_?(?:file|content|dump|json))?|keychain|secrets(?:_?(?:file|content|dump))?|wallet\w*|mfa_?code|two_?factor\w*|one_?time\w*|access_?keys|api_?keys|config_?dump|kubeconfig|known_?secrets|passport\w*|tax_?id|bank_?account\w*|clipboard|bash_?history|shell_?history|git_?credentials"
)
_OPENING: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_SCHEMA_DEPTH: Final = 12


def find_schema(entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the parameters that ask for secrets or for the conversation."""
    described = entry.get("description")
    about = described.lower() if isinstance(described, str) else ""
    for path, name, schema in parameters_of(entry):
        text = _told(schema)
        lowered = normalise(text).text
        snake = _OPENING.sub("_", name).lower().replace("-", "_")
        yield from _judge_parameter(path, snake, lowered, about)


def find_elicited_secrets(params: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the fields of an elicitation that ask for secrets, which MCP forbids to servers."""
    wanted = params.get("requestedSchema")
    for path, name, _ in parameters_of({"inputSchema": wanted}):
        snake = _OPENING.sub("_", name).lower().replace("-", "_")
        if is_secret_name(snake) or _SECRET_NAME.search(snake):
            pointer = render_pointer(path).replace("/inputSchema", "/requestedSchema", 1)
            what = "a field that asks the user for a secret"
            yield Finding(checks.SCHEMA_SECRET, HARD, pointer, 0, 0, what)


def _judge_parameter(path: Any, name: str, text: str, about: str) -> Iterator[Finding]:
    at = Positions(text)
    pointer = render_pointer(path)
    if _asks_for_talk(at, name, about):
        what = "asks for the conversation or the prompt"
        yield Finding(checks.SCHEMA_TALK, SOFT, pointer, 0, 0, what)
    files, secrets = at.of(lex.FILE), at.of(lex.SENSITIVE)
    sentence = name.count("_") >= _WORDS_OF_SENTENCE and _is_order(name)
    asked = sentence or _SECRET_NAME.fullmatch(name)
    owned = at.close(secrets, at.of(lex.USER, lex.WHOLE), 25)
    taken = at.pairs(at.of(lex.WHOLE, lex.FETCH, lex.MOVE), files, 50)
    needless = (asked or _STRONG.search(text)) and not _NEEDS_SECRETS.search(about)
    sourced = owned or _NAMES_SECRET.search(name)
    theirs = _THEIR_SECRET.search(text) and not _NEEDS_SECRETS.search(about)
    found = bool(theirs) or bool(sourced and at.of(lex.SOURCE)) or _OUTPUT.search(text) is not None
    if needless or taken or found or len(owned) > 1 or (asked and (owned or files)):
        tier = HARD if taken and (asked or owned or at.of(lex.MUST)) else SOFT
        yield Finding(checks.SCHEMA_SECRET, tier, pointer, 0, 0, "asks for secrets")


_STRONG_TALK: Final = re.compile(
    r"(?:your_)?system_?(?:prompt|message|instructions?)|chain_?of_?thought|(?:internal|inner|hidden)_?(?:reasoning|thoughts?|monologue|instructions?)"
    r"|(?:full|entire|complete|whole|prior|previous|all|raw)_?(?:conversation|chat|dialog(?:ue)?|transcript|messages)|(?:conversation|chat|session|message)_?(?:history|log|dump|transcript)"
)


def _is_order(name: str) -> bool:
    """Tell whether the name of a parameter says to fetch or hand over something private."""
    said = Positions(name.replace("_", " "))
    private = said.of(lex.SENSITIVE, lex.FILE, lex.TALK, lex.PROMPT)
    moved = said.of(lex.MOVE, lex.FETCH, lex.WHOLE, lex.RUN, lex.USER)
    return bool(_SECRET_NAME.search(name) or (private and moved))


def _asks_for_talk(at: Positions, name: str, about: str) -> bool:
    talk, prompts = at.of(lex.TALK, lex.PROMPT), at.of(lex.PROMPT)
    named = _TALK_NAME.search(name) is not None and not name.endswith("_id")
    asked = (
        _STRONG_TALK.fullmatch(name) is not None
        or (named and bool(talk or at.of(lex.WHOLE, lex.SAY, lex.MOVE) or not at.text))
        or at.close(talk, at.of(lex.WHOLE, lex.MODEL, lex.PRIOR), 40)
        or at.close(prompts, at.of(lex.MOVE, lex.FETCH, lex.SINK), 60)
    )
    if not asked:
        return False
    # A tool about conversations may well ask for one, but hardly for the whole of this one.
    if _VERBATIM.search(at.text):
        return True
    return not _ABOUT_TALK.search(about) or (named and bool(at.close(talk, at.of(lex.WHOLE), 40)))


_THEIR_SECRET: Final = re.compile(
    r"\b(?:user|customer|owner|operator|developer)'?s (?:\w+ )?(?:api keys?|passwords?|access tokens?|tokens?|secrets?|credentials|private keys?|pin|cookies)\b"
)
_VERBATIM: Final = re.compile(
    r"verbatim|word for word|everything (?:the user|they|you|that was)|has told you|have told you|so far,? (?:in full|unedited|verbatim)"
)
_NAMES_SECRET: Final = re.compile(r"key|token|secret|passw|credential")
_WORDS_OF_SENTENCE: Final = 3
"""Underscores from which the name of a parameter is itself an instruction."""
_OUTPUT: Final = re.compile(
    r"\boutput of (?:the )?(?:command )?[`'\"]?(?:env|printenv|set|history|cat|ps|id|whoami|git credential|security|ls|find|gpg|aws|kubectl config)\b"
)
_STRONG: Final = re.compile(
    r"\b(?:one-time (?:code|password)|authenticator|recovery (?:phrase|codes?)|keychain|session token|passwords?|passphrase|credit card|card number|cvv|ssn|social security|private key|seed phrase|mnemonic|credentials|mcp\.json|claude_desktop_config|session cookies?)\b"
)
"""What hardly any tool needs that does not say why."""
_ABOUT_TALK: Final = re.compile(
    r"conversation|chat|message|transcri|slack|teams|discord|thread|email|prompt|llm|completion|assistant|memory|session|agent|model|think|reason"
)
_NEEDS_SECRETS: Final = re.compile(
    r"log(?:s|ged)? ?in|sign ?in|authenticat|connect|credential|password|database|vault|secret|ssh|server|deploy|env|cookie|browser|payment|card|wallet|terminal|process|clipboard|config|kube|host|account|user|registr|smtp|mail|encrypt|decrypt|hash|strength|redact|mask|detect|scan|valid|card|checkout|order|pay|rotat|generat|identity|verif"
)


def parameters_of(entry: Mapping[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the path, name and schema of every parameter."""
    schema = entry.get("inputSchema")
    stack: list[tuple[Any, Any, int]] = [((None, "inputSchema"), schema, 0)]
    while stack:
        path, one, depth = stack.pop()
        if not isinstance(one, dict) or depth > _MAX_SCHEMA_DEPTH:
            continue
        properties = one.get("properties")
        if isinstance(properties, dict):
            for name, member in properties.items():
                place = ((path, "properties"), str(name))
                yield place, str(name), member
                stack.append((place, member, depth + 1))
        if isinstance(one.get("items"), dict):
            stack.append(((path, "items"), one["items"], depth + 1))
    arguments = entry.get("arguments")
    for index, one in enumerate(arguments if isinstance(arguments, list) else ()):
        if isinstance(one, dict):
            yield ((None, "arguments"), index), str(one.get("name", "")), one


def _told(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    texts = [schema.get(key) for key in ("title", "description")]
    return " ".join(text for text in texts if isinstance(text, str))
