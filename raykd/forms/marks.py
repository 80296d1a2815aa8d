"""The word that stands in front of an utterance, and the mark of its label."""

UTTERANCE = "<utterance>"
"""The word in front of an utterance that stands for the whole of it."""
INTENT = "intent:"
"""What the label of that word begins with; the intent follows."""


def is_intent(tag: str) -> bool:
    """Whether a tag of an utterance is its intent."""
    return tag.startswith(INTENT)
