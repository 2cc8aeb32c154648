"""The closed lists that the English rule goes by; what stands in none of them is compared as it is.

A word belongs into a list only where no question could change its meaning by it.
"""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """The words of a text, told apart by blanks."""
    return frozenset(words.split())


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
    "cannot": "can n't",
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


def _phrases(lines: str) -> tuple[tuple[str, ...], ...]:
    """One phrase a line with its contractions written out, the longest first."""
    split = {
        tuple(part for word in line.split() for part in CONTRACTIONS.get(word, word).split())
        for line in filter(None, map(str.strip, lines.splitlines()))
    }
    return tuple(sorted(split, key=lambda phrase: (-len(phrase), phrase)))


# "Who's called" may be "who has called": with one of these, or an -ed or -en, 's stays as it is.
PARTICIPLES = listed("""
    been gone done left lost made paid taught shot hurt won cut set said told put led met held kept
    felt heard sold sent spent built bought brought caught found fought thought hit let read shut
    run come become begun sung sunk swum rung drunk stuck struck hung hidden known grown shown
    flown thrown drawn torn worn sworn born understood stood sat slept wept swept crept dealt meant
    bent lent burst cast cost quit split spread beat bet bit burnt learnt dreamt fed bred bled fled
    laid mistaken got had seen begotten overcome rebuilt forgot spun dug clung flung slid stung wound
    ground bound strung swung leapt knelt sought bid rid shed thrust upset lit spat sprung shrunk
    stunk lain slain sped spit wed misled undone redone overdone withheld upheld remade resold retold
    foretold overheard overrun undergone forgone mislaid outdone outsold repaid prepaid saw fell lay
    hurt felled sewn woven rose bore wore tore fell came ran went gave took made
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
    i hope you are well
    i hope you're doing well
    hope you are well
    hope you're doing well
    i hope this finds you well
    i was hoping you could help me with something
    i was hoping you could help me
    i was hoping you could help
    maybe you can help me
    maybe a silly question
    maybe a stupid question
    this may be a silly question
    this may be a stupid question
    sorry if this is a silly question
    sorry if this is a stupid question
    a simple question
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
    i wanted to ask
    i'd like to ask
    i just want to know
    i just wanted to know
    i would just like to know
    i'd be interested to know
    i would be interested to know
    i'm interested to know
    i have been wondering
    i've been wondering
    i'm just wondering
    would it be possible to tell me
    please can you tell me
    please could you tell me
    please can you explain
    please could you explain
    would you please explain
    can you kindly tell me
    could you kindly tell me
    could you kindly explain
    could you possibly tell me
    could you possibly explain
    can you clarify
    could you clarify
    please clarify
    i'd appreciate it if you could tell me
    i would appreciate it if you could tell me
    i'd appreciate it if you could explain
    i would appreciate it if you could explain
    i was hoping you could explain
    does anyone here know
    anyone know
    anybody know
    do any of you know
    can anybody tell me
    could anybody tell me
    could anyone tell me
    could anyone explain
    could somebody explain
    could somebody tell me
    can somebody tell me
    does anyone know
    does anybody know
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

# "Can you give me cancer?" asks; with a word of politeness it wishes.
WISHES = _phrases("""
    would you be so kind as to
    could you be so kind as to
    would you kindly
    could you kindly
    can you please
    could you please
    would you please
    will you please
    please
    kindly
    please can you
    please could you
    please would you
    could you kindly
    i'd like you to
    i want you to
    i would like you to
    i need you to
""")
WISHED = listed(
    "explain describe list define summarize name give tell show compare convert calculate compute "
    "solve outline provide generate recommend suggest"
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
    i would appreciate any help
    i'd appreciate any help
    any help appreciated
    thank you very much in advance
    thanks so much in advance
    thank you so much in advance
    thanks very much
    thank you kindly
    cheers in advance
    tia
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

# At a sentence's start a capital of theirs says nothing. "Rust: how …" isn't "rust: how …".
STARTING = (
    QUESTION_WORDS
    | AUXILIARIES
    | WISHED
    | {word for phrase in (*OPENINGS, *ASKING, *WISHES, *CLOSINGS) for word in phrase}
    | CONTRACTIONS.keys()
    | {"state"}
    | listed(
        "a an the this that these those it he she we they you there if when while in on at for with "
        "without during under using between after before of to from by as and or but is not no all "
        "every each some any many much few most only just also then so because although it's"
    )
)

# Meaning hangs on the case: "us" and "US", "polish" and "Polish", a python and Python; and a name in
# small letters is none ("japan" is a lacquer, "docker" a trade). So a capital counts, except in
# these, which are nothing else in small letters, and only where they are written as here.
ACRONYMS = listed("""
    sql html css json xml yaml csv http https url urls pdf pdfs php usb ssd cpu gpu vpn dns ssh
    ssl tcp udp dna rna gdp nasa hiv npm
""")
NAMES = listed("""
    javascript typescript linux debian macos kubernetes github gitlab mysql postgresql postgres
    sqlite mongodb numpy pytorch tensorflow vscode wifi wi-fi internet wikipedia youtube facebook
    iphone ipad nginx redis bluetooth netflix spotify instagram whatsapp gmail powershell firefox
    france germany spain italy portugal india russia canada mexico australia norway sweden finland
    denmark iceland poland austria belgium switzerland greece egypt kenya nigeria ethiopia argentina
    colombia venezuela thailand vietnam malaysia indonesia pakistan bangladesh iran iraq israel
    ukraine hungary romania bulgaria croatia serbia
    england scotland ireland europe asia africa america london berlin tokyo madrid
    amsterdam barcelona lisbon budapest warsaw stockholm oslo copenhagen helsinki
    istanbul cairo moscow beijing shanghai melbourne toronto chicago seattle
    pythagorean shakespeare einstein mozart beethoven everest celsius fahrenheit
    monday tuesday wednesday thursday friday saturday sunday
    january february july september october november december christmas
""")
CASELESS = ACRONYMS | NAMES
CANONICAL = listed("""
    JavaScript TypeScript macOS GitHub GitLab MySQL PostgreSQL SQLite MongoDB NumPy PyTorch
    TensorFlow VSCode WiFi Wi-Fi YouTube iPhone iPad NGINX URLs PDFs WhatsApp PowerShell
""")

# A question with one of these may be about words, or have a text in it that is to be worked on:
# there nothing is framing, and nothing else is done to it.
ABOUT_WORDS = listed("""
    word words mean means meaning meant synonym synonyms antonym antonyms spell spelt spelling
    spelled pronounce pronounced pronunciation definition translate translated translation say
    said saying call called phrase phrases term terms letter letters rhyme rhymes grammar sentence
    sentences verb verbs noun nouns adjective adjectives plural singular abbreviation acronym
    stand etymology syllable syllables vowel vowels uppercase lowercase anagram palindrome prefix
    suffix hyphen idiom idioms slang past tense alphabet vocabulary french german spanish italian
    portuguese russian japanese chinese mandarin cantonese latin greek korean arabic hindi turkish
    dutch swedish danish norwegian polish finnish hebrew thai vietnamese welsh irish gaelic urdu
    write writes written writing rewrite rephrase paraphrase summarize summarise correct proofread
    reply respond answer repeat echo print type text email message polite politely formal informal
    tone name names short shorter full official character characters string strings digit digits
    language languages response responses stands abbreviate quote caption greeting greetings greet sentiment edit
""")

QUANTIFIERS = listed(
    "all every each any some both many most few only always never either neither no nobody "
    "everybody everyone everything nothing even just also"
)

CLAUSE_STARTS = listed(
    "to that if because than and or but when while so unless until who which whose where why how "
    "what as before after though although since whether not"
)

# At least one of them stands in an English question of more than a word or two.
ENGLISH = listed("""
    the a an is are was were do does did can could should would what which who where when why how
    of to and with from my your i you it that this please explain not have has
    into give tell describe translate convert recommend suggest
""")
# None of them is an English word; each is common in its own language.
FOREIGN = listed("""
    der das und ist nicht wie warum ich wir sie ein eine les des est une pour avec dans comment
    pourquoi quel quelle que el los las como por qué cómo para con una il lo gli della perché het
    een niet wat hoe och att det jak jest czy nie og ikke hvad hvordan é não uma você bir ve nasıl
    """)

# What befalls somebody, or isn't his doing alone: "how do I get cancer" wants no instructions.
BEFALLS = listed("""
    die age grow breathe sleep dream see hear taste smell look sound seem become get got catch
    lose forget remember know digest live be have fall fail suffer lie tell feel gain sweat snore
    blush cry itch sneeze cough bleed vomit faint inherit contract develop need want matter exist
    deserve owe belong compare differ rank weigh score love hate like trust believe understand
    think mean work miss break fit last cost earn remain end resemble react behave appear count
    benefit affect influence impact contribute relate fare measure stack perform stand hurt harm
    damage offend annoy bother bore scare inspire disappoint waste pollute
    qualify recover heal shrink swell shake smell stink function happen differ act do come go come
""")
PERSONAL = listed(
    "i me my mine myself you your yours yourself we us our ours ourselves one oneself"
)
POINTERS = listed("it this that these those")
