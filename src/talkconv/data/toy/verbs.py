"""The verbs, with the objects of each."""

from talkconv.data.toy.lexicon import KINDS
from talkconv.data.toy.meaning import Modal, Preposition, Verb

# Infinitive (a + ends a separable particle), third person, participle (with "ist" if it goes with
# sein); English, past; who; what else it takes:
#   kinds of its accusative object, "dat", a preposition, "directed", "dass", "zu"
_VERBS = """
schlafen, schläft, geschlafen; sleep, slept; person animal
arbeiten, arbeitet, gearbeitet; work, worked; person
lachen, lacht, gelacht; laugh, laughed; person
weinen, weint, geweint; cry, cried; person
tanzen, tanzt, getanzt; dance, danced; person
singen, singt, gesungen; sing, sang; person
auf+stehen, steht, ist aufgestanden; get up, got up; person
ein+schlafen, schläft, ist eingeschlafen; fall asleep, fell asleep; person animal
weg+laufen, läuft, ist weggelaufen; run away, ran away; person animal
an+kommen, kommt, ist angekommen; arrive, arrived; person vehicle
sehen, sieht, gesehen; see, saw; person animal; person animal thing building vehicle
hören, hört, gehört; hear, heard; person animal; person animal vehicle
suchen, sucht, gesucht; look for, looked for; person animal; person animal thing text
finden, findet, gefunden; find, found; person animal; person animal thing text food
lieben, liebt, geliebt; love, loved; person; person animal place
kennen, kennt, gekannt; know, knew; person; person text place building
besuchen, besucht, besucht; visit, visited; person; person place
treffen, trifft, getroffen; meet, met; person; person
fragen, fragt, gefragt; ask, asked; person; person
verstehen, versteht, verstanden; understand, understood; person; person text
beobachten, beobachtet, beobachtet; watch, watched; person animal; person animal
fangen, fängt, gefangen; catch, caught; animal; animal
füttern, füttert, gefüttert; feed, fed; person; animal
an+rufen, ruft, angerufen; call, called; person; person
ein+laden, lädt, eingeladen; invite, invited; person; person
ab+holen, holt, abgeholt; pick up, picked up; person; person
auf+wecken, weckt, aufgeweckt; wake up, woke up; person animal; person
kaufen, kauft, gekauft; buy, bought; person; text food thing vehicle
verlieren, verliert, verloren; lose, lost; person; text thing
nehmen, nimmt, genommen; take, took; person; text food thing vehicle
tragen, trägt, getragen; carry, carried; person; thing
malen, malt, gemalt; paint, painted; person; animal building place
reparieren, repariert, repariert; repair, repaired; person; vehicle
waschen, wäscht, gewaschen; wash, washed; person; vehicle animal
mit+bringen, bringt, mitgebracht; bring along, brought along; person; text food thing
weg+werfen, wirft, weggeworfen; throw away, threw away; person; text food thing
auf+räumen, räumt, aufgeräumt; tidy up, tidied up; person; room
verlassen, verlässt, verlassen; leave, left; person; place building room
lesen, liest, gelesen; read, read; person; text
schreiben, schreibt, geschrieben; write, wrote; person; text
essen, isst, gegessen; eat, ate; person animal; food
kochen, kocht, gekocht; cook, cooked; person; food
helfen, hilft, geholfen; help, helped; person; dat
danken, dankt, gedankt; thank, thanked; person; dat
antworten, antwortet, geantwortet; answer, answered; person; dat
folgen, folgt, ist gefolgt; follow, followed; person animal; dat
zu+hören, hört, zugehört; listen to, listened to; person; dat
geben, gibt, gegeben; give, gave; person; dat text food thing
zeigen, zeigt, gezeigt; show, showed; person; dat text thing animal building
schicken, schickt, geschickt; send, sent; person; dat text thing
bringen, bringt, gebracht; bring, brought; person; dat text food thing
verkaufen, verkauft, verkauft; sell, sold; person; dat text food thing vehicle
vor+lesen, liest, vorgelesen; read, read; person; dat text
warten, wartet, gewartet; wait, waited; person animal; auf accusative for
denken, denkt, gedacht; think, thought; person; an accusative of
sprechen, spricht, gesprochen; speak, spoke; person; mit dative with
spielen, spielt, gespielt; play, played; person animal; mit dative with
träumen, träumt, geträumt; dream, dreamed; person; von dative of
gehen, geht, ist gegangen; go, went; person; directed
laufen, läuft, ist gelaufen; run, ran; person animal; directed
fahren, fährt, ist gefahren; drive, drove; person; directed
zurück+kommen, kommt, ist zurückgekommen; come back, came back; person; directed
sagen, sagt, gesagt; say, said; person; dass
glauben, glaubt, geglaubt; believe, believed; person; dass
wissen, weiß, gewusst; know, knew; person; dass
hoffen, hofft, gehofft; hope, hoped; person; dass
versuchen, versucht, versucht; try, tried; person; zu
beginnen, beginnt, begonnen; begin, began; person; zu
vergessen, vergisst, vergessen; forget, forgot; person; zu
versprechen, verspricht, versprochen; promise, promised; person; zu
regnen, regnet, geregnet; rain, rained; weather
schneien, schneit, geschneit; snow, snowed; weather
"""

MODALS = (
    Modal("können", "kann", "can", ""),
    Modal("sollen", "soll", "should", ""),
    Modal("müssen", "muss", "", "have"),
    Modal("wollen", "will", "", "want"),
)
BE = Verb("", "sein", "ist", "gewesen", True, "be", "was", KINDS)


def _read_preposition(words: str) -> Preposition:
    german, case, english = words.split()
    assert case in ("accusative", "dative")
    return Preposition(german, "accusative" if case == "accusative" else "dative", english)


def _read(line: str) -> Verb:
    german, english, subjects, *takes = (part.strip() for part in line.split(";"))
    infinitive, third, participle = german.split(", ")
    particle, _, infinitive = infinitive.rpartition("+")
    base, past = english.split(", ")
    taken = takes[0] if takes else ""
    words = set(taken.split())
    prepositional = bool(words & {"accusative", "dative"})
    return Verb(
        particle=particle,
        infinitive=infinitive,
        third=third,
        participle=participle.removeprefix("ist "),
        with_sein=participle.startswith("ist "),
        english=base,
        english_past=past,
        subjects=frozenset(subjects.split()),
        accusatives=frozenset() if prepositional else frozenset(words & KINDS),
        dative="dat" in words,
        preposition=_read_preposition(taken) if prepositional else None,
        directed="directed" in words,
        complement=next((name for name in ("dass", "zu") if name in words), ""),
    )


VERBS = tuple(_read(line) for line in _VERBS.strip().splitlines())


def verb(infinitive: str) -> Verb:
    """Return a verb by its name: lesen, anrufen."""
    return next(word for word in VERBS if word.particle + word.infinitive == infinitive)
