"""The closed lists that the English rule goes by; what stands in none of them is compared as it is.

A word belongs into a list only where no question could change its meaning by it.
"""

from __future__ import annotations


def _table(lines: str) -> dict[str, str]:
    """From lines `canonical: other, other` to a map of each other to its canonical."""
    table = {}
    for line in filter(None, map(str.strip, lines.strip().splitlines())):
        canonical, _, others = line.partition(":")
        table.update({other.strip(): canonical for other in others.split(",")})
    return table


def listed(words: str) -> frozenset[str]:
    """The words of a text, told apart by blanks."""
    return frozenset(words.split())


def _phrases(lines: str) -> tuple[tuple[str, ...], ...]:
    """One phrase a line, the longest first."""
    split = [tuple(line.split()) for line in lines.strip().splitlines() if line.strip()]
    return tuple(sorted(split, key=len, reverse=True))


CONTRACTIONS = {
    **{
        f"{word}n't": f"{full} n't"
        for word, full in (
            *((aux, aux) for aux in ("is", "are", "was", "were", "do", "does", "did", "has")),
            *((aux, aux) for aux in ("have", "had", "could", "would", "should", "must", "need")),
            ("ca", "can"),
            ("wo", "will"),
        )
    },
    **{
        f"{word}'s": f"{word} is"
        for word in ("what", "who", "where", "when", "why", "how", "that", "there", "it", "here")
    },
    **{f"{word}'re": f"{word} are" for word in ("what", "you", "we", "they", "there")},
    **{f"{word}'ll": f"{word} will" for word in ("i", "you", "we", "they", "it", "that")},
    **{f"{word}'ve": f"{word} have" for word in ("i", "you", "we", "they")},
    "i'm": "i am",
    "cannot": "can not",
    **{
        f"{aux}nt": f"{aux} n't"
        for aux in (
            "do",
            "does",
            "did",
            "is",
            "are",
            "was",
            "have",
            "has",
            "could",
            "should",
            "would",
        )
    },
    **{f"{word}s": f"{word} is" for word in ("what", "who", "how", "where")},
}
"""Without 'd (had or would), he's and she's (is or has), and let's ("let us go" asks to be freed)."""

# "Who's called" may be "who has called": with one of these, or an -ed or -en, 's stays as it is.
PARTICIPLES = listed("""
    been gone done left lost made paid taught shot hurt won cut set said told put led met held kept
    felt heard sold sent spent built bought brought caught found fought thought hit let read shut
    run come become begun sung sunk swum rung drunk stuck struck hung hidden known grown shown
    flown thrown drawn torn worn sworn born understood stood sat slept wept swept crept dealt meant
    bent lent burst cast cost quit split spread beat bet bit burnt learnt dreamt fed bred bled fled
    laid mistaken got had seen begotten
""")
NO_PARTICIPLES = listed("""
    ten when often then children men women red bed need garden kitchen between even seven open
    oxygen hydrogen nitrogen token citizen pen hen golden green screen queen teen speed seed feed
    weed breed indeed ahead bread shed sudden wooden heaven oven raven garden chicken eighteen
    nineteen sixteen fifteen fourteen thirteen seventeen
""")

# Said before a question, it changes nothing in the answer. Each ends where the question begins.
OPENINGS = _phrases("""
    hi
    hello
    hey
    hi there
    hi all
    hi everyone
    hello everyone
    greetings
    sorry to bother you
    sorry to bother you but
    hi folks
    out of curiosity
    by the way
    btw
    so
    ok
    okay
    simple question
    silly question
    stupid question
    dumb question
    basic question
    random question
    sorry for the basic question
    i have a simple question
    here is my question
    my question is
    my question is this
    if you don't mind
    i've always wondered
    i have always wondered
    i always wondered
    just checking
    just curious
    just wondering
    i was curious
    i need help
    i need some help
    help
    help me
    please help
    one question
    another question
    one more question
    hello there
    hey there
    good morning
    good afternoon
    good evening
    please
    kindly
    thanks
    thank you
    excuse me
    sorry
    quick question
    a quick question
    i have a question
    i have a quick question
    question
""")

# Before a question word only: "tell me how …", never "tell me a story".
ASKING = _phrases("""
    can you tell me
    could you tell me
    would you tell me
    will you tell me
    can you please tell me
    could you please tell me
    would you please tell me
    can you explain
    could you explain
    would you explain
    can you please explain
    could you please explain
    can you explain to me
    could you explain to me
    please explain
    please tell me
    tell me
    explain
    explain to me
    please explain to me
    can you show me
    could you show me
    show me
    please show me
    do you know
    do you happen to know
    can you help me understand
    could you help me understand
    please help me understand
    help me understand
    i would love to know
    i'd love to know
    would you be able to tell me
    are you able to tell me
    i was hoping you could tell me
    i would be grateful if you could tell me
    i'd be grateful if you could tell me
    i need to understand
    what i want to know is
    what i would like to know is
    can you teach me
    could you teach me
    teach me
    please teach me
    does anyone know
    does anybody know
    may i ask
    can i ask
    could i ask
    may i know
    i want to know
    i wanted to know
    i would like to know
    i'd like to know
    i need to know
    i wonder
    i am wondering
    i was wondering
    i was just wondering
    i am curious
    i'm curious
    i want to understand
    i would like to understand
    can someone explain
    could someone explain
    can somebody explain
    can someone tell me
    could someone tell me
    can anyone tell me
    can anyone explain
    i was wondering if you could tell me
    i was wondering if you could explain
    i am trying to find out
    i'm trying to find out
    i am trying to understand
    i'm trying to understand
    do you have any idea
    any idea
    would you mind telling me
    would you mind explaining
""")

# "Can you list …?" wishes for it; "can you swim?" asks.
WISHES = _phrases("""
    would you be so kind as to
    could you be so kind as to
    would you kindly
    could you kindly
    can you please
    could you please
    would you please
    will you please
    can you
    could you
    would you
    will you
    please
    kindly
    i want you to
    i would like you to
    i'd like you to
    i need you to
""")
WISHED = listed(
    "explain describe list define summarize summarise translate write name give tell show compare "
    "convert calculate compute solve outline provide generate rewrite rephrase paraphrase "
    "recommend suggest"
)

CLOSINGS = _phrases("""
    please
    thanks
    thank you
    thx
    please help
    please advise
    help please
    can you help
    can you help me
    could you help
    could you help me
    can anyone help
    any help is appreciated
    any help would be appreciated
    any ideas
    any idea
    just curious
    just wondering
    i appreciate it
    much appreciated
    thanks for your help
    thank you for your help
    thanks in advance
    thank you in advance
    cheers
    many thanks in advance
    thanks so much
    thanks a lot
    thank you very much
    thank you so much
    many thanks
""")

QUESTION_WORDS = listed("what which who whom whose when where why how")

AUXILIARIES = listed("""
    is are am be was were do does did has have had can could will would shall should may might must
""")

# Ways to ask how something is done. "We" asks how it comes about ("how do we see color"), "could"
# and "is there a way" ask whether it can be done at all, and "a way" wants one of many.
HOW_TO = tuple(
    sorted(
        (
            ("how", "to"),
            *(("how", aux, who) for aux in ("do", "can") for who in ("i", "you")),
            *(("how", aux, "one") for aux in ("does", "can")),
            *(("how", who, "can") for who in ("i", "you", "one")),
            ("what", "is", "the", "way", "to"),
        ),
        key=len,
        reverse=True,
    )
)
# "The way to work" is a road.
WAY_TO_PLACES = listed("work go school church market town bed court be heaven hell live camp dock")
SUPERLATIVE_WAYS = tuple(
    (*opening, which, "way", "to")
    for opening in (("what", "is", "the"), ("which", "is", "the"), ("the",))
    for which in ("best", "easiest", "fastest", "quickest", "simplest", "safest", "cheapest")
)

GIVEN = _phrases("""
    tell me
    give me
    name
    state
""")

# At a sentence's start a capital of theirs says nothing. "Rust: how …" isn't "rust: how …".
STARTING = (
    QUESTION_WORDS
    | AUXILIARIES
    | WISHED
    | {word for phrase in (*OPENINGS, *ASKING, *WISHES, *CLOSINGS) for word in phrase}
    | CONTRACTIONS.keys()
    | {given[0] for given in GIVEN}
    | listed(
        "a an the this that these those it he she we they you there if when while in on at for with "
        "without during under using between after before of to from by as and or but is not no all "
        "every each some any many much few most only just also then so because although it's"
    )
)

# Meaning hangs on the case: "us" and "US", "polish" and "Polish", "aids" and "AIDS", and a name in
# small letters is none ("japan" is a lacquer, "ubuntu" a philosophy). So a capital counts, except
# in these, which are nothing else in small letters, and only where they are written as here.
ACRONYMS = listed("""
    sql html css json xml yaml csv http https api url urls pdf pdfs php usb ssd cpu gpu vpn dns ssh
    tls ssl tcp udp ip dna rna gdp nasa hiv ai js npm
""")
NAMES = listed("""
    javascript typescript linux debian macos docker kubernetes k8s github gitlab git
    mysql postgresql postgres sqlite mongodb numpy pytorch tensorflow django regex python vscode
    ubuntu wifi wi-fi internet wikipedia google youtube facebook iphone ipad nginx redis bluetooth netflix
    spotify instagram whatsapp gmail powershell firefox
    france germany spain italy portugal india russia canada mexico australia norway sweden finland
    denmark iceland poland austria belgium switzerland greece egypt kenya nigeria ethiopia argentina
    colombia venezuela thailand vietnam malaysia indonesia pakistan bangladesh iran iraq israel
    ukraine hungary romania bulgaria croatia serbia
    england scotland ireland europe asia africa america london paris berlin tokyo madrid
    amsterdam barcelona lisbon vienna prague budapest warsaw stockholm oslo copenhagen helsinki
    dublin athens istanbul cairo moscow beijing shanghai sydney melbourne toronto chicago seattle
    french german spanish italian portuguese japanese russian english european american
    british canadian australian indian african asian norwegian pythagorean shakespeare einstein
    mozart beethoven everest celsius fahrenheit
    monday tuesday wednesday thursday friday saturday sunday
    january february april june july september october november december christmas
""")
CASELESS = ACRONYMS | NAMES
CANONICAL = listed("""
    JavaScript TypeScript macOS GitHub GitLab MySQL PostgreSQL SQLite MongoDB NumPy PyTorch
    TensorFlow VSCode WiFi Wi-Fi YouTube iPhone iPad NGINX URLs PDFs WhatsApp PowerShell
""")
# A python is a snake; beside one of these Python is the language.
# Ubuntu is a philosophy; on it, or installed, it is the system.
BEFORE_PYTHON = listed("in on install learn use using run update upgrade uninstall")
AFTER_PYTHON = listed("code script scripts program programs version module package library")

# Words whose s is no ending, or makes another word of them.
KEEPS_S = listed("""
    this is was has his hers its us yes as does goes gas bus plus thus less unless perhaps always
    sometimes besides afterwards towards across process class access address success business
    analysis basis series species news physics mathematics maths economics politics ethics
    statistics electronics genetics athletics gymnastics linguistics robotics mechanics optics
    diabetes rabies measles lens canvas bias virus bonus status focus campus census corpus genus
    means goods customs arms glasses contents forces waters airs spectacles manners damages
    premises savings minutes odds times letters pants scissors trousers clothes shorts jeans
    briefs stairs woods sands grounds quarters spirits colors colours
    pandas kubernetes jenkins redis css dns aws ios https windows mars texas athens netherlands
    philippines maldives alps andes himalayas wales paris james jones bios os sms gps pus ours
    yours theirs others belongings earnings surroundings headquarters crossroads barracks
    people police data leaves lives axes bases needs
""")
IRREGULAR = _table("""
    child: children
    man: men
    woman: women
    mouse: mice
    foot: feet
    tooth: teeth
    goose: geese
    index: indices, indexes
    matrix: matrices
    vertex: vertices
    knife: knives
    wolf: wolves
    half: halves
    potato: potatoes
    tomato: tomatoes
    hero: heroes
    volcano: volcanoes
    movie: movies
    cookie: cookies
    zombie: zombies
    calorie: calories
    tie: ties
    pie: pies
    lie: lies
    die: dies
    cache: caches
    size: sizes
    house: houses
    horse: horses
    nurse: nurses
    purse: purses
    case: cases
    database: databases
    phase: phases
    phrase: phrases
    disease: diseases
    expense: expenses
    license: licenses
    course: courses
    source: sources
    exercise: exercises
    noise: noises
    rose: roses
    nose: noses
    cause: causes
    use: uses
    close: closes
    release: releases
    response: responses
    sense: senses
""")

# Two spellings of one word. No two words are here, for a neighbour makes a term of the one and not
# of the other: a purchase order, a business directory, a kid goat.
SYNONYMS = _table("""
    center: centre
    theater: theatre
    anemia: anaemia
    leukemia: leukaemia
    diarrhea: diarrhoea
    esophagus: oesophagus
    fetus: foetus
    pediatric: paediatric
    catalog: catalogue
    aluminum: aluminium
    fiber: fibre
    jewelry: jewellery
    canceled: cancelled
    traveling: travelling
    modeling: modelling
    labeled: labelled
    mold: mould
    plow: plough
    skeptical: sceptical
    yogurt: yoghurt
    doughnut: donut
    vs: versus
    approximately: approx
    percent: pct
    wifi: wi-fi
    email: e-mail
    ok: okay
    liter: litre
    sulfur: sulphur
    pajamas: pyjamas
    mustache: moustache
    airplane: aeroplane
    judgment: judgement
    aging: ageing
    defense: defence
    offense: offence
    canceling: cancelling
    traveler: traveller
    traveled: travelled
    modeled: modelled
    labeling: labelling
    fueled: fuelled
    pretense: pretence
    analyze: analyse
    analyzed: analysed
    analyzing: analysing
    paralyze: paralyse
    paralyzed: paralysed
    catalyze: catalyse
    km: kilometer, kilometers, kilometre, kilometres, kms
    cm: centimeter, centimeters, centimetre, centimetres
    mm: millimeter, millimeters, millimetre, millimetres
    ml: milliliter, milliliters, millilitre, millilitres
    tbsp: tablespoon, tablespoons
    tsp: teaspoon, teaspoons
    practice: practise
    kg: kilogram, kilograms, kgs
    mg: milligram, milligrams
""")
# "-ise" is "-ize" after these, and "-our" is "-or".
IZED = listed("""
    organ optim initial visual normal serial deserial recogn summar minim maxim custom synchron
    categor memor steril fertil apolog real critic priorit util final standard author stabil sanit
    token vector parallel monet hypnot immun pasteur oxid popular modern emphas character random
    special general legal neutral crystall sympath symbol theor urban vapor victim equal mobil
    scrutin caramel personal rational capital material moistur polar magnet ion hybrid
""")
OURED = listed("""
    col fav hon behavi neighb flav hum harb od vap tum arm lab rum sav vig endeav val rig parl splend
    clam ard
""")

# A name's short form, which is no spelling.
SHORT_NAMES = {"js": "javascript", "postgres": "postgresql", "k8s": "kubernetes"}

PHRASES = {
    ("for", "example"): "for_example",
    ("regular", "expression"): "regex",
    ("regular", "expressions"): "regexes",
    ("visual", "studio", "code"): "vscode",
    ("multiplied", "by"): "times",
    ("web", "site"): "website",
    ("web", "sites"): "websites",
    ("half", "an", "hour"): "30 minutes",
    ("i'd", "like"): "i would like",
    ("we'd", "like"): "we would like",
    ("=United", "=Nations"): "=UN",
    ("=United", "=States", "of", "=America"): "=USA",
    ("=United", "=States"): "=USA",
    ("the", "=US"): "the =USA",
    ("=United", "=Kingdom"): "=UK",
    ("=European", "=Union"): "=EU",
    ("=Soviet", "=Union"): "=USSR",
    ("=New", "=York", "=City"): "=NYC",
    ("my", "curriculum", "vitae"): "my =CV",
    ("a", "curriculum", "vitae"): "a =CV",
    ("how", "much", "time", "does", "it", "take"): "how long does it take",
    ("how", "much", "time", "will", "it", "take"): "how long will it take",
    ("gross", "domestic", "product"): "gdp",
    ("deoxyribonucleic", "acid"): "dna",
    ("artificial", "intelligence"): "ai",
    ("operating", "system"): "=OS",
}

# A question with one of these is about words: nothing in it may be exchanged.
ABOUT_WORDS = listed("""
    word words mean means meaning meant synonym synonyms antonym antonyms spell spelt spelling
    spelled pronounce pronounced pronunciation definition translate translated translation say
    said saying call called phrase phrases term terms letter letters rhyme rhymes grammar sentence
    sentences verb verbs noun nouns adjective adjectives plural singular abbreviation acronym
    stand etymology syllable syllables vowel vowels uppercase lowercase anagram palindrome prefix
    suffix hyphen idiom idioms slang past tense alphabet vocabulary french german spanish italian
    portuguese russian japanese chinese mandarin cantonese latin greek korean arabic hindi turkish
    dutch swedish
""")

# Where one of these stands, a question may be about letters, so that spelling counts.
ABOUT_LETTERS = ABOUT_WORDS | listed("""
    symbol symbols abbreviate abbreviated abbreviations shorten form
    correct character characters string strings length reverse
    reversed hash english british american americans britain roman numeral numerals digit digits
    code encode encoding encoded property tag attribute keyword
""")

QUANTIFIERS = listed(
    "all every each any some both many most few only always never either neither no nobody "
    "everybody everyone everything nothing even just also"
)

CLAUSE_STARTS = listed(
    "to that if because than and or but when while so unless until who which whose where why how "
    "what as before after though although since whether not"
)

# In these a contraction is only the asker's.
IN_PROGRAMS = listed("code tag property attribute keyword")

LANGUAGES = listed(
    "python javascript typescript =Java =C =C++ =C# =Rust =Ruby =Swift =Kotlin =Scala =Haskell "
    "php bash =R =Perl =Lua =Dart =Elixir =Julia =Go =Excel sql mysql postgresql sqlite"
)

# "How tall is X" is "what is the height of X". How high is how far up.
MEASURES = {
    "tall": "height",
    "long": "length",
    "old": "age",
    "heavy": "weight",
    "deep": "depth",
    "wide": "width",
    "big": "size",
    "large": "size",
}

AGENTS = {
    "painted": "painted",
    "invented": "invented",
    "discovered": "discovered",
    "written": "wrote",
    "built": "built",
    "founded": "founded",
    "created": "created",
    "composed": "composed",
    "designed": "designed",
    "directed": "directed",
    "developed": "developed",
}

TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
ONES = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
}

NUMBER_WORDS = TENS.keys() | ONES.keys()

# At least one of them stands in an English question of more than a word or two.
ENGLISH = listed("""
    the a an is are was were do does did can could should would what which who where when why how
    of to and with from my your i you it that this please explain not have has
""")
# None of them is an English word; each is common in its own language.
FOREIGN = listed("""
    der das und ist nicht wie warum ich wir sie ein eine les des est une pour avec dans comment
    pourquoi quel quelle que el los las como por qué cómo para con una il lo gli della perché het
    een niet wat hoe och att det jak jest czy nie og ikke hvad hvordan é não uma você bir ve nasıl
    """)

# "How is a constant declared in Rust?"; how memory is handled in Python asks of its innards.
DONE = {"declared": "declare", "defined": "define"}

# "A Python list" is "a list in Python"; "a Python compiler" isn't "a compiler in Python".
OF_LANGUAGE = listed(
    "list lists dict dicts dictionary dictionaries array arrays string strings tuple tuples loop "
    "loops decorator decorators generator generators iterator iterators lambda lambdas closure "
    "closures enum enums slice slices comprehension comprehensions dataclass dataclasses"
)

# What is somebody's by being somebody's: "a picture of Tom" isn't "Tom's picture".
RELATIONAL = listed(
    "capital population president currency language flag author founder inventor king queen height "
    "length size area age surface temperature purpose meaning value name birthday mother father "
    "wife husband son daughter brother sister mayor anthem climate economy gdp area diameter mass "
    "radius atmosphere birthplace nationality"
)

# What befalls somebody, or isn't his doing alone: "how do I get cancer" wants no instructions.
BEFALLS = listed("""
    die age grow breathe sleep dream see hear taste smell look sound seem become get got catch
    lose forget remember know digest live be have fall fail suffer lie tell feel gain sweat snore
    blush cry itch sneeze cough bleed vomit faint inherit contract develop need want matter exist
    deserve owe belong compare differ rank weigh score love hate like trust believe understand
    think mean work miss break fit last cost earn remain end resemble react behave appear count
    qualify recover heal shrink swell shake smell stink function happen differ act do come go come
""")
SOUGHT = (
    *(("get", word) for word in ("rid", "from", "to", "started", "access", "around")),
    *(("become", word) for word in ("a", "an")),
)
# "How do you store conversations?" asks whoever answers; what takes hands doesn't.
BY_HAND = listed("""
    boil cook bake fry roast grill tie iron wash clean fold sew knit plant prune peel chop slice
    paint sharpen repair fix install uninstall reinstall remove open unlock assemble brew poach
    thaw defrost marinate hang drill weld sand shave trim mow rake dig water fertilize
    tune string ride drive park milk shear pluck season knead whisk center reboot restart reset
    factory-reset format mount unplug unclog
""")
# In a language, but for these, which whoever answers may do too.
IN_COMPUTING = LANGUAGES | listed("css html")
ITS_OWN = listed("run use execute work fix debug learn write know read solve choose test say")
PERSONAL = listed(
    "i me my mine myself you your yours yourself we us our ours ourselves one oneself"
)
FIRST_PERSON = listed("i me my mine myself")
POINTING = listed(
    "solution code text following above below error answer output result joke article passage paragraph "
    "this that these those it image picture problem question"
)

# Before one of these a number word says how many, as its digits do. "Nine inch nails" are a band.
UNITS = listed("""
    second seconds minute minutes hour hours day days week weeks month months year years percent
    kilometers meters metres centimeters millimeters miles yards feet inches kilograms grams pounds
    ounces liters milliliters gallons degrees dollars euros cents people persons times plus minus
    divided km cm mm kg mg ml
""")
ARITHMETIC = listed("times plus minus divided")

# Single things that an article may be left out before, in haste. Not "chicken", "paper", "house".
COUNTED = listed("""
    list string array tuple dictionary dict file folder column row cell div button branch browser
    website laptop printer password variable function loop class
""")
BY_NAME = listed("import include install require use load call name")
"""With these, "string" may be the module's own name."""

# Of these "the" is left out before "of" in haste, "explain" asks what they are, …
EXPLAINED = listed("theory principle law concept idea effect theorem paradox process mechanism")
SEVERAL_OF = listed(
    "symptoms benefits advantages disadvantages causes effects side-effects ingredients rules "
    "requirements features functions steps stages types properties consequences"
)
"""Their number is plain: "what is the symptoms of" is a slip for "what are"."""

# In a text with one of these a spelling may be the point, though no letters are asked for.
IN_CODE = listed("""
    css html xml json sql python javascript js typescript java ruby php bash excel rust perl lua
    c c++ c# go r swift kotlin numpy pandas react django
""")
"""Not in a question that asks how: its answer has the right names in any case."""
SPELLING_COUNTS = ABOUT_LETTERS | listed("""
    right wrong valid invalid proper allowed
    accepted scrabble crossword australia canada england uk usa america australian canadian method
    domain username hashtag canadians australians
""")
TO_THE_SIGN = SPELLING_COUNTS | IN_CODE | listed("write writes written writing type types typed")
"""With these 1,000 isn't 1000, nor 5km 5 km."""

# After these "how" asks for a degree, not a way.
DEGREES = listed("""
    many much tall high long old deep wide big large heavy far fast often soon late early hot cold
    warm good bad safe likely common rare expensive cheap difficult hard easy strong accurate small
    thick thin loud bright dangerous big-endian
""")

# "Who is the author of X" is "who wrote X".
MAKERS = {"author": "wrote", "inventor": "invented", "discoverer": "discovered"}

SEASONS = listed("winter summer spring autumn the early late") | listed(
    "january february april june july september october november december"
)
# With these, what is said of a place or a time may belong to what is told.
DESCRIBING = listed("""
    say says said tell tells told know knows knew think thinks thought believe believed claim
    claimed want wants wanted hope hoped describe described define defined explain explained
    discuss discussed mention mentioned imagine imagined picture pictured draw drew paint painted
    film filmed write wrote written record recorded remember remembered recall forget report
    reported see saw hear heard watch watched mean meant decide decided plan planned promise
    promised predict predicted expect expected order ordered suggest suggested
""")
WRITTEN_WORKS = listed("poem story song haiku limerick essay sonnet speech joke")
MONEY_AND_UNITS = UNITS | listed("euro dollar pounds yen yuan rupees francs fahrenheit celsius mph")

# With these "how's" is "how is": nothing is made without being made.
MADE = listed("made used produced calculated measured manufactured mined extracted")
# "What country" is "which country": there is one.
ONE_OF_MANY = listed("country city continent year")
# "Population of Norway" alone asks for it.
FIGURES = listed("capital population currency gdp area")
AFTER_NAMES = listed("commit branch repository repo container file query")
SUPERLATIVES = listed("""
    largest longest biggest tallest highest deepest fastest oldest smallest richest hottest coldest
    nearest closest heaviest widest shortest best worst cheapest most
""")
