"""English forms that no suffix rule undoes, with the words they are forms of.

ROUGE-1.5.5 looks each word up in such a list before it stems, and takes what it finds unstemmed:
*left* becomes *leave*, although *leaving* becomes *leav*. Its list is WordNet's; this one holds the
forms that running text has. Plurals in -men are left out, since WordNet has a rule for them.
"""

import re

_VERBS = """
be were been|bear bore borne born|beat beaten|become became|begin began begun|bend bent
bind bound|bite bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought
build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came
creep crept|deal dealt|do done|draw drew drawn|dream dreamt|drink drank drunk
drive drove driven|dwell dwelt|eat eaten|fall fell fallen|feed fed|feel felt|fight fought
find found|flee fled|fling flung|fly flew flown flies|forbid forbade forbidden|forecast
foresee foresaw foreseen|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get gotten getting|give gave given|go went gone goes|grind ground|grow grew grown|hang hung
have having|hear heard|hide hidden|hold held|keep kept|kneel knelt|know knew known|lay laid
lead led|lean leant|leap leapt|learn learnt|leave left|lend lent|lie lain lying|light lit
lose lost|make made|may might|mean meant|meet met|mislead misled|mistake mistook mistaken
misunderstand misunderstood|mow mown|outdo outdone|outgrow outgrew|overcome overcame
overdo overdone|overhear overheard|oversee oversaw overseen|overtake overtook overtaken
overthrow overthrew overthrown|pay paid|prove proven|rebuild rebuilt|repay repaid
retake retook retaken|ride rode ridden|ring rang rung|rise rose risen|run running
saw sawn|say said|see seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken
shear shorn|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sitting|slay slew slain|sleep slept|slide slid|sling slung|smell smelt
sow sown|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spit spat
spoil spoilt|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung
stink stank|stride strode|strike struck stricken|string strung|strive strove striven
swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung|take took taken
teach taught|tear tore torn|tell told|think thought|throw threw thrown|tread trod trodden
undergo underwent undergone|understand understood|undertake undertook undertaken|undo undone
uphold upheld|upset upsetting|wake woke woken|wear wore worn|weave wove woven|weep wept
win won|wind wound|withdraw withdrew withdrawn|withhold withheld|withstand withstood
write wrote written|die dying|tie tying|vie vying|panic panicked panicking
traffic trafficked trafficking|mimic mimicked mimicking|focus focussed focussing
"""

_NOUNS = """
calf calves|half halves|hoof hooves|knife knives|leaf leaves|life lives|loaf loaves
scarf scarves|self selves|sheaf sheaves|shelf shelves|thief thieves|wife wives|wolf wolves
housewife housewives|midwife midwives|child children|grandchild grandchildren
schoolchild schoolchildren|foot feet|goose geese|louse lice|mouse mice|tooth teeth|die dice
brother brethren|analysis analyses|axis axes|basis bases|crisis crises|diagnosis diagnoses
hypothesis hypotheses|oasis oases|parenthesis parentheses|synthesis syntheses|thesis theses
bacterium bacteria|criterion criteria|curriculum curricula|datum data|medium media
memorandum memoranda|phenomenon phenomena|referendum referenda|stratum strata|alumnus alumni
cactus cacti|fungus fungi|nucleus nuclei|radius radii|stimulus stimuli|appendix appendices
index indices|matrix matrices|vertex vertices|larva larvae|vertebra vertebrae
quiz quizzes
"""

_ADJECTIVES = """
bad worse worst|big bigger biggest|dim dimmer dimmest|far further furthest farther farthest
fat fatter fattest|fit fitter fittest|good best|well better|grim grimmer grimmest
hard harder hardest|hot hotter hottest|mad madder maddest|red redder reddest|sad sadder saddest
slim slimmer slimmest|strong stronger strongest|thin thinner thinnest|wet wetter wettest
young younger youngest
"""

# ...ier is an adjective's form in these, and a noun's end in carrier or supplier
_COMPARED = """
angry bloody busy cloudy costly cosy crazy deadly dirty dry early easy fancy friendly funny
happy healthy heavy holy hungry icy lively lonely lovely lucky merry messy muddy nasty naughty
noisy pretty ready rocky scary shiny sleepy speedy steady sticky sunny tasty thirsty tidy tiny
tricky ugly wealthy windy worthy
"""

# nouns that look like comparatives: listed as forms of themselves, so that no rule shortens them
_NOUNS_IN_ER = """
attacker broadcaster customer insider opener presenter recorder retailer teenager wholesaler
"""

# a form, and the word it is a form of
IRREGULAR: dict[str, str] = {
    form: words[0]
    for table in (_ADJECTIVES, _NOUNS, _VERBS)
    for words in (entry.split() for entry in re.split(r"[|\n]", table))
    for form in words[1:]
}
IRREGULAR |= {f"{word[:-1]}ier": word for word in _COMPARED.split()}
IRREGULAR |= {word: word for word in _NOUNS_IN_ER.split()}

_CARRIED = re.compile(r"(\w+[^aeiou])ied")
_BUSIEST = re.compile(r"(\w{2,})iest")


def base_form(word: str) -> str | None:
    """What a form is of, or None where only suffix rules can tell.

    >>> base_form("taught"), base_form("denied"), base_form("teaching")
    ('teach', 'deny', None)
    """
    found = IRREGULAR.get(word)
    if found is not None:
        return found
    if word.endswith("ied") and (match := _CARRIED.fullmatch(word)):
        return f"{match[1]}y"
    if word.endswith("iest") and word != "priest" and (match := _BUSIEST.fullmatch(word)):
        return f"{match[1]}y"
    return None
