"""States of prompts that were used: each is inserted once, and kept until it would have expired."""

from thoughtgate.stores.database import Store


class UsedPrompts(Store):
    """The used states of all gates that share the store."""

    def mark(self, nonce: str, expires_at: float, at: float) -> bool:
        """Mark a state as used; False if it already was. Both times are the store's.

        Raises:
            StoreError: the store cannot be written, so the state may not be used.
        """
        # Inserting or refusing is one statement, so no other transaction has to wait.
        with self._database.write(exclusive=False) as transaction:
            transaction.execute("DELETE FROM used_prompts WHERE expires_at < ?", (at,))
            inserted = transaction.execute(
                "INSERT INTO used_prompts (nonce, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (nonce, expires_at),
            )
            return inserted.rowcount == 1
