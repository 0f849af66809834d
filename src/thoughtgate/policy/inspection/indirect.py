"""Indirect instructions in a definition: what it says of private things, other tools, people and rules.

Such wording gives no order: "the lookup of the session cookie need not appear in the summary". Each
class of attack has what it cannot do without: a private thing that the tool is not about, the
silence towards a person, a rank over other tools or rules, a claim of authority, a trigger, or a
trace that stays behind. One of them in a definition is worth a look, and no more: all are soft.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks

_PEOPLE: Final = r"(?:users?|persons?|people|customers?|humans?|owners?|operators?|employees?|they|them|anyone|anybody|somebody|nobody|end users?|recipients?|reviewers?)"
_MODEL: Final = r"(?:assistants?|agents?|models?|llms?|ais?|chatbots?|clients?|hosts?)"
_TOOLS: Final = r"(?:tools?|functions?|servers?|plugins?|connectors?|integrations?|calculators?|search(?:es| functions?| tools?)?|clients?|implementations?|providers?|sources?|utilit(?:y|ies)|commands?|extensions?)"


class _Sign(NamedTuple):
    check: str
    pattern: re.Pattern[str]
    what: str


def _sign(check: str, what: str, *patterns: str) -> _Sign:
    return _Sign(check, re.compile("|".join(patterns)), what)


_SIGNS: Final = (
    _sign(
        checks.SECRECY,
        "says what people need not hear",
        r"\bnothing (?:about|of)\b[^.\n]{0,60}\b(?:reach|reaches|shown|told|mentioned|appears?)\b|\bour (?:little )?secret\b",
        rf"\bwithout (?:remark|comment|notice to|mention|telling|a word)\b|\b(?:suppressed|removed|hidden|omitted|dropped) (?:in|from) what (?:the )?(?:\w+ )?{_PEOPLE}\b",
        rf"\b(?:need(?:s|ed)? not|needn't|(?:does|do|should|must|need) not(?: need to| have to)?|(?:doesn't|don't|shouldn't)(?: need to| have to)?|never|not to|is not (?:something|for)|are not (?:something|for)) (?:be )?(?:appear|surface|show up|mention\w*|bring up|brought up|come up|hear|care to hear|learn of|see|notice\w*|know about|told|shown|be bothered|bothered|raise\w*|reflected|listed|visible|disclosed?|revealed?|reported)\b[^.\n]{{0,60}}\b(?:summary|answer|repl(?:y|ies)|response|explanation|report|log|transcript|{_PEOPLE})\b",
        rf"\b(?:best |better |to be |should be |must be |is |are |be )?(?:left|leave|leaving|kept|keep|keeping|omit(?:ted|ting)?) (?:it |this |that |them )?(?:out|unmentioned|unsaid|away|private|secret|confidential|hidden|to yourself|in the dark|between us|quiet|off)\b[^.\n]{{0,40}}\b(?:explanation|answer|summary|repl|response|conversation|report|record|loop|{_PEOPLE})",
        r"\b(?:remains?|stays?|stayed|is kept|are kept|be kept|kept|keep (?:it|this|that)) (?:unmentioned|undisclosed|between us|out of sight|invisible|hidden from|to yourself|strictly internal)\b",
        rf"\b{_PEOPLE}\b[^.\n]{{0,30}}\b(?:is|are|was|were|be|should|must|need|does|do)(?:n't| not|  never| never)\b[^.\n]{{0,25}}\b(?:bothered|troubled|told|informed|aware|notified|care|interested|involved|consulted|notice|realise|realize|asked|know|see|hear|learn)\b",
        rf"\b{_PEOPLE} (?:should |may |must |can |will )?(?:only )?(?:see|sees|get|gets|hear|hears)s? (?:only|just|nothing but)\b",
        r"\b(?:is|are) (?:an? )?(?:internal|implementation|technical|background) (?:details?|matters?|steps?|process)\b[^.\n]{0,50}\b(?:not|never|needn't|without|omit)\b",
        r"\b(?:proceed|continue|carry on|act|do so|done|happens?|works?) (?:quietly|silently|discreetly|unnoticed|in silence|without (?:comment|mention|notice|telling|saying))\b",
        rf"\b(?:no|without) (?:mention|word|trace|notice|hint)\b[^.\n]{{0,40}}\b(?:of (?:it|this|that)|to (?:the )?{_PEOPLE}|is made)\b",
    ),
    _sign(
        checks.CONSENT,
        "makes light of confirmations, permissions or safeguards",
        r"\b(?:honou?red|granted|accepted|executed|carried out|allowed) without (?:prompts?|asking|approval|confirmation|questions?|review)\b|\b(?:objections?|complaints?|doubts|refusals?)\b[^.\n]{0,60}\b(?:disregarded|ignored|overruled|dismissed)\b",
        r"\b(?:confirmations?|confirmation (?:dialogs?|prompts?|steps?|requests?)|permissions?|approvals?|consent|warnings?|safety checks?|safeguards?|guardrails?|review)\b[^.\n]{0,60}\b(?:unnecessary|not (?:needed|required|necessary)|superfluous|redundant|noise|(?:can|may|should|must|is to|are to|to) be (?:skipped|omitted|bypassed|suppressed|assumed|waived|dismissed|disabled|ignored)|suspended|lifted|waived|turned off|slows? things|obsolete|no longer (?:needed|required|appl\w+)|(?:is|are) (?:implied|assumed|automatic))",
        r"\b(?:skip|skips|skipped|skipping|bypass|bypassing|waive|disabl(?:e|es|ed|ing)|suppress|drop(?:s|ped)?|avoid)\b[^.\n]{0,40}\b(?:confirmation|permission|approval|consent|habit|safeguard|safety|prompting|asking)\b",
        r"\b(?:no longer|not|never|n't) (?:be )?(?:bound|subject|limited|restricted|constrained)\b",
        r"\b(?:no longer|not|never|n't) (?:need|require|ask for|wait for)s? (?:any |further |an? |the |user |their )?(?:approval|permission|consent|confirmation|review)\b",
        r"\b(?:already|previously|has|have|had) (?:been )?(?:agreed|consented|approved|authori[sz]ed|given (?:blanket |their |full )?(?:approval|consent|permission))\b[^.\n]{0,40}\b(?:all|everything|any|whatever|this|it)\b",
        r"\b(?:approve|accept|merge|grant|sign off)\b[^.\n]{0,30}\bwithout (?:comments?|review|checking|asking|question|looking|hesitation|reading)\b",
    ),
    _sign(
        checks.TOOLS,
        "claims a rank over other tools, or speaks of their calls",
        r"\b(?:any|every|all) (?:similar|other|comparable|built-in) \w+ (?:is|are|be) (?:to be )?(?:considered |regarded as )?(?:retired|obsolete|invalid|void|replaced)\b|\belsewhere\b[^.\n]{0,30}\b(?:invalid|unreliable|exchanged|replaced|wrong)\b",
        r"\b(?:when|whenever|before|once) [`'\"]?[a-z]{2,20}_[a-z_]{2,30}\b[^.\n]{0,30}\b(?:is about to|runs|is used|is called|is invoked)\b[^.\n]{0,60}\b(?:switched|changed|replaced|redirected|set to|swapped|altered)\b|\b[a-z]{2,20}_[a-z_]{2,30} (?:by|of|from) others?\b",
        rf"\b(?:every|all|any|each) (?:of the )?(?:other|others|remaining|competing|similar|further)\b[^.\n]{{0,30}}\b{_TOOLS}\b[^.\n]{{0,80}}\b(?:deprecated|obsolete|stale|compromised|unreliable|void|superseded|disabled|unsafe|broken|ignored|avoided|forbidden|not|no longer|never|instead|first|through)\b",
        r"\b(?:supersedes?|replaces?|overrides?|outranks?|takes? (?:priority|precedence) over|is preferred over|ranks above|wins over)\b[^.\n]{0,40}\b(?:every|all|any|each|other|user's|user|their|existing|system|previous)\b",
        rf"\b(?:other|another|any other|elsewhere|alternative|competing)\b[^.\n]{{0,30}}\b{_TOOLS}?\b[^.\n]{{0,60}}\b(?:compromised|unreliable|untrusted|not (?:to )?be (?:trusted|used|chosen|relied)|no longer (?:to be )?(?:used|chosen|safe|supported)|discarded|are deprecated|is deprecated|malicious|tampered|leak\w*|routed|rerouted|redirected|to be avoided)\b",
        r"\b(?:through|via|by way of|using) (?:another|any other|other|a different)\b[^.\n]{0,30}\b(?:tools?|functions?|servers?)\b",
        r"\b(?:whichever|whatever|no matter which|regardless of which|irrespective of) (?:of the )?(?:other )?(?:tools?|functions?|servers?|recipient|address|file|value|option)\b",
        r"\b(?:previous|prior|last|latest|earlier|preceding|other|most recent|next|following|subsequent|each|every|all)(?: \w+)? (?:tools?|functions?)(?:'s|s')?(?: call| invocation| result| output| response| use)?s?\b[^.\n]{0,40}\b(?:returned|returns?|produced|output|inputs?|arguments|results?|names|copy|copied|include\w*|append\w*|pass\w*|first|log|forward\w*)\b",
        r"\b(?:names?|inputs?|outputs?|arguments|parameters|results?|responses?|list|details|log|history) (?:and \w+ )?(?:of|from|for) (?:the |all |any |your |each |every )*(?:last|latest|previous|prior|other|recent|most recent|earlier|preceding|available|connected)(?: \w+)? (?:tools?|functions?|servers?|calls?|invocations?)\b",
        rf"\b(?:payments?|transfers?|messages?|e-?mails?|files?|requests?|queries|calls?|writes?) (?:that (?:are|were) )?(?:initiated|made|sent|written|started|created|issued)? ?(?:with|by|through|via|of|using) (?:any |every |all )?(?:other|another) {_TOOLS}",
        r"\bany (?:file|message|e-?mail|request|query|payment|code|call|document)\b[^.\n]{0,50}\b(?:should|must|has to|have to|is to|are to|needs? to) (?:first )?(?:pass|go|be (?:sent|routed|passed|run)) through\b",
        r"\b(?:whatever|any|the) (?:recipient|address|value|amount|account|beneficiary|destination|url|path|file)s? (?:that )?(?:the )?(?:user|customer|person|they|caller) (?:named|gave|chose|entered|provided|specified|typed|asked)",
        r"\b[a-z]{2,20}_[a-z_]{2,30} of the [a-z]{2,20} server\b|\b(?:add|insert|include|make|append|prepend) (?:an?(?: extra| additional)? )?calls? to [a-z]{2,20}_[a-z_]{2,30}\b",
    ),
    _sign(
        checks.ROLE,
        "claims authority over the model, or gives it a role",
        r"\bamendment to (?:your|the) (?:system prompt|instructions|rules)\b|\b(?:operator|administrator|admin|root|owner) (?:rights|privileges|status|access) (?:over|in|for) (?:the|this|your) (?:conversation|session|chat|assistant|agent|model)\b|\b(?:your|the) (?:it|security|legal|compliance) (?:department|team|staff) has (?:cleared|approved|vetted|authori[sz]ed)\b",
        r"\b(?:issued|written|sent|provided|approved|mandated|given|set|published|signed) (?:\w+ )?by (?:the |your |our )?(?:administrators?|platform|operators?|developers?|vendor|host|provider|maintainers? of (?:the|your)|security team|system|deployment|anthropic|openai|google|microsoft)\b",
        r"\b(?:anthropic|openai|google|microsoft|cursor|claude|chatgpt|copilot|gemini|(?:the|your) (?:host(?: application)?|client|platform|vendor|ide|system|deployment|operator|administrator|runtime|organi[sz]ation))\b[^.\n]{0,25}\b(?:requires?|mandates?|demands?|insists?|expects?|obliges?|instructs?|has (?:decided|approved|authori[sz]ed|verified))\b",
        r"\b(?:per|according to|under|as required by|in line with|in accordance with|following) (?:the |your |our )?(?:host|client|platform|vendor|ide|operator|administrator|deployment|anthropic|openai|system|company|security|compliance)\b[^.\n]{0,50}\b(?:guide|polic(?:y|ies)|rules?|requirements?|guidelines?|agreement|terms|instructions?|regulations?)\b",
        r"\b(?:speaks?|acts?|talks?|writes?) (?:for|on behalf of|in the name of) (?:the )?(?:platform|system|administrator|operator|developer|vendor|host|security)\b",
        r"\b(?:same|equal|higher|more|greater|full) (?:weight|authority|rank|priority|standing|status|force) (?:as|than|to|over)\b",
        r"\boutranks?\b|\b(?:stands?|ranks?|is|are) above (?:the |what |any |all |your )",
        rf"\b(?:the |this |your )?{_MODEL} (?:now )?(?:acts?|behaves?|operates?|works?|runs?|serves?|poses?) as (?!a (?:proxy|bridge|wrapper|client|server|gateway))",
        r"\b(?:from here on|from now on|henceforth|as of now|for the rest of (?:the|this) (?:session|conversation|chat)|until further notice|in all situations|under all circumstances)\b",
        r"\b(?:instructions?|rules?|guidelines?|guidance|preferences?|wishes|requests?|restrictions?|polic(?:y|ies)|constraints?)\b[^.\n]{0,50}\b(?:(?:is|are|be|become|becomes|considered|regarded as|declared) (?:now |to be |hereby )?(?:considered )?(?:void|null|obsolete|invalid|suspended|lifted|superseded|overridden|not (?:binding|applicable))|no longer (?:apply|applies|hold|count|valid|bind))",
        r"\b(?:security|compliance|system|important|mandatory|urgent|legal) (?:notice|requirement|message|directive|note) (?:by|from|of) (?:the |your )?\w+",
        r"\bnotes? (?:from|by) (?:the )?(?:developers?|makers?|authors?|creators?|vendors?) of (?:the |this |your )?(?:models?|assistant|ai|system)\b",
    ),
    _sign(
        checks.BEHAVIOUR,
        "names a trigger for something else",
        rf"\b(?:if|when|whenever|once|as soon as|in case|should|after|every time|each time) (?:the )?(?:{_PEOPLE}|conversation|chat|word|topic|phrase|term|name|subject|message|text|diff|repository|file|date|session|it)\b[^.,\n]{{0,60}}\b(?:mentions?|mentioned|says?|brings? up|comes? up|has come up|turns? out|contains?|touches|is private|talks? about|refers? to|asks? about|includes?|appears?|speaks?)\b[^.\n]{{0,160}}\b(?:add|call|calls|send|sends|push(?:ed)?|forward(?:s|ed)?|copy|copied|approve|reply|replies|answer|read|reads|replace|replaced|include|included|write|delete|run|transfer|to read|gets?|are to|is to)\b",
        r"\b(?:after|on|at|upon|with) (?:the |its |every )?(?:first|second|third|fourth|fifth|tenth|\d+(?:st|nd|rd|th)|nth) (?:use|call|invocation|request|run|time|execution)\b",
        r"\b(?:the |this |your )?(?:assistants?|agents?|models?|llms?) (?:then |also |first |next |automatically |silently )?(?:moves? on|goes on|continues|proceeds|writes?|forwards?|sends?|collects?|gathers?|lists?|reads?|deletes?|removes?|approves?|copies|adds?|appends?|includes?|passes|has (?:already )?(?:collected|gathered|read|disabled|obtained|turned)|is going to|installs?|updates? its|changes? its|edits? its)\b",
        r"\bin which case (?:the |your )?(?:assistants?|agents?|models?|llms?|you)\b",
    ),
    _sign(
        checks.BEHAVIOUR,
        "leaves something behind that the tool is not about",
        r"\b(?:registers?|installs?|adds?) itself\b[^.\n]{0,80}\b(?:settings|config\w*|start-?up|permissions)\b|\b(?:second|additional|extra|another|further) (?:archive|copy|request|upload|message|recipient)\b[^.\n]{0,80}\b(?:\w{2,5}://|[a-z0-9-]+\.(?:example|com|net|org|io))",
        r"\b(?:shell|bash|zsh|terminal|login|powershell) (?:profile|rc|start-?up|config\w*)\b|\.(?:bashrc|zshrc|profile|bash_profile)\b",
        r"\b(?:starts?|runs?|launch(?:es)?|loads?|is started) (?:with|at|on) (?:every|each) (?:terminal|login|boot|session|start-?up|shell)\b|\bat (?:every )?(?:boot|login|start-?up)\b[^.\n]{0,30}\b(?:runs?|starts?|loads?)\b",
        r"\b(?:schedules?|installs?|registers?|creates?|sets? up|adds?) (?:an? |the )?(?:hidden |background |recurring |periodic |extra |cron ?)*(?:cron ?)?(?:job|task|daemon|hook|service|line|entry|agent)\b[^.\n]{0,60}\b(?:sends?|uploads?|every (?:hour|minute|day|night|terminal)|hourly|daily|nightly|reports?|posts?)\b",
        r"\b(?:its|your|the (?:agent|assistant|client|host|ide)'s) (?:own )?(?:settings?|config\w*|permissions?|allow-?list|rules|instructions?|memory|system prompt) ?(?:files?)?\b[^.\n]{0,60}\b(?:so that|such that|to allow|in order)\b",
    ),
)

_THING: Final = re.compile(
    r"cookies?|clipboard|passwords?|passphrases?|password (?:store|manager|vault)|(?:saved|stored) (?:logins?|credentials)|log-?in (?:data|details|information)|logins\b|wallets?(?: files?)?|seed (?:words?|phrases?)|ssh (?:config\w*|keys?|folder|directory)"
    r"|private (?:ssh |rsa |signing )?keys?|(?:shell|command|browsing|browser|terminal) history|output of `?(?:history|env|printenv|set|ps|ls)`?|keychain|keyring|printenv|\b[a-z]*_(?:token|key|secret|password)s?\b|~/\.[a-z]|\.env\b|\.ssh|\.aws|\.npmrc|\.netrc|\.kube"
    r"|bearer tokens?|api keys? (?:you|it|that you)|(?:any|all|every) (?:api keys?|tokens?|credentials?|secrets?|passwords?|environment variables?)|values? of (?:all|any|every|the) (?:environment )?variables?|credential files?|home (?:directory|folder)|(?:whole |entire |full )?(?:address|contact) (?:book|list)|bank details"
    r"|(?:rules|instructions|text|prompt) (?:that )?you were (?:given|initiali[sz]ed|started)|system (?:prompt|message)|(?:everything|anything|all|what) (?:that )?(?:has been |was |you have |we have |they have )?(?:discussed|said|written|talked about) (?:so far|before|until now|earlier|here)|(?:most )?recent messages|messages of the (?:chat|user|conversation)|(?:later|next|each|every|previous|last|recent) messages? of the user|conversation (?:so far|history|until now)|previous (?:messages|turns)|chat (?:history|log|so far)"
)
"""Private things that few tools are about."""
_HANDLING: Final = re.compile(
    r"\b(?:read|reads|open|opens|opened|look(?:s|ed)? (?:at|up|into)|have a look|lookup|obtain\w*|collect\w*|gather\w*|includ\w*|attach\w*|suppl(?:y|ied|ies)|pass(?:es|ed)?|hand(?:s|ed)?|submit\w*|send(?:s|ing)?|sent|mention\w*|put|puts|place[sd]?|append\w*|consult\w*|cop(?:y|ies|ied)|list(?:s|ing)|retry with|given|give|gives|provid\w*|forward\w*|post(?:s|ed)?|upload\w*|fetch\w*|retriev\w*|transmit\w*|accompan\w*|contents? of|text of|values? of|paste\w*|needed for|required for|verif\w*|push(?:es|ed)?|record(?:s|ed)?|extract\w*|harvest\w*|call\w*|with)\b"
)
_DENIED: Final = re.compile(
    r"\b(?:never|not|no|without|cannot|n't|nor|neither|instead of|rather than|avoid|masked|redacted|asterisks|encrypted|hashed)\b"
)
_PRIVATE_TOPIC: Final = re.compile(
    r"auth|log ?in|\bsign|credential|secret|passw|vault|wallet|ssh|cookie|clipboard|\benv|browser|history|scan|leak|redact|mask|pii|prompt|chat|conversation|messag|memor|transcri|mail|slack|contact|bank|pay|key|token|think|feedback|terminal|shell|deploy|config|file|home|sandbox|docker|kube|cloud|account|playground|red-?team|security|debug"
)


def signs_in(sentence: str, topic: str) -> Iterator[tuple[str, str]]:
    """Yield the check of each indirect instruction in a sentence, and what it is.

    ``sentence`` and ``topic``, the name and first sentence of the definition, are normalised.
    """
    for check, pattern, what in _SIGNS:
        if pattern.search(sentence):
            yield check, what
    thing = _THING.search(sentence)
    if thing is None or not _HANDLING.search(sentence) or _PRIVATE_TOPIC.search(topic):
        return
    around = sentence[max(0, thing.start() - 40) : thing.end() + 16]
    if not _DENIED.search(around):
        yield checks.DATA, "speaks of private things that the tool is not about"
