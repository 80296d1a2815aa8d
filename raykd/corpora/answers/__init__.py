"""The answers of annotators: what a language model, a pipeline or a person wrote about a text, as it was written.

visible         the characters of a text by which answers find their sentences, and words their places
labellings      an answer about a sentence: labellings with weights, or a distribution for each word
answer_records  reading one answer, in any of its forms
mentions        the places of names that an annotator lists without offsets
label_names     other names for the labels of an annotator
files           files of answers
asked_text      a text that is put to an annotator, and the record of what it returns
stored_answer   a row of the answer store
"""

from raykd.corpora.answers.answer_records import AnswerReading, read_answer, record_text
from raykd.corpora.answers.asked_text import AskedText, answer_json
from raykd.corpora.answers.label_names import LabelNames
from raykd.corpora.answers.labellings import Answer, AnswerError, Labelling
from raykd.corpora.answers.visible import text_key, visible_text, word_places

__all__ = [
    "Answer",
    "AnswerError",
    "AnswerReading",
    "AskedText",
    "LabelNames",
    "Labelling",
    "answer_json",
    "read_answer",
    "record_text",
    "text_key",
    "visible_text",
    "word_places",
]
