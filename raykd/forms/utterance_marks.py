"""The artificial word in front of an utterance, and the prefix of its label."""

UTTERANCE = "<utterance>"
"""The word in front of an utterance that stands for the whole of it."""
INTENT = "intent:"
"""Prefix of the label of that word; the intent follows."""


def is_intent(tag: str) -> bool:
    """Return True for the tag of an intent."""
    return tag.startswith(INTENT)
