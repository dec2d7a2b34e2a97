import pytest
from nltk.stem.porter import PorterStemmer

from talkconv.evaluation.stems import stem_for_rouge, stem_for_rouge_score

# what the Perl program of ROUGE-1.5.5 answers; the published algorithm removes less here
FURTHER = {
    "accidentally": "accid",
    "agreement": "agreem",
    "congressional": "congress",
    "fundamental": "fundam",
    "governmental": "govern",
    "intentionally": "intent",
    "unrepentant": "unrep",
}
ALIKE = {
    "adoption": "adopt",
    "generalizations": "gener",
    "opinion": "opinion",
    "replacement": "replac",
    "responsibility": "respons",
    "yearly": "yearli",
    "yellowish": "yellowish",
}


@pytest.mark.parametrize(("word", "stem"), [*FURTHER.items(), *ALIKE.items()])
def test_stems_are_those_of_the_perl_program(word, stem):
    assert stem_for_rouge(word) == stem


@pytest.mark.parametrize("word", FURTHER)
def test_the_published_algorithm_removes_less(word):
    porter = PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)
    assert len(porter.stem(word)) > len(stem_for_rouge(word))


def test_irregular_forms_are_looked_up_by_rouge_alone():
    assert stem_for_rouge("thought") == "think"
    assert stem_for_rouge_score("thought") == "thought"
