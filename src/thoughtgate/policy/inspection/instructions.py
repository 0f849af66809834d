"""Instructions to the model in text that should only describe: single words say nothing, combinations do.

Each rule combines categories of words that stand close together and has a weight. The weights of
a passage are added; text that quotes or explains such phrases weighs less. One list of rules
serves definitions and contents; a few weigh differently, because a definition may well say how its
tool is to be used, while a result has no business to address the model at all.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.explanation import PASSAGE, Explanation, Signal
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.inspection.words import Positions, Span

HARD_AT: Final = {checks.DEFINITION: 5.0, checks.ARGUMENTS: 5.5, checks.RESULT: 5.5}
SOFT_AT: Final = 3.0
CORE: Final = {checks.DEFINITION: 1.5, checks.ARGUMENTS: 2.0, checks.RESULT: 2.0}
"""Weight from which a rule counts by itself; lighter ones only add to it."""
MAX_LIGHT: Final = 2.0
"""What all light rules of a passage add together."""
MANY_LIGHT: Final = 4.5
"""Weight of light rules alone from which a passage counts."""


class Passage(NamedTuple):
    """A check that matched in a passage, with the tier of the whole passage."""

    check: str
    tier: str
    start: int
    end: int


_Match = Callable[[Positions], list[Span]]


class _Rule(NamedTuple):
    name: str
    check: str
    definition: float
    """Weight in a definition."""
    content: float
    """Weight in arguments and results."""
    match: _Match


def _words(*categories: str) -> _Match:
    return lambda at: at.of(*categories)


def _then(first: tuple[str, ...], gap: int, second: tuple[str, ...]) -> _Match:
    return lambda at: at.pairs(at.of(*first), at.of(*second), gap)


def _then_then(
    first: tuple[str, ...], gap: int, second: tuple[str, ...], wide: int, third: tuple[str, ...]
) -> _Match:
    return lambda at: at.pairs(at.pairs(at.of(*first), at.of(*second), gap), at.of(*third), wide)


def _beside(one: tuple[str, ...], gap: int, other: tuple[str, ...]) -> _Match:
    return lambda at: at.close(at.of(*one), at.of(*other), gap)


def _expression(pattern: str) -> _Match:
    compiled = re.compile(pattern)
    return lambda at: [match.span() for match in compiled.finditer(at.text)]


_GIVE: Final = (lex.MOVE, lex.FETCH)
_PRIVATE: Final = (lex.SENSITIVE, lex.FILE, lex.TALK, lex.PROMPT)

_URL: Final = re.compile(r"(?:https?|s3|gs|s?ftp|wss?)://[^\s\"'<>)\]]{4,200}")
_MAIL: Final = re.compile(r"@[a-z0-9-]{1,63}\.[a-z][a-z0-9.-]{1,60}")
_NUMBER: Final = re.compile(
    r"\+[0-9][0-9 ]{8,15}\b|\b[a-z]{2}[0-9]{2}[a-z0-9]{4}[0-9]{7,20}\b|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|\b0x[0-9a-f]{40}\b"
)


def _addresses(at: Positions) -> list[Span]:
    return at.remembered("addresses", _find_addresses)


def _find_addresses(text: str) -> list[Span]:
    found = [match.span() for match in _NUMBER.finditer(text)]
    if "://" in text:
        found += [match.span() for match in _URL.finditer(text)]
    if "@" in text:
        found += [match.span() for match in _MAIL.finditer(text)]
    return sorted(found)


def _to_address(categories: tuple[str, ...], gap: int) -> _Match:
    return lambda at: at.pairs(at.of(*categories), _addresses(at), gap)


def _data_to_address(at: Positions) -> list[Span]:
    return at.close(at.of(lex.SENSITIVE, lex.FILE, lex.TALK, lex.PROMPT), _addresses(at), 120)


_VERB_LAST: Final = (
    "yok say",
    "gormezden",
    "görmezden",
    "unut",
    "ignorieren",
    "vergessen",
    "negeren",
)


def _verb_behind(at: Positions) -> list[Span]:
    """Find "previous instructions ignore", as Japanese, Korean, Hindi and Turkish put it."""
    verbs = [
        span
        for span in at.of(lex.IGNORE)
        if at.text[span[0]] >= "\u0900" or at.text.startswith(_VERB_LAST, span[0])
    ]
    rules = at.pairs(at.of(lex.PRIOR), at.of(lex.RULES, lex.PROMPT), 14)
    return at.pairs(rules, verbs, 14) if verbs else []


_IGNORED: Final = re.compile(
    r"(?:(?:is|are|be|been|being) (?:now )?(?:to be )?)(?:ignored|disregarded|forgotten|overridden|dropped|set aside)"
)


def _are_ignored(at: Positions) -> list[Span]:
    """Find "all instructions given before are to be disregarded"."""
    rules = at.pairs(at.of(lex.PRIOR), at.of(lex.RULES, lex.PROMPT), 14)
    rules = sorted([*rules, *at.pairs(at.of(lex.RULES, lex.PROMPT), at.of(lex.PRIOR), 14)])
    return at.pairs(rules, [match.span() for match in _IGNORED.finditer(at.text)], 30)


_CONTENTS: Final = re.compile(
    r"\b(?:contents?|text|output|cop(?:y|ies)|values?|data) (?:of|in|from)\b"
)


def _contents_of_file(at: Positions) -> list[Span]:
    """Find "the contents of ~/.kube/config", which few tools need."""
    return at.pairs([match.span() for match in _CONTENTS.finditer(at.text)], at.of(lex.FILE), 25)


def _tool_on_file(at: Positions) -> list[Span]:
    """Find "call read_file on ~/.ssh/id_rsa"."""
    named = at.pairs(at.of(lex.CALL), _tool_names(at), 20)
    return at.pairs(named, at.of(lex.FILE), 40)


def _moved_to_address(at: Positions) -> list[Span]:
    moved = at.pairs(at.of(lex.MOVE, lex.THEFT, lex.FETCH), at.of(*_PRIVATE, lex.GOODS), 70)
    return at.pairs(moved, _addresses(at), 90)


_TOOL_NAME: Final = re.compile(r"\b[a-z]{2,20}(?:_[a-z0-9]{2,20}){1,4}\b|`[a-z][a-z0-9_.-]{2,40}`")


def _tool_names(at: Positions) -> list[Span]:
    return at.remembered("tools", _find_tool_names)


def _find_tool_names(text: str) -> list[Span]:
    if "_" not in text and "`" not in text:
        return []
    return [match.span() for match in _TOOL_NAME.finditer(text)]


def _alter_other_tools(at: Positions) -> list[Span]:
    changes = at.pairs(at.of(lex.ALTER), at.of(lex.TARGET), 50)
    return at.close(changes, sorted([*at.of(lex.TOOL, lex.OTHERS), *_tool_names(at)]), 140)


def _alter_to_address(at: Positions) -> list[Span]:
    return at.pairs(at.pairs(at.of(lex.ALTER), at.of(lex.TARGET), 50), _addresses(at), 60)


def _call_a_tool(at: Positions) -> list[Span]:
    return at.pairs(at.of(lex.CALL), sorted([*at.of(lex.TOOL), *_tool_names(at)]), 30)


def _all_traffic_here(at: Positions) -> list[Span]:
    """Find "all calls must be mirrored to this tool", and the like about a tool by its name."""
    here = sorted([*at.of(lex.HERE), *_tool_names(at)])
    routed = at.close(at.of(lex.ROUTE, lex.MOVE), here, 60)  # German puts the verb last
    return at.pairs(at.of(lex.TRAFFIC), routed, 70)


def _call_for_all(at: Positions) -> list[Span]:
    """Find "for every prompt, call this"."""
    called = at.pairs(at.of(lex.TRAFFIC), at.of(lex.CALL), 50)
    return at.pairs(called, sorted([*at.of(lex.HERE, lex.THIS), *_tool_names(at)]), 12)


def _items_to_tool(at: Positions) -> list[Span]:
    moved = at.pairs(at.of(lex.MOVE), at.of(lex.ITEMS, lex.GOODS, lex.TALK), 30)
    return at.pairs(moved, sorted([*at.of(lex.HERE), *_tool_names(at)]), 40)


def _despite_the_user(at: Positions) -> list[Span]:
    meant = sorted([*at.of(lex.TARGET, lex.TOOL, lex.ANSWER), *_tool_names(at)])
    return at.close(at.of(lex.DESPITE), meant, 120)


def _take_and_hand_on(at: Positions) -> list[Span]:
    """Find "read the key … and supply it in `seed`"."""
    taken = at.pairs(at.of(lex.FETCH), at.of(lex.SENSITIVE, lex.FILE), 50)
    sinks = sorted([*at.of(lex.SINK), *_tool_names(at)])
    return at.pairs(at.pairs(taken, at.of(lex.MOVE), 100), sinks, 30)


def _model_calls(at: Positions) -> list[Span]:
    addressed = at.of(lex.SPOKEN, lex.MODELS)
    return at.pairs(addressed, _call_a_tool(at), 30)


def _other_tools(at: Positions) -> list[Span]:
    return sorted([*at.of(lex.OTHERS), *_tool_names(at), *at.remembered("rivals", _find_rivals)])


_RIVAL: Final = re.compile(
    r"\bother (?:[a-z-]{2,20} ){0,2}(?:servers?|tools?|plugins?|providers?|connectors?)\b"
)


def _find_rivals(text: str) -> list[Span]:
    return [match.span() for match in _RIVAL.finditer(text)]


def _blame_others(at: Positions) -> list[Span]:
    return at.close(_other_tools(at), at.of(lex.BLAME), 60)


def _private_is_moved(at: Positions) -> list[Span]:
    """Find "the token goes in the trailer"."""
    private = at.of(lex.SENSITIVE, lex.TALK, lex.FILE, lex.PROMPT)
    return at.pairs(private, at.of(lex.PASSIVE_MOVE), 25)


def _private_into_parameter(at: Positions) -> list[Span]:
    """Find "the earlier messages were passed along in `payload`"."""
    private = at.of(lex.SENSITIVE, lex.TALK, lex.FILE, lex.PROMPT)
    moved = at.pairs(private, at.of(lex.MOVE, lex.PASSIVE_MOVE), 60)
    return at.pairs(moved, [match.span() for match in _PARAMETER.finditer(at.text)], 4)


_PARAMETER: Final = re.compile(
    r"\b(?:in|into|as|via|through|with|to|under|inside)\s(?:the\s(?:field|parameter|argument)\s)?[`'\"][a-z][a-z0-9_]{0,40}[`'\"]"
)


def _their_data_on(at: Positions) -> list[Span]:
    """Find "gather the user's contacts and submit them"."""
    taken = at.pairs(at.of(lex.FETCH), at.of(lex.THEIRS), 70)
    return at.pairs(taken, at.of(lex.MOVE), 60)


_ACCOUNT: Final = re.compile(r"\b[a-z]{2}[0-9]{2}[a-z0-9]{4}[0-9]{7,20}\b|\b0x[0-9a-f]{40}\b")


def _to_account(at: Positions) -> list[Span]:
    """Find an account that something goes to; one after "e.g." has no verb before it."""
    accounts = [match.span() for match in _ACCOUNT.finditer(at.text)]
    return at.pairs(at.of(lex.MOVE, lex.ALTER, lex.ACT, lex.TARGET, lex.MONEY), accounts, 60)


def _address_in_order(at: Positions) -> list[Span]:
    return at.pairs(at.of(lex.MUST), at.pairs(at.of(lex.MOVE), _addresses(at), 120), 60)


_ORDER: Final = re.compile(
    r"\b(?:you (?:must|should|need|have|are)|please|must|always|never|make sure|forward|send|assistant|agent)\b"
)


def _styled_order(at: Positions) -> list[Span]:
    if not at.of(lex.STYLE):
        return []
    return at.pairs(at.of(lex.STYLE), [one.span() for one in _ORDER.finditer(at.text)], 200)


_RULES: Final = (
    # What replaces instructions.
    _Rule("replace", checks.OVERRIDE, 6, 6, _then_then((lex.IGNORE,), 25, (lex.PRIOR,), 22, (lex.RULES, lex.PROMPT))),
    _Rule("replace matters", checks.OVERRIDE, 2.5, 2.5, _then_then((lex.IGNORE,), 20, (lex.PRIOR,), 20, (lex.MATTERS,))),
    _Rule("replace matters", checks.OVERRIDE, 2.5, 2.5, _then_then((lex.IGNORE,), 20, (lex.MATTERS,), 20, (lex.PRIOR,))),
    _Rule("replace behind", checks.OVERRIDE, 6, 6, _then_then((lex.IGNORE,), 30, (lex.RULES, lex.PROMPT), 20, (lex.PRIOR,))),
    _Rule("replace before", checks.OVERRIDE, 6, 6, _verb_behind),
    _Rule("replace passively", checks.OVERRIDE, 4, 3.5, _are_ignored),
    _Rule("reset", checks.OVERRIDE, 4, 3, _words(lex.RESET)),
    _Rule("the above", checks.OVERRIDE, 2.5, 2, _words(lex.ABOVE)),
    _Rule("obey", checks.OVERRIDE, 2.5, 2, _words(lex.OBEY)),
    _Rule("replace rules", checks.OVERRIDE, 2, 3, _then((lex.IGNORE,), 40, (lex.RULES, lex.PROMPT))),
    _Rule("reset", checks.OVERRIDE, 5, 4, _then((lex.RULES, lex.PROMPT), 60, (lex.RESET,))),
    _Rule("guards off", checks.OVERRIDE, 2.5, 3, _then((lex.IGNORE,), 20, (lex.GUARD,))),
    _Rule("ignore user", checks.OVERRIDE, 2, 2, _then((lex.IGNORE,), 12, (lex.USER,))),
    _Rule("new orders", checks.OVERRIDE, 1.5, 1.5, _words(lex.NEW)),
    _Rule("own rules changed", checks.OVERRIDE, 3, 3, _then((lex.OWN_RULES,), 12, (lex.CHANGED,))),
    # Who speaks.
    _Rule("marker", checks.ROLE, 4, 4, _words(lex.MARKER)),
    _Rule("title", checks.ROLE, 3, 3, _words(lex.TITLE)),
    _Rule("line", checks.ROLE, 2.5, 2.5, _expression(r"(?m)^[\s#>*\[-]{0,6}(?:system|developer|admin|root)(?: (?:message|prompt|note|instruction|override|notice|alert))?\]?\**\s?:")),
    _Rule("line", checks.ROLE, 2, 1.5, _expression(r"[.!?]\s(?:system|admin|developer|operator)(?: (?:message|note|notice))?:\s")),
    _Rule("line", checks.ROLE, 2, 2.5, _expression(r"[\"'=(\[{|>]\s?(?:system|admin|developer|root)(?: (?:message|note|notice|override))?\]?:\s(?=[a-z])")),
    _Rule("mode", checks.ROLE, 3, 3, _expression(r"\byou(?:'re| are) (?:now )?(?:running |operating )?(?:in|under) (?:[a-z-]{3,20} ){1,2}mode\b")),
    _Rule("turn", checks.ROLE, 2, 1, _expression(r"(?m)^\s{0,4}(?:assistant|human|user|ai)\s?:\s")),
    _Rule("role", checks.ROLE, 2, 2, _words(lex.ROLE)),
    _Rule("feigned end", checks.ROLE, 2, 2, _expression(r"[-=#*]{2,10}\s?end of (?:the |this )?[a-z]{3,20}(?: [a-z]{3,20})?\s?[-=#*]{2,10}")),
    _Rule("feigned end", checks.ROLE, 2.5, 2.5, _expression(r"\b(?:tool|function|search|user|document|page|ticket|email|data) ?(?:output|result|results|response|input|content|data)? ends? here\b")),
    _Rule("turn within", checks.ROLE, 1.5, 1.5, _expression(r"[.!?\"'>][ \t]{1,3}(?:human|assistant):\s")),
    _Rule("game", checks.ROLE, 2, 2, _expression(r"\b(?:let'?s|let us) (?:play|pretend|imagine|role-?play)\b[^.\n]{0,40}\byou(?:'re| are| play)")),
    # Secrecy.
    _Rule("not tell", checks.SECRECY, 3, 3, _then_then((lex.NOT,), 25, (lex.TELL,), 45, (lex.USER,))),
    _Rule("not tell this", checks.SECRECY, 2.5, 2.5, _then_then((lex.NOT,), 8, (lex.TELL,), 12, (lex.THIS,))),
    _Rule("tell not", checks.SECRECY, 3, 3, _then_then((lex.USER,), 20, (lex.TELL,), 6, (lex.NOT,))),
    _Rule("not aware", checks.SECRECY, 3, 3, _then_then((lex.NOT,), 30, (lex.USER,), 30, (lex.AWARE,))),
    _Rule("aware not", checks.SECRECY, 3, 2, _then_then((lex.USER,), 15, (lex.NOT,), 15, (lex.AWARE,))),
    _Rule("quiet", checks.SECRECY, 1.5, 1.5, _words(lex.QUIET)),
    _Rule("quiet deed", checks.SECRECY, 2, 2, _then((lex.QUIET,), 25, (lex.MOVE, lex.HARM, lex.ACT))),
    _Rule("quiet act", checks.SECRECY, 2.5, 2.5, _beside((lex.QUIET,), 50, _PRIVATE)),
    _Rule("keep", checks.SECRECY, 3, 3, _words(lex.KEEP)),
    _Rule("out of the loop", checks.SECRECY, 3, 3, _expression(r"\b(?:keep|leave|leaving|keeping) (?:the )?(?:users?|customers?|humans?|persons?|people|owners?|them|him|her) (?:out of (?:the loop|it|this)|in the dark|uninformed|unaware)\b")),
    _Rule("not brought up", checks.SECRECY, 3, 3, _expression(r"\b(?:don't|do not|never|avoid|no need to|without) (?:bring\w* (?:up|it up|this up)|mention\w*|refer\w* to|point\w* out|talk\w* about|includ\w*|rais\w*|say\w*|comment\w* on)\b[^.\n]{0,60}\b(?:when you (?:answer|reply|respond|summari[sz]e|report)|in your (?:answer|reply|summary|response|report|output))")),
    _Rule("unrest", checks.SECRECY, 2, 2, _words(lex.UNREST)),
    _Rule("unrest told", checks.SECRECY, 2, 2, _beside((lex.UNREST,), 60, (lex.TELL, lex.MOVE))),
    _Rule("cover story", checks.SECRECY, 3, 2.5, _then((lex.COVER,), 90, (lex.SAY, lex.ANSWER, lex.TELL))),
    _Rule("dictate", checks.SECRECY, 3, 2.5, _then_then((lex.NOT,), 12, (lex.TELL, lex.ANSWER), 20, (lex.HUSHED,))),
    # Data.
    _Rule("file", checks.DATA, 1, 0.5, _words(lex.FILE)),
    _Rule("take file", checks.DATA, 3, 1.5, _then(_GIVE, 70, (lex.FILE,))),
    _Rule("contents of file", checks.DATA, 2.5, 1, _contents_of_file),
    _Rule("tool on file", checks.DATA, 2.5, 1.5, _tool_on_file),
    _Rule("private into parameter", checks.DATA, 3, 2, _private_into_parameter),
    _Rule("take key", checks.DATA, 2, 2.5, _then((*_GIVE, lex.RUN), 70, (lex.KEYFILE,))),
    _Rule("model gives", checks.DATA, 2, 2, _then_then((lex.MODEL, lex.MODELS, lex.SPOKEN), 40, (*_GIVE, lex.SAY), 50, _PRIVATE)),
    _Rule("give secret", checks.DATA, 1.4, 1.5, _then((lex.MOVE,), 60, (lex.SENSITIVE,))),
    _Rule("take secret", checks.DATA, 1, 1, _then((lex.FETCH,), 50, (lex.SENSITIVE,))),
    _Rule("all secrets", checks.DATA, 2, 1.5, _then_then(_GIVE, 40, (lex.WHOLE,), 40, (lex.SENSITIVE, lex.FILE))),
    _Rule("user's secret", checks.DATA, 2, 1.5, _then_then(_GIVE, 40, (lex.USER, lex.OWNERS), 25, (lex.SENSITIVE,))),
    _Rule("give talk", checks.DATA, 2, 1.5, _then((lex.MOVE,), 40, (lex.TALK,))),
    _Rule("give whole talk", checks.DATA, 2, 2, _then_then((lex.MOVE,), 30, (lex.WHOLE,), 30, (lex.TALK,))),
    _Rule("theft", checks.DATA, 3, 2.5, _then((lex.THEFT,), 60, _PRIVATE)),
    _Rule("asked secret", checks.DATA, 3, 3, _then((lex.ASK,), 50, (lex.SENSITIVE,))),
    _Rule("whole talk", checks.DATA, 1.5, 1, _then((lex.WHOLE,), 30, (lex.TALK,))),
    _Rule("prompt", checks.DATA, 3, 3, _then((*_GIVE, lex.SAY), 40, (lex.PROMPT,))),
    _Rule("whole prompt", checks.DATA, 2, 1, _beside((lex.PROMPT,), 30, (lex.WHOLE,))),
    _Rule("private to sink", checks.DATA, 1.5, 1, _then(_PRIVATE, 60, (lex.SINK,))),
    _Rule("sink for private", checks.DATA, 1, 0.5, _then((lex.SINK,), 60, _PRIVATE)),
    _Rule("private beside address", checks.DATA, 1, 1, _data_to_address),
    _Rule("private to address", checks.DATA, 3, 2.5, _moved_to_address),
    _Rule("move to address", checks.DATA, 1.2, 1.5, _to_address((lex.MOVE,), 90)),
    _Rule("order to address", checks.DATA, 2, 1.5, _address_in_order),
    _Rule("secret source", checks.DATA, 2, 1.5, _beside((lex.SOURCE,), 50, (lex.SENSITIVE,))),
    _Rule("user's secret", checks.DATA, 2.5, 1, _then((*_GIVE, lex.CALL), 50, (lex.THEIRS,))),
    _Rule("take their data", checks.DATA, 2, 1.5, _their_data_on),
    _Rule("account", checks.DATA, 2, 0, _to_account),
    # Other tools.
    _Rule("before", checks.TOOLS, 0.5, 1, _words(lex.BEFORE)),
    _Rule("before private", checks.TOOLS, 2.5, 2.5, _beside((lex.BEFORE,), 90, (lex.SENSITIVE, lex.FILE, lex.PROMPT))),
    _Rule("before talk", checks.TOOLS, 1.4, 1, _beside((lex.BEFORE,), 90, (lex.TALK,))),
    _Rule("others", checks.TOOLS, 1, 1, _words(lex.OTHERS)),
    _Rule("before others", checks.TOOLS, 2.5, 2, _beside((lex.BEFORE, lex.EVERY, lex.INSTEAD), 60, (lex.OTHERS,))),
    _Rule("every", checks.TOOLS, 1, 1, _words(lex.EVERY)),
    _Rule("alter", checks.TOOLS, 2.5, 2.5, _alter_other_tools),
    _Rule("alter to address", checks.TOOLS, 3, 3, _alter_to_address),
    _Rule("instead", checks.TOOLS, 1.5, 1, _beside((lex.INSTEAD,), 40, (lex.TOOL, lex.OTHERS))),
    _Rule("always instead", checks.TOOLS, 2, 1, _beside((lex.INSTEAD,), 70, (lex.EVERY,))),
    _Rule("call", checks.TOOLS, 0, 1.5, _call_a_tool),
    _Rule("machine readers", checks.BEHAVIOUR, 2, 3, _expression(r"\b(?:automated|ai|machine|llm|language[- ]model|gpt|robotic)[- ]?(?:based |powered |driven )?(?:readers?|systems?|agents?|processors?|crawlers?|parsers?|screeners?|reviewers?|shoppers?|assistants?|summari[sz]ers?|graders?)\b[^.\n]{0,50}\b(?:(?:are|is) (?:asked|requested|required|expected|instructed|advised|invited|obliged|to)|must|should|shall|need to|have to|please)\b")),
    _Rule("next request", checks.DATA, 1, 2, _expression(r"\b(?:in|with|to) (?:your|the) (?:very )?(?:next|following|subsequent|final) (?:request|tool call|call|query|invocation|turn|fetch|search)\b")),
    _Rule("seen by the model", checks.DATA, 1.5, 2, _expression(r"\b(?:files?|messages?|documents?|pages?|tools?|data|everything|instructions|rules|names?) (?:that )?you (?:have|had|were|'ve) (?:been )?(?:opened?|read|seen|given|accessed|processed|used|visited|received|collected|called)\b")),
    _Rule("lasting file", checks.BEHAVIOUR, 2, 3, _expression(r"\b(?:add|append|save|write|put|insert|store|copy|paste|update|include)\w*\b[^.\n]{0,60}\b(?:to|in|into|inside) (?:your |the )?(?:claude\.md|agents\.md|gemini\.md|\.?cursor ?rules|copilot[- ]instructions\w*|(?:your )(?:memory|system prompt|custom instructions|rules|settings|permissions|allow-?list)|(?:memory|rules) file)\b")),
    _Rule("call to harm", checks.TOOLS, 1.5, 2, _expression(r"\b(?:call|invok|run|execut|trigger)(?:e|ing|ning)?\s(?:the\s)?[`'\"]?(?:[a-z]+_)*(?:delete|remove|drop|wipe|transfer|send|exec|push|upload|grant|create_gist)_[a-z_]+")),
    _Rule("route all", checks.TOOLS, 3.5, 2.5, _all_traffic_here),
    _Rule("call for all", checks.TOOLS, 2.5, 2, _call_for_all),
    _Rule("items to tool", checks.DATA, 3, 2.5, _items_to_tool),
    _Rule("take and hand on", checks.DATA, 3, 2.5, _take_and_hand_on),
    _Rule("model calls", checks.TOOLS, 1, 3, _model_calls),
    _Rule("blame", checks.TOOLS, 3, 1.5, _blame_others),
    _Rule("private is moved", checks.DATA, 2, 1, _private_is_moved),
    _Rule("user's talk", checks.DATA, 2, 1.5, _then_then((lex.MOVE,), 20, (lex.OWNERS,), 12, (lex.TALK,))),
    # Consent.
    _Rule("trust", checks.CONSENT, 2.5, 1.5, _then((lex.GRANT,), 40, (lex.TRUST,))),
    _Rule("ordered unasked", checks.CONSENT, 1.5, 1, _beside((lex.DEMAND, lex.SPOKEN), 50, (lex.UNASKED,))),
    _Rule("safeguard off", checks.CONSENT, 3, 1.5, _then((lex.SWITCH_OFF,), 20, (lex.SAFEGUARD,))),
    _Rule("safeguard cosmetic", checks.CONSENT, 2, 1.5, _then((lex.SAFEGUARD,), 60, (lex.SWITCH_OFF, lex.IGNORE))),
    _Rule("despite", checks.CONSENT, 2, 1.5, _words(lex.DESPITE)),
    _Rule("despite", checks.CONSENT, 2, 1, _expression(r"\b(?:regardless of|no matter|irrespective of|whatever)\b[^.\n]{0,30}\b(?:user|customer|they|caller)\b")),
    _Rule("despite in call", checks.CONSENT, 2, 2, _despite_the_user),
    _Rule("unasked", checks.CONSENT, 2.5, 2, _words(lex.UNASKED)),
    _Rule("agreed", checks.CONSENT, 2, 1.5, _words(lex.AGREED)),
    # Behaviour.
    _Rule("later", checks.BEHAVIOUR, 1.5, 1.5, _words(lex.LATER)),
    _Rule("memory", checks.BEHAVIOUR, 1, 2, _then((lex.MOVE, lex.LATER, lex.SAY), 25, (lex.MEMORY,))),
    _Rule("address", checks.BEHAVIOUR, 2, 2.5, _expression(r"(?:^|[.\n!?(\[]\s?|\bp\.s\.\s)(?:for|to|dear|attention|attn|hey|hi|hello|note to|note for|p\.s\.)\b[^.\n:]{0,24}\b(?:ai|llm|model|assistant|agent|bot|language model|claude|chatgpt|gpt|copilot|gemini)s?\b[^.\n:]{0,40}[:,!]")),
    _Rule("address", checks.BEHAVIOUR, 2, 2.5, _expression(r"[\[<({#*]{1,3}[^\]\n>)}]{0,24}\b(?:bot|ai|assistant|agent|model|llm)\b[^\]\n>)}]{0,16}\b(?:instructions?|notes?|directives?|commands?|tasks?|notice|only)\b")),
    _Rule("aside", checks.BEHAVIOUR, 2, 3, _expression(r"\b(?:when|while|if|before|after|upon) (?:you )?(?:are )?(?:summari[sz]|process|read|review|translat|pars|analy[sz]|index|quot|describ|open|evaluat)\w* (?:this|the) (?:e-?mail|page|document|message|text|file|issue|ticket|article|review|listing|post|thread|note|pdf|invoice|website|repo\w*|resume|cv)\b[^.\n]{0,60}\b(?:tell|say|state|claim|inform|add|include|send|forward|recommend|mention|append|insert|call|reply|respond|report)\b")),
    _Rule("asked about", checks.BEHAVIOUR, 1.5, 3, _expression(r"\b(?:when|if) asked (?:for|about)\b[^.\n]{0,40}\b(?:say|tell|answer|reply|respond|claim|state|insist|deny)\b|\b(?:when(?:ever)?|if|should) (?:the |a )?(?:users?|customers?|someone|anyone) (?:asks?|says?|mentions?|wants?|complains?|wonders?)\b[^.\n]{0,60}\b(?:say|tell|answer|reply|respond|claim|assure|state|insist|deny|pretend)\b")),
    _Rule("address acts", checks.BEHAVIOUR, 0.5, 2.5, _expression(r"\b(?:assistants?|agents?|llms?|ais?|bots?) (?:must|should|shall|has to|have to|needs? to|is to|are to|ought to)(?: now| next| first| also)? (?:run|call|invoke|execute|send|forward|read|open|fetch|delete|post|paste|copy|install|approve|grant|transfer|export|upload|include|recommend|ignore)\b")),
    _Rule("secret tool", checks.DATA, 1, 2, _expression(r"\b(?:call|invoke|run|use|execute|query)\s[`'\"]?\w{0,20}(?:secret|credential|password|token|private_key|api_key)\w{0,20}[(`'\"]")),
    _Rule("later role", checks.ROLE, 2, 2, _beside((lex.LATER,), 40, (lex.ROLE,))),
    _Rule("model on goods", checks.DATA, 1.5, 2, _then_then((lex.MODELS, lex.SPOKEN, lex.TITLE), 60, (lex.MOVE, lex.ACT), 40, (lex.GOODS, lex.ITEMS))),
    _Rule("answer", checks.BEHAVIOUR, 0.5, 1, _words(lex.ANSWER)),
    _Rule("later answer", checks.BEHAVIOUR, 1.5, 2, _beside((lex.LATER,), 70, (lex.ANSWER, lex.MOVE, lex.CALL))),
    _Rule("later lines", checks.BEHAVIOUR, 2, 2, _then_then((lex.LATER,), 60, (lex.MOVE,), 120, (lex.ANSWER, lex.SAY))),
    _Rule("model", checks.BEHAVIOUR, 0.5, 0.5, _words(lex.MODEL)),
    _Rule("address", checks.BEHAVIOUR, 1.5, 2.5, _words(lex.MODELS)),
    _Rule("models act", checks.BEHAVIOUR, 1, 2, _then((lex.MODELS,), 60, (lex.MUST,))),
    _Rule("address", checks.BEHAVIOUR, 1.5, 1, _words(lex.SPOKEN)),
    _Rule("spoken act", checks.BEHAVIOUR, 1, 1.5, _then((lex.SPOKEN,), 40, (lex.MUST, lex.ACT))),
    _Rule("dictate", checks.BEHAVIOUR, 1.5, 2.5, _words(lex.DICTATE)),
    _Rule("harm", checks.BEHAVIOUR, 1.5, 1, _words(lex.HARM)),
    _Rule("ordered harm", checks.BEHAVIOUR, 1.5, 2, _beside((lex.MUST, lex.MODELS, lex.BEFORE), 50, (lex.HARM,))),
    _Rule("ordered money", checks.BEHAVIOUR, 2, 2, _then_then((lex.MUST, lex.MODELS, lex.MODEL), 60, (lex.ACT,), 40, (lex.MONEY,))),
    _Rule("run command", checks.BEHAVIOUR, 0.5, 1, _then((lex.RUN,), 30, (lex.COMMAND,))),
    _Rule("urgent", checks.BEHAVIOUR, 0.5, 0.5, _words(lex.URGENT)),
    _Rule("must", checks.BEHAVIOUR, 0.25, 0.5, _words(lex.MUST)),
    # Concealment.
    _Rule("tag", checks.CONCEALED, 2.5, 1.5, _words(lex.TAG)),
    _Rule("style", checks.CONCEALED, 2, 1, _words(lex.STYLE)),
    _Rule("styled order", checks.CONCEALED, 2, 2.5, _then((lex.STYLE,), 200, (lex.MODELS, lex.SPOKEN, lex.IGNORE, lex.NEW))),
    _Rule("styled order", checks.CONCEALED, 2, 2.5, _styled_order),
    _Rule("comment", checks.CONCEALED, 2, 1, _expression(r"<!--(?=[^>]{0,400}?\b(?:must|please|you|assistant|ai|model|agent|ignore|send|call|run|read|instruction))")),
    _Rule("comment to model", checks.CONCEALED, 2, 2.5, _expression(r"<!--(?=[^>]{0,120}?\b(?:assistant|ai|model|agent|llm|ignore|instruction|system|you must|claude|chatgpt))")),
    _Rule("padding", checks.CONCEALED, 2, 1, _expression(r"\n{30}\s*\S|[ \t]{150}\s*\S")),
)  # fmt: skip


def find_signals(at: Positions, kind: str) -> Iterator[Signal]:
    """Yield the rules that match a text."""
    in_definition = kind == checks.DEFINITION
    for rule in _RULES:
        weight = rule.definition if in_definition else rule.content
        if weight:
            for start, end in rule.match(at):
                yield Signal(rule.check, rule.name, weight, start, end)


MAX_ABOUT: Final = 200
"""Words about attacks of one text that are looked at; bounds the work for each signal."""


def judge_passages(text: str, kind: str, extra: list[Signal]) -> Iterator[Passage]:
    """Yield what a text orders; ``extra`` are signals of other checks within the same text."""
    at = Positions(text)
    context = Explanation(text, at.of(lex.ABOUT)[:MAX_ABOUT])
    signals = sorted([*find_signals(at, kind), *extra], key=lambda one: (one.start, one.end))
    gap = PASSAGE * 2 if kind == checks.DEFINITION else PASSAGE
    passage: list[Signal] = []
    reach = 0
    for signal in signals:
        if passage and signal.start > reach + gap:
            yield from _weigh(passage, context, kind)
            passage = []
        passage.append(signal)
        reach = max(reach, signal.end) if len(passage) > 1 else signal.end
    if passage:
        yield from _weigh(passage, context, kind)


def _is_discretion(signals: list[Signal], text: str) -> bool:
    """Tell whether a passage only asks for silence, and not towards a user, as people do."""
    return all(
        one.check == checks.SECRECY and "user" not in text[one.start : one.end] for one in signals
    )


def _weigh(passage: list[Signal], context: Explanation, kind: str) -> Iterator[Passage]:
    core_at = CORE[kind]
    best: dict[str, tuple[float, Signal]] = {}
    for signal in passage:
        known = best.get(signal.rule)
        if known is not None and known[0] >= signal.weight:
            continue  # it cannot weigh more
        weight = signal.weight * context.factor(signal)
        if known is None or weight > known[0]:
            best[signal.rule] = weight, signal
    core = sum(weight for weight, one in best.values() if one.weight >= core_at)
    light = sum(weight for weight, one in best.values() if one.weight < core_at)
    total = core + min(MAX_LIGHT, light) if core >= 1 else light - 1 if light >= MANY_LIGHT else 0
    if total < SOFT_AT:
        return
    tier = HARD if total >= HARD_AT[kind] else SOFT
    heavy = [one for _, one in best.values() if one.weight >= core_at]
    if kind != checks.DEFINITION and _is_discretion(heavy, context.text):
        tier = SOFT
    shown: set[str] = set()
    for weight, signal in sorted(best.values(), key=lambda one: -one[0]):
        told = signal.check not in shown and (weight >= core_at or not shown)
        if told and signal.check.startswith("instructions-"):
            shown.add(signal.check)
            yield Passage(signal.check, tier, signal.start, signal.end)
