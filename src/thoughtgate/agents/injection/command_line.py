"""Finding and changing the arguments of an agent; the first word is the agent itself."""

from collections.abc import Collection, Sequence


def first_word_of(argv: Sequence[str], words: Collection[str]) -> str:
    """Return the first argument that is one of some words, before a closing ``--``; or empty."""
    for word in argv[1:]:
        if word == "--":
            break
        if word in words:
            return word
    return ""


def with_arguments(argv: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with arguments added before the user's own."""
    return (*argv[:1], *added, *argv[1:])


def without_flag(argv: Sequence[str], flag: str, *, values: bool = True) -> list[str]:
    """Return a command line without a flag and its values, in the forms ``--flag a b``, ``--flag=a``."""
    kept = list(argv[:1])
    taking = False
    for index, word in enumerate(argv[1:], 1):
        if word == "--":
            return [*kept, *argv[index:]]
        if word.startswith("-"):
            taking = values and word == flag
            if word != flag and not (values and word.startswith(f"{flag}=")):
                kept.append(word)
        elif not taking:
            kept.append(word)
    return kept
