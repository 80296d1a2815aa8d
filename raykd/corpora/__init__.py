"""Text in: readers for many formats, one internal tag scheme, vocabularies, encoding and batching."""
