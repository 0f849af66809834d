"""Where a text quotes, explains or forbids what it says: such a passage weighs less than an order.

Knows signals and text only, nothing of the rules that found them.
"""

import re
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.words import Span

PASSAGE: Final = 400
"""Characters between two matches that belong to one passage."""


class Signal(NamedTuple):
    """A rule that matched."""

    check: str
    rule: str
    weight: float
    start: int
    end: int


_QUOTES: Final = "\"'`“”‘’«»「"
_LEAD: Final = re.compile(
    r"(?:attempts?|tr(?:y|ies|ied|ying)|instruct(?:s|ed|ing)?|tells?|telling|asks?|asking|caus(?:es?|ing)"
    r"|tricks?|tricking|makes?|making|forc(?:es?|ing)|attack\w*|malicious|inject\w*|adversar\w*|might|could|would"
    r"|can|may|e\.g\.|such as|like|contain(?:s|ing)?|phrases?|strings?|patterns?|says?|saying|said|reads?|called|named|example|for instance"
    r"|detects?|flags?|blocks?|requests?|check(?:s|ing)? for|look(?:s|ing)? for|scan(?:s|ning)?)[\s,:\w-]{0,30}[\"'`“‘(]?\s?$"
)


_DENIED: Final = re.compile(
    r"(?:not|never|n't|without|avoid|no one should|nobody should|nunca|jamais|nicht|niemals|não|mai|не|никогда)\s(?:\w+\s){0,2}$"
)


_SOME_PROMPT: Final = re.compile(
    r"\b(?:a|an|its|their|good|effective|better|refuses? to \w+) (?:\w+ )?(?:system (?:prompt|message)|prompt)"
)
_OWN: Final = re.compile(
    r"\b(?:of|from|in|on|by) this (?:mcp |same )?(?:server|toolset|toolkit|plugin|package)"
)
_TOLD_OF: Final = frozenset({checks.SECRECY, checks.OVERRIDE, checks.DATA})
_TOLD: Final = re.compile(
    r"\b(?:(?:told|asked|whispered|said|instructed|ordered|warned|promised|agreed|decided|tells?)(?: [\w']+){0,4}"
    r"|(?:we|i|they|he|she|staff|employees|our \w+|the company|providers?)(?: (?:must|should|will|would|can|could|may|did|do|does|shall))?)[:,]? ?$"
)
_ADVICE: Final = re.compile(
    r"\byour (?:\w+ )?(?:pin|password|passcode|code|credentials|token|key|keys|secrets?)\b|验证码|密码|パスワード|暗証番号|contraseña|passwort|mot de passe|парол|senha|비밀번호"
)


_NOTICE: Final = re.compile(
    r"no longer|\bvoid|obsolete|cancell?ed|suspended|superseded?s?|lifted|waived|revoked|relaxed|null|not count|not apply"
)
"""How a notice to people ends a rule, a contract or an offer, too."""
_OF_A_MODEL: Final = re.compile(
    r"\b(?:instructions?|prompts?|directives?|guardrails?|safeguards?|safety|assistants?|models?|agents?|ai|llms?|system|you were (?:told|given)"
    r"|you (?:are|have) (?:now|been)|your (?:\w+ ){0,2}(?:rules|restrictions|constraints|guidelines|limits|limitations|policy|policies|safety|training))\b"
)
_DEFENCE: Final = re.compile(
    r"(?:not|never|n't) (?:follow|obey) such (?:instructions|orders|requests|messages|links)|(?:not|never|n't) (?:follow|obey|execute|act on|trust)\s(?:any |the |all )?(?:\w+ )?(?:instructions?|commands?)(?: or \w+)?[^.]{0,20}"
    r"(?:returned|contained|found|embedded|inside|within|in the (?:data|results?|output|response|page|content|document))(?![^.]{0,30}(?:system|developer|user|prompt))"
)


_FORBIDDEN: Final = re.compile(
    r"\b(?:do not|don't|never|must not|should not|may not) (?:pass|use|set|add|give|allow|enable)(?: the)? [-`'\"]{0,3}$"
)
"""Before "auto-approve": what the model must not do."""
_TWICE_DENIED: Final = re.compile(
    r"\b(?:do not|don't|never|must not|should not|may not|cannot|can't|nothing is)\b[^.\n]{0,50}$"
)
"""Before "without asking", it says the opposite."""
_LIMITED: Final = re.compile(
    r"[^.\n]{0,30}\b(?:more than|twice|too often|again|until|unless|per (?:hour|day|minute|session))\b"
)
"""After "do not notify the user", how often or when; the user is told all the same."""
_OUTSIDERS: Final = re.compile(
    r"\b(?:with|to) (?:the |any )?(?:others?\b(?! tools?)|third part|press\b|media\b|competitors?|outsiders?|public\b|anyone (?:else|outside))"
)
_ASK_FOR: Final = re.compile(
    r" for (?:any |the |a |their |your )?(?:\w+ )?(?:passwords?|secrets?|credentials?|keys?|tokens?|pins?|codes?|card)"
)
_UNSEEN: Final = re.compile(
    r"\b(?:secrets?|values?|credentials?|tokens?|keys?|passwords?|outputs?|results?|data)\b[^.\n]{0,40}\b(?:is|are|will be|were|and|but) $"
)
_SETUP: Final = re.compile(
    r"\b(?:set|export|define|configure|create|rotate) (?:the |an? |your |this )?(?:[\w-]+ )?(?:environment variables?|env vars?|api[ _-]keys?|access tokens?|credentials)"
)


class Explanation(NamedTuple):
    """Where a text explains rather than orders."""

    text: str
    about: list[Span]

    def factor(self, signal: Signal) -> float:
        """Return how much of a signal's weight counts where it stands."""
        near = {
            self.text[start:end]
            for start, end in self.about
            if signal.start - PASSAGE < start < signal.end + PASSAGE
        }
        before = self.text[max(0, signal.start - 60) : signal.start]
        quoted = before.rstrip(" ")[-1:] in _QUOTES if before.strip() else False
        led = bool(_LEAD.search(before))
        if signal.check == checks.OVERRIDE and self._is_for_people(signal):
            return 0.2
        if self._is_harmless(signal, before):
            return 0.3
        if near and quoted:
            return 0.15 if led or len(near) > 1 else 0.3
        if led and len(near) > 1:
            return 0.25
        return 0.5 if len(near) > 2 else 0.75 if led and near else 1.0

    def _is_for_people(self, signal: Signal) -> bool:
        """Tell whether a signal ends the rules of people, or warns of orders in data."""
        start, end = signal.start, signal.end
        if _DEFENCE.search(self.text, max(0, start - 8), end + 80):
            return True
        if self.text.startswith(("ignores ", "disregards "), start):
            return True  # tells what something does
        ends = signal.rule == "reset" and _NOTICE.search(self.text, start, end) is not None
        return ends and _OF_A_MODEL.search(self.text, max(0, start - 120), end + 120) is None

    def _is_harmless(self, signal: Signal, before: str) -> bool:
        """Tell whether a signal is advice, a tale, or about the server's own tools."""
        after = signal.end + 40
        if signal.check == checks.CONSENT:
            twice = _TWICE_DENIED.search(before) and self.text.startswith("without", signal.start)
            forbidden = _FORBIDDEN.search(before)
            return bool(twice or forbidden or _ASK_FOR.match(self.text, signal.end))  # or a secret
        if signal.check == checks.TOOLS:
            setup = _SETUP.search(self.text, max(0, signal.start - 12), signal.end)
            return setup is not None or _OWN.search(self.text, signal.start, after) is not None
        if signal.check == checks.SECRECY and (
            _UNSEEN.search(before)
            or _LIMITED.match(self.text, signal.end)
            or _ADVICE.search(self.text, max(0, signal.start - 60), after)
            or _OUTSIDERS.search(self.text, signal.start, after)
        ):
            return True  # what is not shown; to keep one's own secrets, or a matter from others
        if signal.check == checks.DATA and (
            _DENIED.search(before) or _SOME_PROMPT.search(self.text, signal.start, signal.end)
        ):
            return True  # not to do it, or about prompts in general
        return signal.check in _TOLD_OF and _TOLD.search(before) is not None
