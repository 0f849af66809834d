"""Commands that attack, and paths of credential files."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.checks import ARGUMENTS, DEFINITION, RESULT
from thoughtgate.policy.inspection.finding import HARD, SOFT


class Command(NamedTuple):
    """A command or path with a finding."""

    check: str
    tier: str
    start: int
    end: int
    what: str


SHELL_MARKS: Final = (
    *("| sh", "|sh", "into bash", "into sh", "to bash", "| bash", "|bash", "| zsh", "|zsh", "| python", "|python", "| sudo", "rm -rf", "rm -fr", "rm -r ", "nc -e", "ncat ", " nc ", "|nc ", ";nc ", "/dev/tcp/"),
    *("powershell", "encodedcommand", "mkfifo", "base64 -d", "base64 --decode", "curl ", "wget ", "iex", "invoke-expression", "downloadstring"),
    *("bash -i", "bash -c", "sh -c", "python -c", "python3 -c", "perl -e", "ruby -e", "node -e", "php -r", "os.system", "__import__", "$(", "`", "; ", "&&", "||", "authorized_keys", "crontab"),
    *("xp_cmdshell", "drop table", "union select", "or '1'='1", "or 1=1", "into outfile", "certutil", "bitsadmin", "mshta", "regsvr32", "chmod 777", "chmod +x", "chmod u+s", "mkfs", "dd if=", ":(){", "/etc/cron", "nslookup", "dig ", "socat", "scp ", "rsync ", "openssl s_client", "> /dev/sd", "iptables -f", "history -c", "setenforce 0", "useradd", "launchctl", "eval(", "exec(", "child_process", "runtime.getruntime", "os.environ", "process.env", "document.cookie", "localstorage", "to program '", "from program '", "pg_read_file", "load_file(", "utl_http", "lo_export"),
    *("sleep(", "benchmark(", "waitfor delay", "pg_sleep", "__globals__", "__class__", "__subclasses__", "jndi:", "--upload-pack", "--receive-pack", "proxycommand", "ext::sh", "<!entity", "or 'a'='a", "' or ", '" or ', "union all select", "information_schema", "chmod 4755", "chmod 4", "chmod +s", "chmod 6", "nopasswd", "<script", "onerror=", "%0a", "%0d", "ld_preload", "${ifs}", "core.sshcommand", "--exec=", "'--", "' --", "'#", '""="', "1=1", "delete from", "; update ", ";update "),
)  # fmt: skip
_COMMON_MARKS: Final = frozenset({"; ", "`", "$(", "&&", "||"})
"""Marks that are everywhere in prose and code; only arguments are looked at for them."""

_HELD_FILE: Final = r"(?:\.ssh|id_rsa|id_ed25519|\.aws|\.env\b|/etc/(?:passwd|shadow)|\.netrc|credentials|\.kube|\.gnupg|\.npmrc|\.git-credentials|\.bash_history|private|secret|environ\b|\.pem\b|wallet)"

_ATTACKS: Final = tuple(
    (re.compile(expression, re.IGNORECASE), what, tiers)
    for expression, what, tiers in (
        # Tiers: in a definition, in arguments, in a result.
        (r"\bpipe\s[^\n]{0,20}https?://\S{3,100}\s(?:in)?to\s(?:ba)?sh\b|(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n|;&]{0,200}\|\s?(?:sudo\s)?(?:-\w+\s)?(?:/(?:usr/)?bin/)?(?:ba|z|da|k)?sh\b", "download and run a script", (HARD, HARD, "")),
        (r"(?:curl|wget)\b[^\n|;&]{0,200}\|\s?(?:sudo\s)?(?:python3?|perl|ruby|node|php)\b", "download and run a program", (HARD, HARD, "")),
        (r"(?:ba)?sh\s{1,3}(?:-c\s?)?[\"'<(]{0,3}\$?\(?(?:curl|wget)\b", "download and run a script", (HARD, HARD, "")),
        (r"(?:curl|wget)\b[^\n]{0,160}(?:&&|;)\s?(?:chmod\s[^\n;&]{1,40}(?:&&|;)\s?)?(?:sudo\s)?(?:ba)?sh\b|(?:curl|wget)\b[^\n]{0,160}(?:&&|;)\s?chmod \+?[0-7x+u]{1,4}\s", "download and run a program", (HARD, HARD, "")),
        (r"\brm\s{1,3}-(?:rf|fr|r\s-f|f\s-r|rf\s--no-preserve-root)\s{1,3}[\"']?(?:--no-preserve-root\s)?(?:/(?:\s|\*|$|[\"'])|~(?:/?(?:\s|$|\*|[\"']))|\$home|\*(?:\s|$)|/(?:home|etc|usr|var|root|boot|users|opt)\b|\.(?:\s|$)|/\*|c:)", "delete a whole tree", (HARD, HARD, SOFT)),
        (r"\bn(?:c|cat|etcat)\b[^\n|]{0,60}\s-(?:e|c)\s|/dev/tcp/|bash\s-i\s?[>&]|mkfifo\s[^\n]{0,80}\bnc\b|socat\b[^\n]{0,80}exec:|\bnc\s[^\n]{0,40}[0-9.]{7,15}\s[0-9]{2,5}\s?(?:<|$)", "open a reverse shell", (HARD, HARD, SOFT)),
        (r"socket\.socket[^\n]{0,120}(?:dup2|subprocess|/bin/sh)|pty\.spawn", "open a reverse shell", (HARD, HARD, SOFT)),
        (r"powershell(?:\.exe)?\b[^\n]{0,80}-(?:e|en|enc|encodedcommand)\s{1,2}[a-z0-9+/=]{12,}|\biex\b\s?[(\s][^\n]{0,60}(?:downloadstring|new-object|iwr|invoke-webrequest|http)|downloadstring\(|invoke-expression\b[^\n]{0,80}http", "run hidden code in PowerShell", (HARD, HARD, SOFT)),
        (r"base64\s{1,2}(?:-d|--decode|-D)\b[^\n|]{0,80}\|\s?(?:sudo\s)?(?:ba|z)?sh\b|\|\s?base64\s-d\s?\|\s?(?:ba)?sh", "run encoded code", (HARD, HARD, SOFT)),
        (rf"(?:cat|tar|zip|gzip|base64|xxd|head|tail|less|grep|find|cp)\b[^\n|;&]{{0,120}}{_HELD_FILE}[^\n]{{0,120}}(?:\||>|&&|;)[^\n]{{0,80}}\b(?:curl|wget|nc|ncat|scp|ftp|mail|ssh|rsync|http)\b", "send a secret file away", (HARD, HARD, SOFT)),
        (rf"(?:curl|wget|http)\b[^\n]{{0,200}}(?:-d|--data(?:-binary|-raw|-urlencode)?|-F|--form|-T|--upload-file|--post-file)[ =]?[\"']?[^\n\s]{{0,40}}(?:@|<|=@)?[^\n\s\"']{{0,80}}{_HELD_FILE}", "send a secret file away", (HARD, HARD, SOFT)),
        (r"(?:curl|wget)\b[^\n]{0,200}(?:\$\(|`)\s?(?:cat|env|printenv|whoami|id|base64|hostname|ls|find|grep|set|tar|gpg|aws|history|git|security|uname)\b", "send the output of a command away", (HARD, HARD, SOFT)),
        (r"\b(?:env|printenv|set|history|ps\s?aux|ls\s-\w+)\s?\|[^\n]{0,80}\b(?:curl|wget|nc|ncat|telnet)\b", "send the environment away", (HARD, HARD, SOFT)),
        (r"(?:curl|wget)\b[^\n]{0,160}(?:-d|--data(?:-binary)?|-F|--upload-file|-T|--post-file)[ =]?[\"']?(?:\w+=)?@[~./\w-]{2,}", "send a file away", (SOFT, SOFT, "")),
        (r"(?:\bcat|\bless|\bhead|\btail|\bcp|\btype|\bmore|\bstrings|\bxxd|\bbase64|\bscp|\brsync|\btar\b[^\n]{0,30}|\bgrep\b[^\n]{0,40})\s[^\n|;]{0,60}(?:~|/home/\w+|/root|\$home|/users/\w+)?/?(?:\.ssh\b(?!/[\w.-]{1,40}\.pub\b)|\.aws/credentials|/etc/shadow|\.netrc|\.git-credentials|\.gnupg|\.kube/config|\.npmrc|\.pypirc|\.docker/config|\.bash_history|\.pgpass|\.vault-token)", "read a secret file", (HARD, HARD, "")),
        (r"(?:\bcat|\bless|\bhead|\btail|\btype|\bmore)\s[^\n|;]{0,60}(?:\.env\b(?!\.example)|/etc/passwd|/proc/self/environ)", "read a secret file", (SOFT, SOFT, "")),
        (r"(?:;|&&|\|\||\||`|\$\()\s?(?:cat\s|rm\s|curl\s|wget\s|nc\s|bash\b|sh\s|whoami|id\b(?=\s?(?:$|[;|&)`\"']))|uname|ping\s-|sleep\s[0-9]|nslookup\s|touch\s/|chmod\s|python3?\s-c|powershell|env\b\s?(?:\||$)|printenv)", "a second command behind a value", ("", "inject", "")),
        (r">>?\s?[~/.\w]{0,40}(?:\.ssh/authorized_keys|/etc/(?:cron|passwd|sudoers|ld\.so)|\.bashrc|\.zshrc|\.profile|/etc/rc\.local)|crontab\s-(?!l)|\|\s?crontab|/etc/cron\.", "make itself permanent", (HARD, HARD, SOFT)),
        (r"\bdd\s+if=[^\n]{0,60}of=/dev/|mkfs(?:\.\w+)?\s+/dev/|:\(\)\s?\{\s?:\|:&\s?\};:|>\s?/dev/sd[a-z]|chmod\s(?:-R\s)?777\s/(?:\s|$|etc)|shutdown\s-h|format\sc:", "destroy the system", (HARD, HARD, SOFT)),
        (r"(?:nslookup|dig|ping|host)\s[^\n]{0,40}(?:\$\(|`)[^\n]{1,80}|\$\((?:whoami|hostname|cat[^)]{1,60}|env)\)\.[a-z0-9-]+\.", "carry data out by DNS", (HARD, HARD, SOFT)),
        (r"(?:'|\")?\s?(?:;|\bunion\s+(?:all\s+)?select\b[^\n]{0,120}\b(?:from|null|password|user)|or\s+'?1'?\s?=\s?'?1|or\s+1=1\s?(?:--|#|;)|;\s?drop\s+(?:table|database)\b|xp_cmdshell|into\s+outfile)", "SQL behind a value", ("", "sql", "")),
        (r"(?:os\.system|subprocess\.\w+|child_process|eval|exec|__import__)\s?\(?[^\n]{0,80}(?:curl|wget|/bin/sh|rm -rf|base64|nc\s|http)", "run a command from code", (HARD, HARD, "")),
        (r"(?:urlopen|requests\.(?:post|put|get|request)|httpx?\.(?:post|put|request)|fetch|axios(?:\.\w{3,7})?|sendbeacon|urlretrieve)\s?\([^\n]{0,160}(?:os\.environ(?!\s?[\[.])|process\.env(?!\s?[\[.])|document\.cookie|localstorage\b(?!\.setitem)|id_rsa|\.ssh/|\.aws/|\.netrc)", "send the environment or a secret away", (HARD, HARD, SOFT)),
        (r"\bcopy\b[^\n;]{1,120}\b(?:to|from)\s{1,3}program\s{1,3}'|\bpg_read_file\(|\bload_file\(\s?['\"]|\butl_http\.|\blo_export\(", "leave the database", (SOFT, HARD, "")),
        (r"(?:certutil|bitsadmin|mshta|regsvr32)\b[^\n]{0,80}https?:|history -c|setenforce 0|iptables -F|useradd\s[^\n]{0,40}(?:-o|sudo|-u 0)|chmod u\+s|security\s(?:find-generic-password|dump-keychain)", "weaken the system", (HARD, HARD, SOFT)),
        (r"\b(?:and|or|;|,|\|\|)\s{0,3}(?:if\s?\()?\(?(?:select\s{1,3})?(?:sleep|pg_sleep|benchmark)\s?\([0-9]|waitfor\s{1,3}delay\s{1,3}'|\w'\s?(?:--|#)\s?$|[\"']\s?or\s?[\"']{2}\s?=\s?[\"']|[0-9'\"]\s?;\s?(?:delete\s{1,3}from|update\s{1,3}\w{1,60}\s{1,3}set|insert\s{1,3}into|alter\s{1,3}table)\b|'\s?or\s?'?(?P<q>\w{1,8})'?\s?=\s?'?(?P=q)\b|union\s{1,3}(?:all\s{1,3})?select\s[^\n]{0,80}(?:information_schema|null\s?,|--)", "SQL behind a value", ("", HARD, "")),
        (r"\{[{%][^\n}]{0,160}(?:__globals__|__class__|__subclasses__|__import__|popen|getruntime|constructor\.constructor)|\$\{jndi:|\$\{[^\n}]{0,60}(?:getruntime|processbuilder|exec\()|<!entity\s[^\n>]{0,80}system\s", "code in a template or document", (HARD, HARD, SOFT)),
        (r"(?:^|[\s\"'=])--(?:upload-pack|receive-pack|exec)[= ][^\n]{2,}|-o\s?proxycommand\s?=|\bext::sh\b|core\.sshcommand\s?=|\$\{ifs\}|ld_preload=", "an option that runs a command", (HARD, HARD, "")),
        (r"chmod\s(?:[ug]\+s|[2467][0-7]{3})\s|nopasswd:\s?all", "gain the rights of root", (HARD, HARD, SOFT)),
        (r"\b(?:scp|rsync|ftp|sftp)\s[^\n]{0,80}(?:~|\.ssh|\.aws|/etc|/home|/root|\.env)[^\n]{0,80}\s\S{1,60}@?[\w.-]+:", "send files away", (HARD, HARD, SOFT)),
    )
)  # fmt: skip
_INJECTED: Final = re.compile(
    r"(?i)^\s?(?:cd|git|npm|ls|echo|python|make|docker|pip|yarn|sudo|mkdir|export|source|cargo|go|test|node|cat|find|grep|kubectl|for|if|set|bash|sh|apt)\b"
)
_SQL: Final = re.compile(
    r"(?i)(?:'|\")\s?(?:;\s?drop|or\s+'?1'?\s?=|union)|or\s+1=1\s?(?:--|#|;|$)|xp_cmdshell|into\s+outfile|union\s+(?:all\s+)?select[^\n]{0,100}(?:--|password|information_schema|null,)|;\s?drop\s+table[^\n]{0,40}--"
)
_WINDOW: Final = 260


_WARNING: Final = re.compile(
    r"(?i)block|dangerous|prevent|forbid|not allowed|disallow|reject|refus|never run|don't run|do not run|deny|denied|destructive|detect|such as|malicious|attack"
)
_DOWNLOADS: Final = frozenset({"download and run a script", "download and run a program"})
_BARE: Final = re.compile(r"http://|https?://[0-9]{1,3}\.[0-9]{1,3}\.")


def find_shell(text: str, places: list[int], kind: str) -> Iterator[Command]:
    """Yield the attacking commands around the places of their marks."""
    column = (DEFINITION, ARGUMENTS, RESULT).index(kind)
    for start, end in _windows(places, len(text)):
        for expression, what, tiers in _ATTACKS:
            tier = tiers[column]
            match = expression.search(text, start, end) if tier or what in _DOWNLOADS else None
            if match and not tier and _BARE.search(match.group()):
                tier = SOFT  # installers of honest projects use TLS and a name
            if match is None:
                continue
            if tier in {"inject", "sql"}:
                tier = _judge_injection(text, match, tier)
            if (
                tier
                and kind != ARGUMENTS
                and _WARNING.search(text, max(0, match.start() - 80), match.end() + 60)
            ):
                tier = ""  # a warning, or a list of what is blocked
            if tier:
                yield Command(checks.SHELL, tier, match.start(), match.end(), what)


def _judge_injection(text: str, match: re.Match[str], form: str) -> str:
    if form == "sql":
        return HARD if _SQL.search(text, max(0, match.start() - 4), match.end() + 60) else ""
    line = text.rfind("\n", 0, match.start()) + 1
    before = text[line : match.start()]
    # A value that is itself a command line is not an injection into another value.
    if _INJECTED.match(before) or len(before) > 120 or " " in before.strip():
        return ""
    return SOFT


def _windows(places: list[int], length: int) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    for place in places:
        start, end = max(0, place - _WINDOW), min(length, place + _WINDOW)
        if windows and start <= windows[-1][1]:
            windows[-1] = windows[-1][0], end
        else:
            windows.append((start, end))
    return windows


def shell_marks(kind: str) -> tuple[str, ...]:
    """Return the marks around which commands are looked for."""
    return tuple(mark for mark in SHELL_MARKS if kind == ARGUMENTS or mark not in _COMMON_MARKS)


PATH_MARKS: Final = (
    *("id_rsa", "id_ed25519", "id_ecdsa", ".ssh/", ".ssh", ".aws/credentials", ".aws/config", ".env", "/etc/shadow", "/etc/passwd", "/etc/sudoers", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".kube/config"),
    *(".docker/config.json", "claude_desktop_config", ".cursor/mcp.json", "login data", "wallet.dat", ".bash_history", ".zsh_history", ".gnupg", "/proc/self/environ", "application_default_credentials", "terraform.tfstate", ".pgpass", ".vault-token"),
    *("../..", "..\\..", "%2e%2e", "..%2f", "....//", "/var/run/secrets", "keychain", ".password-store", "gh/hosts.yml", "windows\\system32\\config", "/root/.", "credentials.json", "secrets.yaml", "master.key", ".htpasswd", "key4.db", "logins.json", ".config/gcloud", ".claude.json", ".mcp.json", "id_dsa", "win.ini", "boot.ini", "/proc/self", "/proc/1/", "/environ", ".aws\\", ".kube\\", ".ssh\\", ".azure\\", "service-account.json", "service_account.json", ".kdbx", ".tfstate", "privkey.pem", ".azure/", "cookies.sqlite", "/etc/kubernetes", "shadow.bak", "wp-config.php", ".my.cnf"),
)  # fmt: skip
_STRONG_PATH: Final = re.compile(
    r"(?i)(?:\.ssh/)?id_(?:rsa|dsa|ecdsa|ed25519)(?!\.pub|\w)|\.aws/credentials|/etc/(?:shadow|sudoers|master\.passwd)|\.netrc\b|\.git-credentials|\.kube/config|\.docker/config\.json|\.gnupg/(?:private|secring)|/proc/self/environ|/proc/[0-9]+/environ|\\.(?:aws|kube|ssh|azure)\\|application_default_credentials|\.pgpass|\.vault-token|/var/run/secrets/|wallet\.dat|login data|\.password-store|gh/hosts\.yml|keychain-db|login\.keychain|key4\.db|logins\.json|system32[\\/]config[\\/](?:sam|system|security)|\.bash_history|\.zsh_history|\.npmrc\b|\.pypirc|\.my\.cnf|\.kdbx|cookies\.sqlite|privkey\.pem|claude_desktop_config|\.cursor/mcp\.json|\.azure/(?:accesstokens|msal)|/etc/kubernetes/(?:admin|pki)|\.htpasswd|/root/\.(?:ssh|aws|bash)|\.ssh/?(?:$|[\s\"'*])|/etc/passwd"
)
_WEAK_PATH: Final = re.compile(
    r"(?i)(?:^|[\s/\"'=:])\.env(?:\.(?:local|prod(?:uction)?|staging))?(?=$|[\s\"',;)])|credentials\.json|secrets\.ya?ml|master\.key|terraform\.tfstate|service[-_]account\.json|wp-config\.php|\.claude\.json|\.mcp\.json|\.config/gcloud|\.aws/config|win\.ini|boot\.ini"
)
_CLIMB: Final = re.compile(
    r"(?i)(?:\.\.(?:/|\\|%2f|%5c)|%2e%2e(?:/|%2f|%5c)|\.\.%2f|\.{4}//|%252e%252e%252f){2,}[^\s\"']{0,80}"
)
_CLIMB_GOAL: Final = re.compile(
    r"(?i)etc[/\\%]|passwd|shadow|\.ssh|\.aws|\.env|root|proc/|windows|win\.ini|boot\.ini|secret|credential|home/|\.git|config|var/log|\.kube"
)


def find_paths(text: str, places: list[int], kind: str) -> Iterator[Command]:
    """Yield the paths of credential files around the places of their marks; for arguments."""
    if kind != ARGUMENTS:
        return
    for start, end in _windows(places, len(text)):
        for match in _CLIMB.finditer(text, start, end):
            if _CLIMB_GOAL.search(match.group()):
                yield Command(
                    checks.PATH,
                    HARD,
                    match.start(),
                    match.end(),
                    "a path that climbs to system files",
                )
            elif match.group().count("..") > 2 or "%" in match.group():
                yield Command(
                    checks.PATH,
                    SOFT,
                    match.start(),
                    match.end(),
                    "a path that climbs out of its folder",
                )
        for match in _STRONG_PATH.finditer(text, start, end):
            prose = " " in text[max(0, match.start() - 200) : match.start()].strip()
            yield Command(
                checks.PATH,
                SOFT if prose else HARD,
                match.start(),
                match.end(),
                "the path of a credential file",
            )
        for match in _WEAK_PATH.finditer(text, start, end):
            yield Command(
                checks.PATH,
                SOFT,
                match.start(),
                match.end(),
                "the path of a file that often holds secrets",
            )
