"""The key that encrypts stored tokens: from a variable of the config, or the system's keyring.

There is no fallback: without a key, tokens are not stored.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from thoughtgate.errors import LoginError
from thoughtgate.stores.tokens import Cipher

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE: Final = "thoughtgate"
ENTRY: Final = "oauth-token-keys"
MAX_KEYS: Final = 16
MAKE_ONE: Final = "openssl rand -base64 32 | tr '+/' '-_'"

_USE_A_VARIABLE: Final = (
    "put a key into an environment variable and name it in keys.tokens_env"
    f" (create a key with: {MAKE_ONE})"
)
_NO_KEYRING: Final = (
    f"this machine has no keyring for the key that encrypts tokens; {_USE_A_VARIABLE}"
)
_LOCKED: Final = (
    "the system's keyring is locked, and has the key that encrypts tokens; unlock it, or"
    f" {_USE_A_VARIABLE}"
)
_NOT_INSTALLED: Final = "OAuth needs an optional dependency: pip install 'thoughtgate[oauth]'"


def load_cipher(environ: Mapping[str, str], variable: str = "") -> Cipher:
    """Return a cipher that encrypts with the current key and also decrypts with previous keys.

    This may block, because a keyring may ask the user to unlock it.

    Raises:
        LoginError: there is no key; the text says what to do.
    """
    if not variable:
        return cipher_of(_from_keyring(), "the keyring entry of thoughtgate")
    text = environ.get(variable, "").strip()
    if not text:
        raise LoginError(
            f"the variable {variable} (keys.tokens_env) is not set; it must hold the key that"
            f" encrypts tokens (create a key with: {MAKE_ONE})"
        )
    return cipher_of(text, f"the variable {variable} (keys.tokens_env)")


def cipher_of(text: str, source: str) -> Cipher:
    """Return the cipher for one or several keys, separated by commas, the current one first.

    Raises:
        LoginError: they are not keys.
    """
    try:
        from cryptography.fernet import Fernet, InvalidToken, MultiFernet
    except ImportError:
        raise LoginError(_NOT_INSTALLED) from None

    class Keys(MultiFernet):
        """Raises ValueError, as the store expects, without naming the library's exception."""

        def decrypt(self, msg: bytes | str, ttl: int | None = None) -> bytes:
            try:
                return super().decrypt(msg, ttl)
            except InvalidToken:
                raise ValueError("no key fits") from None

    words = [word.strip() for word in text.split(",") if word.strip()][: MAX_KEYS + 1]
    try:
        if not 0 < len(words) <= MAX_KEYS:
            raise ValueError("no key, or too many")  # noqa: TRY301  the same message as below
        return cast("Cipher", Keys([Fernet(word) for word in words]))
    except ValueError:
        raise LoginError(
            f"{source} must hold 1 to {MAX_KEYS} keys of 32 bytes in URL-safe base64, separated by"
            f" commas; create one with {MAKE_ONE}"
        ) from None


def _system_keyring() -> "KeyringBackend | None":
    """Return the best keyring of the system; None if there is none that protects its contents.

    ``keyring.get_keyring`` is not used: it imports modules that environment variables name, and an
    agent that starts the gate chooses its environment.
    """
    from keyring.backend import get_all_keyring

    # A priority below 1 is that of the missing backend, the null backend and plain files.
    usable = [one for one in get_all_keyring() if one.priority >= 1]
    return max(usable, key=lambda one: one.priority, default=None)


def _from_keyring() -> str:
    try:
        from cryptography.fernet import Fernet
        from keyring.errors import InitError, KeyringError, KeyringLocked
    except ImportError:
        raise LoginError(_NOT_INSTALLED) from None
    keyring = _system_keyring()
    if keyring is None:
        raise LoginError(_NO_KEYRING)
    try:
        kept = keyring.get_password(SERVICE, ENTRY)
        if not kept:
            keyring.set_password(SERVICE, ENTRY, Fernet.generate_key().decode())
            # Read again: another process may have written its own key at the same time.
            kept = keyring.get_password(SERVICE, ENTRY)
    except (InitError, KeyringLocked):
        raise LoginError(_LOCKED) from None
    except KeyringError as error:
        raise LoginError(f"{_NO_KEYRING} ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001
        # Backends talk to other programs, and pass on whatever their libraries raise.
        raise LoginError(f"the keyring cannot be used ({type(error).__name__})") from None
    if not kept:
        raise LoginError(_NO_KEYRING)
    return kept
