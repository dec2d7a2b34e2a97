"""The words: nouns, adjectives and others that have tables. Verbs have their own file."""

from talkconv.data.toy.meaning import (
    Adjective,
    Conjunction,
    Determiner,
    Gender,
    Noun,
    Preposition,
    Pronoun,
    Question,
    Tense,
    Time,
)

# Article, nominative, genitive and plural; English singular and plural; kind.
_NOUNS = """
der Mann, Mannes, Männer; man, men; person
der Junge, Jungen, Jungen; boy, boys; person
der Lehrer, Lehrers, Lehrer; teacher, teachers; person
der Arzt, Arztes, Ärzte; doctor, doctors; person
der Student, Studenten, Studenten; student, students; person
der Nachbar, Nachbarn, Nachbarn; neighbour, neighbours; person
der Bruder, Bruders, Brüder; brother, brothers; person
der Vater, Vaters, Väter; father, fathers; person
der Sohn, Sohnes, Söhne; son, sons; person
der König, Königs, Könige; king, kings; person
der Bauer, Bauern, Bauern; farmer, farmers; person
der Onkel, Onkels, Onkel; uncle, uncles; person
die Frau, Frau, Frauen; woman, women; person
die Lehrerin, Lehrerin, Lehrerinnen; teacher, teachers; person
die Ärztin, Ärztin, Ärztinnen; doctor, doctors; person
die Mutter, Mutter, Mütter; mother, mothers; person
die Schwester, Schwester, Schwestern; sister, sisters; person
die Tochter, Tochter, Töchter; daughter, daughters; person
die Königin, Königin, Königinnen; queen, queens; person
die Tante, Tante, Tanten; aunt, aunts; person
das Kind, Kindes, Kinder; child, children; person
das Mädchen, Mädchens, Mädchen; girl, girls; person
das Baby, Babys, Babys; baby, babies; person
der Hund, Hundes, Hunde; dog, dogs; animal
der Vogel, Vogels, Vögel; bird, birds; animal
der Bär, Bären, Bären; bear, bears; animal
der Hase, Hasen, Hasen; hare, hares; animal
die Katze, Katze, Katzen; cat, cats; animal
die Kuh, Kuh, Kühe; cow, cows; animal
die Maus, Maus, Mäuse; mouse, mice; animal
das Pferd, Pferdes, Pferde; horse, horses; animal
das Schaf, Schafes, Schafe; sheep, sheep; animal
der Brief, Briefes, Briefe; letter, letters; text
der Roman, Romans, Romane; novel, novels; text
die Zeitung, Zeitung, Zeitungen; newspaper, newspapers; text
das Buch, Buches, Bücher; book, books; text
das Gedicht, Gedichtes, Gedichte; poem, poems; text
der Apfel, Apfels, Äpfel; apple, apples; food
der Kuchen, Kuchens, Kuchen; cake, cakes; food
die Birne, Birne, Birnen; pear, pears; food
die Kartoffel, Kartoffel, Kartoffeln; potato, potatoes; food
das Ei, Eies, Eier; egg, eggs; food
der Schlüssel, Schlüssels, Schlüssel; key, keys; thing
der Stuhl, Stuhles, Stühle; chair, chairs; thing
der Hut, Hutes, Hüte; hat, hats; thing
die Tasche, Tasche, Taschen; bag, bags; thing
die Blume, Blume, Blumen; flower, flowers; thing
die Uhr, Uhr, Uhren; clock, clocks; thing
das Bild, Bildes, Bilder; picture, pictures; thing
das Messer, Messers, Messer; knife, knives; thing
das Geschenk, Geschenkes, Geschenke; present, presents; thing
der Zug, Zuges, Züge; train, trains; vehicle
das Auto, Autos, Autos; car, cars; vehicle
das Fahrrad, Fahrrades, Fahrräder; bicycle, bicycles; vehicle
der Garten, Gartens, Gärten; garden, gardens; place
der Park, Parks, Parks; park, parks; place
der Wald, Waldes, Wälder; forest, forests; place
die Stadt, Stadt, Städte; city, cities; place
das Dorf, Dorfes, Dörfer; village, villages; place
der Bahnhof, Bahnhofs, Bahnhöfe; station, stations; building
die Schule, Schule, Schulen; school, schools; building
die Kirche, Kirche, Kirchen; church, churches; building
die Bibliothek, Bibliothek, Bibliotheken; library, libraries; building
das Haus, Hauses, Häuser; house, houses; building
das Hotel, Hotels, Hotels; hotel, hotels; building
das Museum, Museums, Museen; museum, museums; building
die Küche, Küche, Küchen; kitchen, kitchens; room
das Zimmer, Zimmers, Zimmer; room, rooms; room
das Büro, Büros, Büros; office, offices; room
"""

# German, stem where it differs, comparative; English, comparative; kinds.
_ADJECTIVES = """
alt, älter; old, older; person animal text thing vehicle place building
jung, jünger; young, younger; person animal
klug, klüger; clever, cleverer; person animal
arm, ärmer; poor, poorer; person
reich, reicher; rich, richer; person
stark, stärker; strong, stronger; person animal
müde, müd, müder; tired, more tired; person animal
glücklich, glücklicher; happy, happier; person
traurig, trauriger; sad, sadder; person animal
freundlich, freundlicher; friendly, friendlier; person
groß, größer; big, bigger; animal food thing vehicle place building room
klein, kleiner; small, smaller; person animal text food thing vehicle place building room
neu, neuer; new, newer; text thing vehicle building
schön, schöner; beautiful, more beautiful; text thing place building room
lang, länger; long, longer; text
teuer, teur, teurer; expensive, more expensive; text thing vehicle building
billig, billiger; cheap, cheaper; text food thing vehicle
schwer, schwerer; heavy, heavier; thing
schnell, schneller; fast, faster; animal vehicle
frisch, frischer; fresh, fresher; food
dunkel, dunkl, dunkler; dark, darker; place building room
rot, -; red, -; thing vehicle
grün, -; green, -; thing vehicle
schwarz, -; black, -; animal thing vehicle
weiß, -; white, -; animal thing building
"""

THE = Determiner("der", "the", "the")
A = Determiner("ein", "a", "")
THIS = Determiner("dieser", "this", "these")
EVERY = Determiner("jeder", "every", "")
OWN = tuple(
    Determiner(german, english, english)
    for german, english in (("mein", "my"), ("dein", "your"), ("sein", "his"), ("unser", "our"))
)

I = Pronoun(1, False, "ich", "mich", "mir", "I", "me")  # noqa: E741
YOU = Pronoun(2, False, "du", "dich", "dir", "you", "you")
HE = Pronoun(3, False, "er", "ihn", "ihm", "he", "him")
SHE = Pronoun(3, False, "sie", "sie", "ihr", "she", "her")
IT = Pronoun(3, False, "es", "es", "ihm", "it", "it")
WE = Pronoun(1, True, "wir", "uns", "uns", "we", "us")
YOU_ALL = Pronoun(2, True, "ihr", "euch", "euch", "you", "you")
THEY = Pronoun(3, True, "sie", "sie", "ihnen", "they", "them")
WHO = Pronoun(3, False, "wer", "wen", "wem", "who", "whom")
PRONOUNS = (I, YOU, HE, SHE, WE, YOU_ALL, THEY)

IN = Preposition("in", "dative", "in")
PLACES = (
    IN,
    Preposition("vor", "dative", "in front of"),
    Preposition("hinter", "dative", "behind"),
    Preposition("neben", "dative", "next to"),
)
DIRECTIONS = (
    Preposition("in", "accusative", "into"),
    Preposition("zu", "dative", "to"),
    Preposition("aus", "dative", "out of"),
)
BACK = (
    Preposition("zu", "dative", "to"),
    Preposition("aus", "dative", "from"),
)

_PRESENT: frozenset[Tense] = frozenset(("present",))
_PAST: frozenset[Tense] = frozenset(("past",))
_FUTURE: frozenset[Tense] = frozenset(("future",))
_ANY = _PRESENT | _PAST | _FUTURE
TIMES = (
    Time("heute", "today", _ANY),
    Time("jetzt", "now", _PRESENT),
    Time("jeden Tag", "every day", _PRESENT | _PAST),
    Time("am Abend", "in the evening", _ANY),
    Time("im Sommer", "in summer", _ANY),
    Time("am Montag", "on Monday", _ANY),
    Time("am Sonntag", "on Sunday", _ANY),
    Time("gestern", "yesterday", _PAST),
    Time("letztes Jahr", "last year", _PAST),
    Time("morgen", "tomorrow", _FUTURE),
    Time("nächste Woche", "next week", _FUTURE),
    Time("bald", "soon", _FUTURE),
    Time("manchmal", "sometimes", _PRESENT | _PAST, in_the_middle=True),
    Time("oft", "often", _PRESENT | _PAST, in_the_middle=True),
    Time("immer", "always", _ANY, in_the_middle=True, may_begin=False),
    Time("nie", "never", _ANY, in_the_middle=True, may_begin=False),
)

SUBORDINATES = tuple(
    Conjunction(german, english)
    for german, english in (
        ("weil", "because"),
        ("obwohl", "although"),
        ("wenn", "when"),
        ("während", "while"),
        ("bevor", "before"),
    )
)
BUT = Conjunction("aber", "but", joins_main=True)
QUESTIONS = (Question("wo", "where"), Question("wann", "when"), Question("warum", "why"))


def _read_noun(line: str) -> Noun:
    german, english, kind = (part.strip() for part in line.split(";"))
    first, genitive, plural = german.split(", ")
    article, nominative = first.split()
    genders: dict[str, Gender] = {"der": "m", "die": "f", "das": "n"}
    singular, english_plural = english.split(", ")
    return Noun(nominative, genders[article], genitive, plural, singular, english_plural, kind)


def _read_adjective(line: str) -> Adjective:
    german, english, kinds = (part.strip() for part in line.split(";"))
    word, *stem, comparative = german.split(", ")
    english, english_comparative = english.split(", ")
    return Adjective(
        word,
        stem[0] if stem else word,
        english,
        comparative.strip("-"),
        english_comparative.strip("-"),
        frozenset(kinds.split()),
    )


NOUNS = tuple(_read_noun(line) for line in _NOUNS.strip().splitlines())
ADJECTIVES = tuple(_read_adjective(line) for line in _ADJECTIVES.strip().splitlines())
KINDS = frozenset(noun.kind for noun in NOUNS)


def noun(german: str) -> Noun:
    """Return a noun by its name."""
    return next(word for word in NOUNS if word.german == german)
