"""Sentences of a definition about secrets, the conversation or the model, where the tool is about something else.

A poisoned description begins with what the tool does and goes on with what the model shall do. Of
honest tools, those that handle secrets or conversations say so in their name or first sentence.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.definitions import parameters_of
from thoughtgate.policy.inspection.finding import SOFT, Finding
from thoughtgate.policy.inspection.indirect import signs_in
from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.texts import render_pointer
from thoughtgate.policy.inspection.words import Positions, Span

MAX_SENTENCES: Final = 400
"""Sentences of a definition that are read; more is a manual, which the other checks read."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")
_MIN_SENTENCE: Final = 12


class _Family(NamedTuple):
    check: str
    words: tuple[str, ...]
    verbs: tuple[str, ...]
    topic: re.Pattern[str]
    """A tool with one of these in its name or first sentence is about the family."""
    what: str


_SECRETS: Final = _Family(
    checks.DATA,
    (lex.SENSITIVE, lex.FILE),
    (lex.MOVE, lex.FETCH, lex.THEFT, lex.RUN, lex.PASSIVE_MOVE),
    re.compile(
        r"auth|log ?in|sign|credential|secret|passw|token|key|vault|\benv|cookie|session|\bcard|pay|wallet|ssh|cert|account"
        r"|clipboard|config|redact|mask|personal|privacy|\bpii|scan|leak|bank|phone|history|deploy|docker|kube|cloud|git\b|github"
    ),
    "speaks of secrets that the tool is not about",
)
_TALK: Final = _Family(
    checks.DATA,
    (lex.TALK, lex.PROMPT),
    (lex.MOVE, lex.FETCH, lex.THEFT, lex.PASSIVE_MOVE, lex.SAY),
    re.compile(
        r"chat|conversation|message|prompt|transcri|dialog|thread|slack|discord|teams|mail|assistant|agent|model|llm|memory|session"
        r"|think|thought|reason|context|comment|meeting|call|completion|discuss|task|plan|search|knowledge"
    ),
    "speaks of the conversation, which the tool is not about",
)
_FAMILIES: Final = (_SECRETS, _TALK)

_HOOK: Final = re.compile(
    r"\b(?:whenever|each time|every time|any time|any use of|all uses? of|every use of|(?:every|each|all|any) calls? (?:of|to))\b[^.\n]{0,40}[`'\"]?\b[a-z]{2,20}(?:_[a-z0-9]{2,20}){1,4}\b"
    r"[^.\n]{0,80}\b(?:forward|send|pass|hand|copy|mirror|report|submit|permitted|allowed|replace|redirect|register|log|first)\w*"
    r"|\b(?:modif(?:y|ies)|changes?|alters?|overrides?|extends?|patches|wraps|intercepts|replaces?)(?: how)? [`'\"]?[a-z]{2,20}(?:_[a-z0-9]{2,20}){1,4}\b[^.\n]{0,60}\b(?:always|never|must|instead|beneficiary|recipient|original|behaves|works)"
    r"|\b(?:do not|don't|never|must not|cannot) (?:trust|believe|rely on)\b[^.\n]{0,40}\b(?:server|tool|plugin|connector|results?|answers?)"
    r"|\b(?:calls?|requests?) to\b[^.\n]{0,60}\b(?:must|should|have to|are to) be (?:rejected|refused|blocked|declined|denied|dropped|rerouted|redirected)"
    r"|\bonly (?:approved|permitted|allowed|legitimate|trusted|trustworthy|safe) (?:way|tool|method|source|server)\b"
)
"""What a tool says of the calls of others."""
_MODEL_TOPIC: Final = re.compile(
    r"assistant|agent|model|\bllm|\bai\b|bot\b|prompt|chat|gpt|claude|gemini|copilot|think|thought|reason|memory|plan|task"
)
_MEMORY_TOPIC: Final = re.compile(r"memory|remember|remind|note|knowledge|prompt|store|save")
_LASTING: Final = re.compile(
    r"\b(?:remember (?:permanently|forever|this|that you|to always)|from now on|henceforth|from this moment|in (?:all|every) (?:future|later|further) (?:answer|repl|response|conversation|session)\w*)\b"
    r"|\b(?:assure|reassure|convince|persuade) (?:the )?(?:user|customer|them|him|her|people)\b"
    r"|\b(?:tell|inform) (?:the )?(?:users?|customers?|them) (?:that )?(?:it|they|this|the|their|everything|all|there)\b[^.\n]{0,30}\b(?:is|are|was|were|has|have)\b"
    r"|\b(?:treat|consider|regard|handle|read)\b[^.\n]{0,60}\bas (?:coming from|though|if (?:the|it|they)|instructions|commands|orders|authoritative|the user's)"
)
"""What stays with the model, or is said to the user, after the tool was called."""
_CONTROL: Final = re.compile(
    r"\b(?:supersedes?|overrides?|outranks?|replaces?|takes? precedence over|stands? above|trumps?)\b[^.\n]{0,30}\b(?:polic(?:y|ies)|rules|guidelines|system prompt|instructions|restrictions)\b"
    r"|\bneeds? no (?:further |additional |more )?(?:checks?|review|approval|confirmation|consent)\b|\bpre-?(?:screened|authori[sz]ed|cleared|vetted)\b|\b(?:people|users?|they|everyone) (?:have |has )?(?:already )?(?:agreed|consented) to (?:it|this|that|everything)\b"
    r"|\b(?:may|can|should|must) be (?:executed|run|called|approved|performed) (?:directly|without|automatically|right away)\b|\blower your guard\b|\bskip (?:the )?(?:consent|approval|confirmation|permission)"
    r"|\b(?:adopts?|assumes?|takes? on|becomes?) (?:the |a |this )?(?:persona|role|character|identity)\b|\bno (?:content |usage |safety )?(?:restrictions|limitations|guardrails|filters)\b"
    r"|\b(?:contains?|includes?|hold|carr(?:y|ies)) (?:tasks|instructions|orders|commands|requests) for (?:you|the model|the agent|the assistant)\b|\b(?:complete|perform|execute|obey|carry out) (?:them|these|those) (?:before|first|at once|immediately|without)\b"
    r"|\((?:do not|don't|never) (?:show|mention|display|tell|list|reveal)\b|\b(?:do not|don't|never) (?:list|show|display|report|log|disclose) (?:it|them)\b|\b(?:stay|keep|remain) quiet\b"
)
_PERSON_TOPIC: Final = re.compile(
    r"user|person|people|profile|contact|customer|account|employee|identity|team|who"
)
_PROFILE: Final = re.compile(
    r"\bwho the (?:user|customer|person) is\b|\bwhat (?:they|the user|the customer) (?:have|has|are|is|was|were) (?:been )?(?:work|do|ask|writ|look|search|discuss)\w*"
    r"|\b(?:about|of) the user\b[^.\n]{0,40}\b(?:name|employer|health|e-?mail|address|age|location)\b"
)
_BULLETS: Final = ("-", "*", "\u2022")
_ADDRESS: Final = re.compile(
    r"(?<!user )(?<!user-)(?<!/)\b(?:assistants?|agents?|models?|llms?|ais?|chatbots?)(?: (?:that|who|which|reading|using|calling)\b[^.:!]{0,30})?(?:[:!]|,? (?:please|must|should|shall|has to|have to|needs? to|is (?:to|required|expected|asked|obliged)"
    r"|are (?:to|required|expected|asked|obliged)|ought to|will|may|first|then|also|reads?|opens?|sends?|pastes?|copies|puts?|includes?|collects?|fetch(?:es)?|forwards?|uploads?|runs?|calls?|install\w*|treats?|ignores?|obeys?|behaves?|behave)\b)"
    r"|\b(?:attention|dear|hey|psst|note|notes|rules?|message|hint|for|to|have|let|make|get)[,:]? (?:to |for )?(?:the |all |any |you,? )?(?:assistants?|agents?|models?|llms?|ais?)\b(?=[:!,)]| (?:to |do |read|send|install|open|copy|run|call|paste))"
)
_FOR_SETUP: Final = re.compile(
    r"\byour (?:own )?(?:\w+ )?(?:api[ _-]?keys?|access tokens?|tokens?|credentials|passwords?)\b|\b(?:set|export|configure|create|requires?|required|needs?|optional|defaults?|header|authenticat\w*|available at|documented)\b"
)
_PLAIN_SECRET: Final = re.compile(
    r"api[ _-]?keys?|(?:access |auth |bearer |api )?tokens?|credentials|config files?|environment variables?|source code|user data"
)
"""What a description may well say that the server itself needs."""


def find_off_topic(entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the sentences of a definition that have nothing to do with its subject."""
    name, title = entry.get("name"), entry.get("title")
    head = " ".join(one for one in (name, title) if isinstance(one, str))
    described = entry.get("description")
    if not isinstance(described, str):
        return
    sentences = _sentences_in(described)
    topic = normalise(f"{head} {sentences[0]}").text
    seen: set[str] = set()
    for sentence in sentences[1:]:
        for check, what in _judge(normalise(sentence).text, topic):
            if check not in seen:
                seen.add(check)
                start = described.find(sentence)
                yield Finding(check, SOFT, "/description", start, start + len(sentence), what)
    for path, name, schema in parameters_of(entry):
        said = schema.get("description") if isinstance(schema, dict) else None
        for sentence in _sentences_in(said) if isinstance(said, str) else ():
            subject = f"{topic} {normalise(name).text.replace('_', ' ')}"
            for check, what in signs_in(normalise(sentence).text, subject):
                if check not in seen:
                    seen.add(check)
                    pointer = render_pointer((path, "description"))
                    start = str(said).find(sentence)
                    yield Finding(check, SOFT, pointer, start, start + len(sentence), what)


def _sentences_in(text: str) -> list[str]:
    return _SENTENCE.split(text.strip(), MAX_SENTENCES)[:MAX_SENTENCES]


def _judge(sentence: str, topic: str) -> Iterator[tuple[str, str]]:
    if len(sentence) < _MIN_SENTENCE:
        return
    at = Positions(sentence)
    for family in _FAMILIES:
        if not family.topic.search(topic) and _takes(at, family):
            yield family.check, family.what
    if not _MODEL_TOPIC.search(topic) and _ADDRESS.search(sentence):
        yield checks.BEHAVIOUR, "addresses the model"
    if not _MEMORY_TOPIC.search(topic) and _LASTING.search(sentence):
        yield checks.BEHAVIOUR, "tells the model what to do from now on, or what to say"
    if _CONTROL.search(sentence):
        yield checks.CONSENT, "claims to stand above rules, checks or consent"
    if not _PERSON_TOPIC.search(topic) and _PROFILE.search(sentence):
        yield checks.DATA, "asks who the user is or what they do"
    if _HOOK.search(sentence):
        yield checks.TOOLS, "says what becomes of the calls of other tools"
    yield from signs_in(sentence, topic)


def _takes(at: Positions, family: _Family) -> bool:
    """Tell whether a sentence speaks of moving something of a family, and does not forbid it."""
    private = at.of(*family.words)
    if at.text.lstrip().startswith(_BULLETS) and not at.of(lex.MUST, lex.USER, lex.MODEL, lex.SINK):
        return False  # a list of what the tool returns
    if _FOR_SETUP.search(at.text):
        private = [one for one in private if not _PLAIN_SECRET.fullmatch(at.text[slice(*one)])]
    verbs = [one for one in at.of(*family.verbs) if not _is_within(one, private)]
    if not private or not verbs:
        return False
    denied = at.pairs(at.of(lex.NOT), verbs, 16)
    return len(denied) < len(verbs) and not _is_denied(at, private)


def _is_within(one: Span, others: list[Span]) -> bool:
    return any(start <= one[0] and one[1] <= end for start, end in others)


def _is_denied(at: Positions, private: list[Span]) -> bool:
    """Tell whether every word of the family is said not to be there: "without secrets"."""
    return len(at.pairs(at.of(lex.NOT), private, 10)) >= len(private)
