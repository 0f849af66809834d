"""The traits of a sentence in a definition: who is addressed, what is asked for, about what, and how.

Each trait is a list of words that mean the same in several languages, as in ``lexicon``. They are
common words on purpose: an instruction can avoid every telling phrase, but not all of its verbs,
its object and its excuse. ``sentences`` weighs the traits that stand in one sentence.
"""

from typing import Final

TRAITS: Final[dict[str, str]] = {
    # Who is addressed.
    "model": """
        assistant, agent, model, llm, ai, language model, chatbot, bot, caller, calling model, the client, copilot, claude, gpt, chatgpt, gemini,
        sprachmodell, modell, ki, l'assistant, l'agent, modèle, le modèle, asistente, modelo, agente, modello, l'assistente, assistente,
        助手, 模型, 智能体, アシスタント, モデル, エージェント, ассистент*, модель, модели, помощник*, агент*
    """,
    "you": """
        you, your, yourself, yours, du, dir, dein*, ihr, vous, votre, vos, tu, tus, tes, usted, sie, 你, 您, ты, вы, твой, あなた
    """,
    "user": """
        user, person, people, customer, human, humans, owner, employee, reader, colleague, participant, candidate, someone, anyone, whoever, victim,
        nutzer*, benutzer*, anwender*, utilisateur*, usuario*, utente, utenti, 用户, 使用者, 利用者, ユーザ*, пользовател*, kunde*, client's
    """,
    "their": """
        their, his, her, user's, users', person's, customer's, owner's, themselves, employee's, 他们, их, seine*, ses, sus
    """,
    # How it is asked.
    "duty": """
        must, shall, have to, has to, is to, are to, be to, needs to, need to, required, requirement, prerequisite, mandatory, obliged, obligation, expected, requested, ought, supposed, duty, is owed, obligatory,
        expects, requires, demands, wants, insist, advisable, customary, should, it is essential, make sure, ensure, take care, see to it,
        muss, müssen, musst, soll*, hat zu, haben zu, doit, doivent, devez, dois, il faut, debe*, tiene que, tienes que, hay que, deberá, deve, devono,
        必须, 务必, 需要, 应当, 应该, 都要, 要先, должен, должна, должны, обязан*, нужно, необходимо, следует, положено, 必ず, べき, ること, 必要
    """,
    "please": """
        please, kindly, would you, be so kind, courtesy, tip, hint, bitte, veuillez, merci de, por favor, prego, 请, 請, пожалуйста, ください, tip for, note for, note to, reminder
    """,
    "forced": """
        penalised, penalized, rewarded, punished, suspended, expire, expires, in 10 minutes, is owed,
        otherwise, or else, will not work, does not work, fails, failure, rejected, refused, locked, reported, warning, will be, only works, works reliably, sonst, sinon, de lo contrario, 否则, иначе, さもないと
    """,
    # What is to be done.
    "take": """
        read, reads, reading, open, collect, gather, fetch, obtain, retrieve, look in, look into, look at, look through, look up, go through, going through, search the, take, taken, pick, copy, copied, extract, grab, export, dump, enumerate, learn, learned, learnt, harvest, find out, locate,  reviewed, concatenat*, join, inspect,
        lies, lesen, liest, öffne, öffnen, sammle, sammeln, einsammel*, einzusammeln, hole, holen, lis, lire, lisez, récupér*, ouvr*, collecter, relever, lee, leer, lea, recopil*, obtén, obtener, obtenga, abre, leggi, leggere, raccogli*,
        读取, 收集, 获取, 打开, 查看, 读, прочита*, читай, собери*, собрать, узнай*, получи*, открой*, 読み取*, 読み込*, 読んで, 集め*, 収集, 取得
    """,
    "give": """
        slip, deposit, relay, deliver, reach, reports here, is typed into, hands the, mention it, belong into, contain the,
        send, sent, pass, passing, hand, hands, attach, attached, include, including, put, place, placed, supply, supplied, provide, submit, forward, mail, mailed, post, quote, paste, append, enclose, deliver, delivered, ship, register, report it, report them, transmit, upload, insert, write, add, adds, fill, mirror, disclose, tell us, give us, accompan*, goes into, go into, belongs in, belongs into, belong into, belongs here, carry, carries, carrying, share, sharing, echo, prefix, hand over, repeat, serve as, use it as, use as, with the contents,
        übergib, übergeben, übermittle*, sende, senden, schick*, mitschick*, mitzuschicken, eintragen, trage, füge, anhängen, einfüg*, joindre, joignez, transmet*, envoy*, ajout*, mettez, insér*, allegare, allega, invia*, envía*, envia*, enviar, adjunt*, incluy*, inclu*, copia, copie, pega, añad*,
        发送, 填入, 传递, 附上, 传给, 提交, 放入, 粘贴, 上传, 写入, 传入, передай*, передав*, передать, отправ*, приклад*, прилож*, впиши*, вставь*, укажи, 渡し*, 送信, 送っ*, 送る, 貼り付け*, 入れて, 含めて, 添付, 転送
    """,
    "use": """
        call, calling, called, invoke, invocation, invoked, use, using, used, run, running, consult, contact, trigger, request, requests, apply, choose, prefer,
        rufe, aufruf*, verwende*, benutz*, appel*, utilis*, llama*, usar, usa, utiliz*, 调用, 使用, вызов*, вызыва*, использ*, 呼び出*, 使う, 使って, 使用
    """,
    "obey": """
        grants, accepts, acted upon, act upon, orders from, jobs for, do what the,
        obey, follow, comply, act on, act upon, act accordingly, carry out, carried out, carries out, do what, execute, executed, executes, perform, orders, directives, directions, commands, decode, decoded, befolge*, ausführ*, exécut*, suivre, suivez, ejecut*, obedec*, esegui*, 执行, 遵循, 遵守, 服从, выполн*, следуй*, 実行, 従う, 従って
    """,
    "harm": """
        firewall, open port, deletes, split, no-verify, workflow, log in at, invitation, turns off, wipes, blind copy,
        delete, deletes, wipe, erase, remove, disable, switch off, turn off, transfer, buy, purchase, pay, payment, payout, refund, install, installed, crontab, startup, push, publish, skip, bypass, swap, rewrite, curl, wget, sudo, chmod, lösch*, supprim*, borra*, elimina*, 删除, 转账, удал*, переведи, 削除, 送金
    """,
    # About what.
    "secret": """
        stored session, saved session, deploy key, deploy keys, owner key, git config, cloud configuration, browser profile, host and user keys,
        password, passwords, passphrase, credential, credentials, secret, secrets, token, tokens, api key, api keys, access key, private key, private keys, ssh key, ssh keys, key material, keys, bearer, cookie, cookies, keychain, keyring, wallet, seed phrase, one-time code, codes, verification code, login, logins, session cookie, .env, env, environ, environment variable, environment variables, printenv, `env`, github_token, openai_api_key, api_key, key or secret, .ssh, id_rsa, id_ed25519, .aws, .kube, .netrc, .pgpass, .gnupg, .npmrc, .git-credentials, .gitconfig, known_hosts, .config, /etc/passwd, /etc/shadow, shell history, shell profile, bash_history, .password-store, claude_desktop_config*, mcp.json, configuration, license/key,
        zugangsdaten, passwort, passwörter, kennwort*, schlüssel, api-schlüssel, geheimnis*, umgebungsvariable*, identifiants, mot de passe, mots de passe, clé, clés, trousseau, contraseña*, credencial*, clave, claves, llaves, variables de entorno, credenziali, chiavi,
        密码, 密钥, 凭证, 凭据, 令牌, 环境变量, 私钥, 配置文件, парол*, ключ*, токен*, переменн*, секрет*, кодовое слово, パスワード, 鍵, 秘密, 認証情報, トークン, 環境変数
    """,
    "personal": """
        diary, income, diagnosis, date of birth, insurance number, holdings, off the record, in confidence, colleagues, subject line, customers table, contracts, wi-fi, screenshot folder, whereabouts, photo, captions,
        mailbox, inbox, mail of, letters, screenshots, microphone, screen, e-mails, emails, mails, documents, photos, calendar, contacts, contact data, address book, clipboard, browser, browsing, home directory, home folder, $home, whereabouts, location, salary, salaries, payroll, passport, card number, bank details, bank, iban, social security, employer, customers, customer list, customer lists, personal, private, identity, profile, phone number, health, medical, finance, finances, legal, plans, name of the user, open files, files in, projects, account number,
        postfach, dokumente, kontakte, fotos, adressbuch, persönlich*, courriels, contacts, documents, correos, contactos, documentos, tarjeta*, 邮件, 联系人, 个人, 文档, 主目录, почт*, контакт*, документ*, личн*, メール, 連絡先, 個人, 書類
    """,
    "talk": """
        conversation, conversations, chat, transcript, dialogue, dialog, turns, turn, chat history, history, messages, user message, last message, typed, said, told you, wrote, original question, prior messages, recent prompts, prompts, discussion, up to this point, so far, learned so far,
        gespräch*, unterhaltung*, nachrichten, verlauf, échanges, historique, conversación, historial, mensajes, conversazione, cronologia, 对话, 聊天, 记录, 消息, 原始问题, переписк*, разговор*, диалог*, сообщени*, истори*, 会話, 履歴, やり取り
    """,
    "self": """
        draft reply, directives, inventory, configured with, the prompt you,
        system prompt, prompt, the prompt, reasoning, hidden rules, your rules, your instructions, developer instructions, developer message, instructions, guidelines, restrictions, tool list, list of its tools, list of tools, list of your tools, tool descriptions, memory, its memory, your reasoning, system message,
        systemprompt, anweisungen, consignes, instrucciones, 系统提示*, 指令, 提示词, промпт*, инструкци*, システムプロンプト, 指示
    """,
    "others": """
        other scanners, mail function, other timer, other search, successive, pending call, nothing else, everything else,
        other tool, other tools, another tool, any tool, any other, every other, all other, all others, all tools, the others, other one, other server, other servers, another server, whichever, next tool, mail tool, file tool, any file tool, payment tool, browser tool, database tool, tool's arguments, tools on this, built-in, the terminal, other finance, of the other, file server,
        andere werkzeuge, andere tools, anderen werkzeuge*, autres outils, tout autre outil, autre outil, otras herramientas, otra herramienta, altri strumenti, 其他工具, 其他所有工具, 任何工具, 所有工具, 其它工具, другие инструменты, других инструментов, всех остальных, остальн*, 他のツール, ほかのツール, 他の全て
    """,
    "thing": """
        file, files, folder, directory, directories, workspace, repository, project, database, table, account, text, content, contents, what you know, everything, whatever, input, output, arguments, values, datei*, fichier*, archivo*, fichero*, file di, 文件, 目录, файл*, ファイル, フォルダ
    """,
    # Modifiers.
    "silent": """
        play down, worth mentioning, say that none, in truth, must not learn, nobody but, eyes only, leaves no comment, overlook, forbidden, conceals why, not be shown, hidden from, keeps to itself, as a surprise, unasked,
        silently, quietly, discreetly, discreet, unnoticed, secretly, confidential, in secret, unmentioned, not mention, mention of, no mention, without mention*, without telling, without notice, not notified, not be notified, not informed, not told, not tell, not telling, to yourself, keep quiet, leave it out, leave out, leave them out, conceal, conceals, hide, hides, hiding, between us, draw attention, bring this up, bring it up, bring up, not for humans, for humans, need not know, of no interest, no need to mention, in the background, background, pretend, pretext, do not list, not list, spare the user, troubling, trouble, disclose, find this confusing, internal, no questions,
        stillschweigen, heimlich, unbemerkt, nichts zu erfahren, nichts davon, nicht informiert, nicht erwähn*, nicht mitgeteilt, verschweig*, discrètement, sans en parler, n'en faites pas, à l'insu, ne pas mentionner, interne, sin avisar*, en secreto, sin decir*, sin que, no menciones, non parlarne, senza dir*, di nascosto,
        不要告知, 不要告诉, 不要向用户, 无需知晓, 不必告知, 不要提及, 不得告知, 悄悄, не сообща*, не говори*, не упомина*, тайно, незаметно, скрыт*, 知らせない, 知らせず, 見せない, 内緒, 伝えない, 言わない, 気づかれ*
    """,
    "rank": """
        ranks above, above system, above the, outrank, counts as, stands above, as though,
        precedence, priority, prioritise, override, overrides, overriding, supersede, supersedes, outrank, outranks, authoritative, authority, contradict, irrespective, regardless, even on request, even where, even if, trumps, in all cases, best choice, rank, responsible for, vorrang, priorität, prioritaire, prioridad, 优先*, 高于, приоритет*, вместо, 優先
    """,
    "divert": """
        instead, instead of, rather than, redirect*, reroute*, route, routed, through this, in place of, replace, replaced, replaces, replacing, swap, set to, with this one, done with, passed through, anstelle, stattdessen, à la place, en lugar de, en vez de, 代替, 而不是, вместо, 代わり
    """,
    "discredit": """
        deprecated, out of date, outdated, obsolete, compromised, unsafe, unreliable, wrong, broken, lose, loses, lost, restricted, not allowed, no longer, decline, avoid, stop using, do not use the, insecure, veraltet, obsolète, obsoleto, nicht mehr, 过时, 不安全, устарел*, 古い
    """,
    "every": """
        every, each, any, all, always, whenever, whatever, everything, anything, every time, each time, every call, each call, on every, with every, with each, in all,
        jede*, alle, allen, toute, toutes, tous, chaque, cada, todo*, toda*, cualquier*, tutti, tutte, ogni, 所有, 任何, 每次, 一切, кажд*, все, всех, 常に, いつも, 毎回
    """,
    "whole": """
        full, in full, entire, complete, completely, verbatim, word for word, unabridged, unfiltered, unchanged, raw, whole, everything, real,
        sämtliche*, vollständig*, wörtlich, gesamte*, intégralité, complet, complète, completo, completa, 全部, 完整, 原文, всё, полност*, すべて, 全て, 全部, そのまま
    """,
    "before": """
        before, prior to, beforehand, first, ahead of, until, unless, bevor, zuerst, vor jeder, vor jedem, vor der, avant, d'abord, antes, primero, prima di, 之前, 首先, 先, перед, сначала, прежде, 前に, 最初に, 先に
    """,
    "then": """
        after, afterwards, upon, as soon as, right after, once, next, then, while, between, at once, along with, besides, also, as well, in addition, nach, danach, zudem, ensuite, après, luego, después, además, dopo, 然后, 之后, 同时, 并, после, затем, также, 後に, その後
    """,
    "purpose": """
        to get, to find, to see, to know the, to look up, to determine, to obtain the, to learn the, to avoid, to prevent, to check, to list, to read on, um zu, pour obtenir, para obtener, per ottenere, чтобы узнать, 以获取, 取得するため
    """,
    "lasting": """
        when idle, keep calling, on its own initiative, between moves, with the last call, once per session, stays on,
        from now on, henceforth, from here on, for the rest of, rest of the session, in the session, of the session, in this session, during the session, on every turn, every turn, start of each, start of every, beginning of each, each conversation, each reply, each answer, every answer, every reply, every hour, until further notice, in the memory, future, future runs, third call, second call, on load,
        ab sofort, ab jetzt, künftig*, désormais, a partir de ahora, en adelante, d'ora in poi, 此后, 以后, 从现在起, 今后, впредь, отныне, с этого момента, 今後, これから
    """,
    "office": """
        system, administrator*, admin, operator, operators, platform, host application, policy, compliance, governance, pursuant, clause, regulation, notice, security team, vendor, anthropic, openai, google, microsoft, developer mode, operator rights, authorised, authorized, pre-authorised, licensed, license, official, hr, audit, audits, monitored, company, support, upgraded, version 2,
        richtlinie*, vorschrift*, administrateur, politique, administrador, política, 系统通知, 管理员, 系统, администратор*, политик*, 管理者, システム通知
    """,
    "consent": """
        answering as, intended way, straight away, without comment, as though its user, as though the user, no-verify, --no-verify, waive, skip hooks, answers them, redundant, approval limit, under the limit, marked as passed,
        confirmation, confirmations, confirm, approval, approvals, approve, approved, permission, permissions, consent, consented, without asking, asking, without further, without a check, without check, agreed, cleared, waived, granted, as given, refusal, declines, decline, dialogs, unattended, lifted, on behalf, yes, anyway, need not be put, need not, no need, trusted, directly, at once,
        bestätigung, zustimmung, genehmig*, confirmation, autorisation, consentement, confirmación, permiso, conferma, 确认, 许可, 同意, 批准, подтвержд*, разрешени*, согласи*, 確認, 許可, 承認
    """,
    "no": """
        not, no, never, without, none, nor, nobody, nothing, don't, doesn't, isn't, cannot, won't, neither, must not, nicht, kein*, nichts, nie, ohne, ne, pas, sans, jamais, sin, nunca, ninguna, non, senza, mai, 不, 无, 勿, 别, 不要, не, без, никогда, нельзя, ない, ません, ず, 禁止
    """,
    "say": """
        say, says, tell the user, answer, answers, reply, replies, respond, response, explain, explanation, explanations, describe, recommend, recommended, claim, mention, state, competitor, competitors, naming, report that, prefixed, render this, sag, sage, antworte*, réponse, répond*, responde*, respuesta*, rispond*, 回答, 回复, 告诉, ответ*, скажи, объясни, 返信, 回答
    """,
    "ask": """
        ask the user for, ask for their, ask the user, ask them, request from the user, question, questions, frage den, demande à l'utilisateur, pregunta al usuario, 询问用户, 向用户确认, спроси*, ユーザーに確認, bestätigung durch, with the user
    """,
    "trigger": """
        if, when, whenever, should, in case, in the event, as soon as, mentions, comes up, come up, asks about, wenn, falls, sobald, si, lorsque, quand, cuando, se, quando, 如果, 当, 若, если, когда, 場合, たら, とき
    """,
    "excuse": """
        needed for, in order to, so that, because, since, as some, reliably, calibration, quota, verification, verify, activation, activate, cache, telemetry, quality, accuracy, accurate, improved, improve, better, personalised, personalized, tailored, attribute, licensing, handshake, backup, backups, for best, useful, entropy, faster,
    """,
    "param": """
        parameter, parameters, field, argument, param, header, in the call, as metadata, as metadata, front matter, as key, feld, paramètre, champ, parámetro, campo, 参数, 字段, параметр*, поле, パラメータ, 引数
    """,
    # What honest descriptions say.
    "form": """
        absolute path, absolute, relative, format, iso, upper case, uppercase, digits, number, integer, boolean, default, defaults, optional, maximum, minimum, max, limit, limits, comma-separated, valid, syntax, id, ids, identifier, string, array, list of, json, regex, pattern, filter, sort, page, pagination, offset, cursor, timestamp, supported, true, false, null, characters, seconds, milliseconds, e.g, i.e, obligatoire, pflicht, requerido, 格式, 默认, формат*, 形式
    """,
    "returns": """
        returns, return, returned, lists, shows, displays, gets, creates, results, result, this tool, use this tool, use this when, useful for, ideal for, best for, only works within, retrieves, provides, supports, allows, requires, you can, liefert, renvoie, devuelve, 返回, возвращает, 返します
    """,
    "care": """
        do not use, don't use, not use, never use, do not call, not for, caution, careful, destructive, irreversible, untrusted, masked, redacted, encrypted, never stored, never returned, are never, is never, do not include, don't include, never include, do not store, do not put, do not share, never share, do not follow, never follow, do not commit, remove tokens, nicht verwenden, n'utilisez pas, no utilice, 请勿, 不要包含, не используйте, しないでください, explicitly, explicit, confirm with the user, ask the user for confirmation, wait for their approval, show the draft, visible to
    """,
    "open": """
        tell the user, tells the user, inform the user, let the user know, show the user, shows the user, to the user, ask the user, ask them, ask before, asking the user, with the user, warn the user, remind the user, alert the user, explain to the user, by the user, user asks, user has asked, user asked, user explicitly, if the user, the user wants, user's approval, their approval, clear yes, wait until, wait for, confirm with, get approval, needs approval, ask an administrator,
        den nutzer fragen, den benutzer fragen, bitte den benutzer, demandez, l'accord de, pida, pedir confirmación, chiedere, 与用户确认, 向用户确认, 征得用户, согласуйте, покажите, спросите, ユーザーの同意, 同意を得て, ユーザーに確認
    """,
    "about": """
        attack, attacker, attackers, attacks, injection, jailbreak, detect, detects, detection, scan, scans, scanner, malicious, phishing, vulnerability, vulnerabilities, cve, owasp, benchmark, red team, exploit, exfiltration, leak, leaked, breach, breaches, canary, guardrail, guardrails, suspicious, testing, penetration, security events, such as, for example, example, for instance, documentation, explains
    """,
}  # fmt: skip
"""Name of a trait -> its words."""
