"""Generated JSON: values that have one reading, for property tests."""

from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value of moderate size."""
    leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)
        ),
        max_leaves=12,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """A JSON object of moderate size."""
    return st.dictionaries(texts, json_values(), max_size=5)
