"""One sentence as a vocabulary writes it, in plain lists: what encoded text is compared with."""


def encoded(vocabulary, words):
    """Piece ids, prefix and suffix included, and the place of each word's first piece among them."""
    ids, first = list(vocabulary.special.prefix), []
    for word in words:
        first.append(len(ids))
        ids += vocabulary.pieces([word]).values.tolist()
    return [*ids, *vocabulary.special.suffix], first
