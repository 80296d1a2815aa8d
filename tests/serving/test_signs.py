"""The words of running text: which signs belong together, which are no words, and that offsets count in the text."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raykd.serving.labeller import SPLITS, normalize_word, word_places, words_in

HIDDEN = [
    chr(place)
    for place in range(sys.maxunicode + 1)
    if unicodedata.category(chr(place)) == "Cf" and chr(place) not in "\u200c\u200d"
]
"""Signs of format: soft hyphens, marks of direction, byte order marks and the like."""
LETTERS = "aé7東ア한กי👍🏽🇩🇪❤-’._ \t\n\u0301\ufe0f\u20e3\u200c\u200d\u200b\u00ad\ufeff\u200f\U000e0067"
TEXTS = st.text(alphabet=LETTERS, max_size=20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024年に東京でトヨタのCEOが話した。", "2024|年|に|東|京|で|ト|ヨ|タ|の|CEO|が|話|し|た|。"),
        ("iPhoneを買った。", "iPhone|を|買|っ|た|。"),
        ("习近平在G20峰会", "习|近|平|在|G20|峰|会"),
        ("𠮷野家々〇〆", "𠮷|野|家|々|〇|〆"),
        ("葛\U000e0100城市", "葛\U000e0100|城|市"),
        ("ｱｲA1ｶﾞﾊﾟ｡", "ｱ|ｲ|A1|ｶﾞ|ﾊﾟ|｡"),
        ("ﾡﾢ 서울시", "ﾡﾢ|서울시"),
        ("か\u3099X\u304b", "か\u3099|X|か"),
        ("สวัสดีCOVID19ครับ", "ส|วั|ส|ดี|COVID19|ค|รั|บ"),
        ("ປະເທດLao5ລາວ", "ປ|ະ|ເ|ທ|ດ|Lao5|ລ|າ|ວ"),
        ("G7မြန်မာ", "G7|မြ|န်|မာ"),
        ("A4ខ្មែរ", "A4|ខ្|មែ|រ"),
        ("๒๕๖๗ปี", "๒๕๖๗|ปี"),
        ("O'Neill東京.5", "O'Neill|東|京|.|5"),
    ],
)
def test_letters_of_scripts_without_spaces_are_words(text, words):
    assert "|".join(words_in(text)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("👨\u200d👩\u200d👧 in London 👍🏽 🇩🇪 Berlin 😀", "👨\u200d👩\u200d👧|in|London|👍🏽|🇩🇪|Berlin|😀"),
        ("I❤️NY ❤\ufe0f\u200d🔥!", "I|❤️|NY|❤\ufe0f\u200d🔥|!"),
        ("🇩🇪🇫🇷🇮 a🇪🇸", "🇩🇪|🇫🇷|🇮|a|🇪🇸"),
        ("1️⃣2️⃣a3⃣ #️⃣*⃣ 12", "1️⃣|2️⃣|a|3⃣|#️⃣|*⃣|12"),
        ("👩🏽\u200d🚀👩🏽\u200d🚀x", "👩🏽\u200d🚀|👩🏽\u200d🚀|x"),
        ("🏴\U000e0067\U000e0062\U000e007fgo", "🏴\U000e0067\U000e0062\U000e007f|go"),
        ("🙂\u200d↔️ 👁️\u200d🗨️ ℹ️info ©️2 🏽", "🙂\u200d↔️|👁️\u200d🗨️|ℹ️|info|©️|2|🏽"),
        ("\U0001faf8🏽\U0001faf7", "\U0001faf8🏽|\U0001faf7"),
    ],
)
def test_one_emoji_is_one_word(text, words):
    assert "|".join(words_in(text)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("می\u200cخواهم\u200c، x\u200d", "می\u200cخواهم|،|x"),
        ("ക്\u200dഷ ന്\u200d ര\u200d്യ", "ക്\u200dഷ|ന്\u200d|ര\u200d്യ"),
        ("\u200d \u200c \ufe0f", ""),
        ("Jean-\u200bLuc’s e\u00ad\u0301t", "Jean-\u200bLuc’s|e\u00ad\u0301t"),
        ("\ufeffLondon \u2067Bern\u2069 Ber\u2060lin", "London|Bern|Ber\u2060lin"),
        ("\u200fשלום\u200f \x00a\x07b\x7f \u3164", "שלום|a\x07b"),
    ],
)
def test_joiners_belong_to_their_letters_and_invisible_signs_to_none(text, words):
    assert "|".join(words_in(text)) == words


@pytest.mark.parametrize("word", ["ab", "東", "👍", "."])
def test_no_sign_of_format_is_a_word_or_cuts_one(word):
    for sign in HIDDEN:
        text = f"{sign}{word}{sign} {sign} {word}{sign}"
        for split in SPLITS:
            assert words_in(text, split) == [word, word], hex(ord(sign))
        assert words_in(f"ab{sign}cd") == [f"ab{sign}cd"], hex(ord(sign))
        assert normalize_word(f"{word}{sign}{word}") == word * 2


@given(text=TEXTS, split=st.sampled_from(SPLITS))
@example(text="\u200f東\u00ad👍\u200b", split="signs")
def test_places_are_in_order_and_all_that_is_seen_is_in_a_word(text, split):
    places = word_places(text, split)
    assert all(a < b for a, b in places)
    assert [place for pair in places for place in pair] == sorted(place for pair in places for place in pair)
    inside = {place for a, b in places for place in range(a, b)}
    assert [text[a:b] for a, b in places] == words_in(text, split)
    visible = {place for place, sign in enumerate(text) if sign.isalnum() or sign in "👍🏽🇩🇪❤-’._"}
    assert visible <= inside
    assert not any(text[place].isspace() for place in inside)


@given(text=TEXTS, split=st.sampled_from(SPLITS))
def test_words_are_those_of_the_visible_text(text, split):
    hidden = str.maketrans("", "", "\u200b\u00ad\ufeff\u200f\U000e0067")
    assert [word.translate(hidden) for word in words_in(text, split)] == words_in(
        text.translate(hidden), split
    )


def test_the_forms_of_unicode_have_the_same_words():
    for place in range(sys.maxunicode + 1):
        sign = chr(place)
        forms = {sign, *(unicodedata.normalize(form, sign) for form in ("NFC", "NFD"))}
        for text in ("a{}b", "{}", "東{}x", ".{}.", "1{}\u20e3") if len(forms) > 1 else ():
            spelt = {tuple(map(normalize_word, words_in(text.format(form)))) for form in forms}
            assert len(spelt) == 1, hex(place)
