"""English pairs that a collapse of the rule would take for the same, by the kind of the collapse."""

from __future__ import annotations

import pytest

from llm.same_question import same_question

TRAPS = {
    "is_and_are": """
        What are aids? | What is aids?
        What are crocs? | What is crocs?
        What are the dead sea scrolls? | What is the dead sea scrolls?
        What are hives? | What is hives?
        What are politics? | What is politics?
        What are the news? | What is the news?
        Who are the police? | Who is the police?
        Where are friends set? | Where is friends set?
        How are friends rated? | How is friends rated?
        What are cats about? | What is cats about?
        Are cats good? | Is cats good?
        Why are friends so popular? | Why is friends so popular?
        What are windows? | What is windows?
        What are shingles? | What is shingles?
        What are gallstones made of? | What is gallstones made of?
        What are statistics? | What is statistics?
        What are sheep? | What is sheep?
        What are the fish? | What is the fish?
        What are gymnastics? | What is gymnastics?
        What are the alps? | What is the alps?
        Are shingles contagious? | Is shingles contagious?
        Are piles dangerous? | Is piles dangerous?
        How am I doing? | How is I doing?
        What is pandas? | What are pandas?
    """,
    "was_and_were": """
        What were the troubles? | What was the troubles?
        If I was king, what would I do? | If I were king, what would I do?
        What were cats about? | What was cats about?
        When were friends filmed? | When was friends filmed?
        Who were the cars? | Who was the cars?
        Were the sheep lost? | Was the sheep lost?
    """,
    "do_and_does": """
        How do fish taste? | How does fish taste?
        What do cats mean? | What does cats mean?
        How do sheep die? | How does sheep die?
        How do friends end? | How does friends end?
        When do friends end? | When does friends end?
        Why do windows crash? | Why does windows crash?
        Do fish smell? | Does fish smell?
        Where do friends take place? | Where does friends take place?
        What do the Cars do? | What does the Cars do?
        How does fish breathe? | Tell me how fish breathe
        How do sheep live? | Tell me how sheep lives
    """,
    "has_and_have": """
        Have the sheep died? | Has the sheep died?
        Why have friends ended? | Why has friends ended?
        Have the fish gone? | Has the fish gone?
        How have friends changed TV? | How has friends changed TV?
    """,
    "one_or_many": """
        What does this do? | What do these do?
        What is this? | What are these?
        Is that safe? | Are those safe?
        How do I use this? | How do I use these?
        How do I combine regular expressions? | How do I combine a regular expression?
        How do I test a regex? | How do I test regular expressions?
        What is a regular expression? | What are regular expressions?
        What is a glass? | What are glasses?
        How do I choose glasses? | How do I choose glass?
        How do I write a paper? | How do I write papers?
        What is a person? | What are people?
        How do I make a leaf? | How do I make leaves?
        How do I draw lots? | How do I draw a lot?
        Which is the test server? | What is the test server?
        Which is the guest house? | What is the guest house?
    """,
    "articles": """
        What is the law? | What is a law?
        What is law? | What is the law?
        What is law? | What is a law?
        How do I get in the office? | How do I get in office?
        How do I go to the prison? | How do I go to prison?
        How do I go to the school? | How do I go to school?
        How do I go to the sea? | How do I go to sea?
        How do I make a paper? | How do I make paper?
        How do I make a glass? | How do I make glass?
        How do I cook a chicken? | How do I cook chicken?
        How do I carve a lamb? | How do I carve lamb?
        How do I make an iron? | How do I make iron?
        How do I take the place? | How do I take place?
        How do I keep the house? | How do I keep house?
        How do I play the house? | How do I play house?
        How do I draw a blood? | How do I draw blood?
        How do I catch a fire? | How do I catch fire?
        How do I take a heart? | How do I take heart?
        What is price of coffee? | What is price of a coffee?
        What is cost of chicken? | What is cost of a chicken?
        What is history of art? | What is history of the art?
        What is cause of cold? | What is cause of a cold?
        What is the point of sale? | What is point of sale?
        What is the state of emergency? | What is state of emergency?
        What is the proof of work? | What is proof of work?
        What is the difference between paper and wood? | What is the difference between a paper and a wood?
        What is the difference between a cold and flu? | What is the difference between cold and flu?
        What is the difference between the sun and a star? | What is the difference between sun and star?
        What is the difference between iron and steel? | What is the difference between an iron and steel?
        How do I import a string in Python? | How do I import string in Python?
        How do I import an array in Python? | How do I import array in Python?
        How do I install the bash? | How do I install bash?
        How do I play a football? | How do I play football?
        How do I buy a time? | How do I buy time?
        How do I make the time? | How do I make time?
        How do I file a suit? | How do I file suit?
        How do I go to the bed? | How do I go to bed?
    """,
    "capitals": """
        What is AIDS? | What is aids?
        Who are us? | Who are US?
        What is polish? | What is Polish?
        How big is turkey? | How big is Turkey?
        who decides? | WHO decides?
        When is may? | When is May?
        How do I eat apple? | How do I eat Apple?
        What is go? | What is Go?
        What is c? | What is C?
        What is r? | What is R?
        What is japan? | What is Japan?
        What is ubuntu? | What is Ubuntu?
        What is python? | What is Python?
        Where does python live? | Where does Python live?
        Is python dangerous? | Is Python dangerous?
        How do I feed python? | How do I feed Python?
        What is GIT? | What is git?
        What is Apis? | What is APIs?
        What is Apis? | What is apis?
        Who is Ai? | Who is AI?
        Who is Ai? | Who is ai?
        What is i? | What is I?
        Is i an integer? | Is I an integer?
        What does i mean? | What does I mean?
        What is the unit of i? | What is the unit of I?
        Who is Rust? | Who is rust?
        What is swift? | What is Swift?
        What is excel? | What is Excel?
        What is windows? | What is Windows?
        What is Docker? | What is DOCKER?
        What is china? | What is China?
        What is danish? | What is Danish?
        What is chile? | What is Chile?
        What is a mac? | What is a Mac?
        What is word? | What is Word?
        What is march? | What is March?
        What is august? | What is August?
        Who is will? | Who is Will?
        Who is mark? | Who is Mark?
        Who was grant? | Who was Grant?
        What is Java? | What is java?
        What is reading? | What is Reading?
        What is nice? | What is Nice?
        What is mercury? | What is Mercury?
        What are crocs? | What are Crocs?
        What is tesla? | What is Tesla?
        What is newton? | What is Newton?
    """,
    "is_or_has": """
        Who's eaten? | Who is eaten?
        What's changed in Python 3? | What is changed in Python 3?
        Who's called the police? | Who is called the police?
        Where's Bob hidden? | Where is Bob hidden?
        What's eaten by night? | What is eaten by night?
        Who's left? | Who is left?
        What's lost? | What is lost?
        Who's beaten Federer? | Who is beaten Federer?
        Who's been fired? | Who is been fired?
        What's driven Tom mad? | What is driven Tom mad?
        What's happened? | What is happened?
        Who's paid? | Who is paid?
        Who's taught Plato? | Who is taught Plato?
        Who's shot? | Who is shot?
        Who's hurt? | Who is hurt?
        Who's won? | Who is won?
        What's cut? | What is cut?
        When's he set free? | When is he set free?
        How do let's go cards work? | How do let us go cards work?
        What is let's dance? | What is let us dance?
        What is im? | What is I'm?
    """,
    "contractions_as_words": """
        How do you spell cannot? | How do you spell can not?
        How do you spell don't? | How do you spell do not?
        How do you pronounce isn't? | How do you pronounce is not?
        How do you spell isn't? | How do you spell isnt?
        How many letters are in can't? | How many letters are in can not?
        Is can't one word? | Is can not one word?
        What does what's mean? | What does what is mean?
        How do I write it's? | How do I write it is?
        When do I write it's? | When do I write it is?
        Is dont correct? | Is don't correct?
        How many characters are in don't? | How many characters are in do not?
    """,
    "he_would": """
        What did he say he'd done? | What did he say he had done?
        What would he do if he'd go? | What would he do if he would go?
        What he'd like? | What would he like?
        Why he's gone? | Why is he gone?
        What he's done? | What is he done?
    """,
    "modals": """
        Can I drink milk? | Could I drink milk?
        Can I drink milk? | Should I drink milk?
        Can I drink milk? | May I drink milk?
        Might it rain? | May it rain?
        Would it rain? | Will it rain?
        Shall we go? | Should we go?
        What did people use to eat? | What do people use to eat?
        What is used to cut glass? | What is it used to cut glass?
        Am I used to work? | Do I use to work?
        How could I do it? | How can I do it?
        Must I go? | Do I have to go?
        How do I die? | How can I die?
        How do I look? | How can I look?
        How do I sound? | How can I sound?
        How do I sleep? | How can I sleep?
    """,
    "particles": """
        How do I turn on the alarm? | How do I turn off the alarm?
        How do I turn the volume up? | How do I turn the volume down?
        How do I turn up? | How do I turn up on?
        How do I look up a man? | How do I look a man up?
        How do I run over a cat? | How do I run a cat over?
        How do I give in? | How do I give?
        How do I log in? | How do I log on?
        How do I break in? | How do I break out?
        How do I make up? | How do I make out?
        How do I put on weight? | How do I put off weight?
        How do I look after a dog? | How do I look for a dog?
        How do I get over it? | How do I get it over?
    """,
    "prepositions": """
        How do I pay for Tom? | How do I pay to Tom?
        What is in the box? | What is on the box?
        How do I travel by car? | How do I travel to a car?
        What is made of glass? | What is made from glass?
        Who died in London? | Who died for London?
        How long until noon? | How long since noon?
        Who is at school? | Who is in school?
        How do I remember in order to pay? | How do I remember to pay?
        How do I forget so as to be happy? | How do I forget to be happy?
        Why did he stop in order to smoke? | Why did he stop to smoke?
        How do I replace Fortran with Python? | How do I replace Fortran in Python?
        How do I compare Fortran with Python? | How do I compare Fortran in Python?
    """,
    "titles": """
        why we sleep | Why do we sleep?
        Where the wild things are | Where are the wild things?
        Where the crawdads sing | Where do the crawdads sing?
        Why we can't wait | Why can't we wait?
        How democracies die | How do democracies die?
        How fiction works | How does fiction work?
        When you are old | When are you old?
        How I can help | How can I help?
        Who you are | Who are you?
    """,
    "you_who_answer": """
        How do you store conversations? | How do I store conversations?
        How do you generate text? | How do I generate text?
        How do you process text? | How to process text?
        How do you make money? | How do I make money?
        How do you protect privacy? | How do I protect privacy?
        How do you handle criticism? | How to handle criticism?
        How do you count tokens? | How do I count tokens?
        How can you help? | How can I help?
        How do you remember names? | How to remember names?
        How do you use data? | How do I use data?
        How do you avoid mistakes? | How do I avoid mistakes?
        How do you stay safe? | How do I stay safe?
        How do you write poems? | How do I write poems?
        How do you reason? | How to reason?
        How do you solve racism? | How do I solve racism?
        How do you freeze? | How do I freeze?
        How do you wash? | How do I wash?
        How do you open up? | How do I open up?
        How can you drive without arms? | How do I drive without arms?
        How can you fix bugs in Python? | How can I fix bugs in Python?
        How do you run Python code? | How do I run Python code?
        How do you parse SQL? | How do I parse SQL?
    """,
    "no_deeds": """
        How do I gain weight eating nothing? | How to gain weight eating nothing?
        How do I sweat so much? | How to sweat so much?
        How do I compare to Einstein? | How to compare to Einstein?
        How do I snore? | How to snore?
        How do I feel? | How to feel?
        How can I owe taxes? | How to owe taxes?
        How do I need glasses? | How to need glasses?
        How do I weigh 90 kg? | How to weigh 90 kg?
        How can I miss the bus? | How to miss the bus?
        How do I contract malaria? | How to contract malaria?
        How do I inherit land? | How to inherit land?
        How do I bleed? | How to bleed?
        How can I love a liar? | How to love a liar?
        What is the way to work? | How do I work?
        What is the way to go? | How do I go?
        What is the way to market? | How to market?
        What is a way to make money? | How do I make money?
    """,
    "abilities": """
        Can you translate Latin? | Translate Latin
        Can you write poetry? | Write poetry
        Can you generate images? | Generate images
        Can you solve integrals? | Solve integrals
        Can you convert a Roth IRA? | Convert a Roth IRA
        Can you give a baby honey? | Give a baby honey
        Can you name a child Adolf? | Name a child Adolf
        Can you list a house twice? | List a house twice
        Can you define a function inside a function? | Define a function inside a function
        Would you recommend a Tesla? | Recommend a Tesla
        Would you describe France as rich? | Describe France as rich
        Would you compare Rome to Paris? | Compare Rome to Paris
        Could you give a dog aspirin? | Give a dog aspirin
        Will you name the child? | Name the child
        Can you calculate pi? | Calculate pi
        Could you summarize books? | Summarize books
        Can you show a negative balance? | Show a negative balance
        Can you rewrite history? | Rewrite history
        Can you write an essay in pencil? | Write an essay in pencil
        Do you know how to swim? | How to swim?
        Do you know how to cook? | How do you cook?
    """,
    "commands": """
        Tell me when 5 minutes are up | When are 5 minutes up?
        Let me know when the bus comes | When does the bus come?
        Let me know if it rains | Does it rain?
        Tell me if it rains | Does it rain?
        Can you tell me when it is ready? | When is it ready?
        Show me what a cat looks like | What does a cat look like?
        Question why we sleep | Why do we sleep?
        Let me know what the price is | What is the price?
    """,
    "greetings_as_words": """
        Good morning, how do I say it in French? | How do I say it in French?
        Hello, how do you say it in French? | Hi, how do you say it in French?
        Thanks, how do I say that in German? | Sorry, how do I say that in German?
        Cheers: what does it mean? | What does it mean?
        Hello: what does this mean? | What does this mean?
        How do I say it in French: thanks | How do I say it in French: thank you
        How do you spell it, please? | How do you spell it, thanks?
        Well, how do I dig one? | How do I dig one?
        So what? | What?
    """,
    "explanations": """
        Explain the price of gold | What is the price of gold?
        Explain the color of the sky | What is the color of the sky?
        Explain the date of Easter | What is the date of Easter?
        Explain the speed of light | What is the speed of light?
        Explain the population of Japan | What is the population of Japan?
        Explain the weather today | What is the weather today?
        Explain today | What is today?
        Explain inflation rate in Germany | What is inflation rate in Germany?
        Explain cats | What are cats?
        Explain the symptoms of flu | What is the symptoms of flu?
        Explain the winner of the race | What is the winner of the race?
    """,
    "measures": """
        How high is the moon? | How tall is the moon?
        How high is the moon? | What is the height of the moon?
        How high is a cloud? | How tall is a cloud?
        How high is inflation? | What is the height of inflation?
        How long is the train to Paris? | What is the length of the train to Paris?
        How deep is love? | What is the depth of love?
        How old is consent? | What is the age of consent?
        How big is shirt? | What is the size of shirt?
        How much is 10 Downing Street? | What is 10 Downing Street?
        How much is 1984 by Orwell? | What is 1984 by Orwell?
        How much is 7 Up? | What is 7 Up?
        How many people live in a tent? | What is the population of a tent?
        How much time does a clock show? | How long does a clock show?
        How much time does he lose? | How long does he lose?
        How old are the Beatles? | How old is the Beatles?
        How old are Friends? | How old is Friends?
    """,
    "numbers_as_names": """
        What are nine inch nails? | What are 9 inch nails?
        What is seven up? | What is 7 up?
        What is four square? | What is 4 square?
        What is two in Python? | What is 2 in Python?
        What is 1,000 in Python? | What is 1000 in Python?
        How do I write 1,000? | How do I write 1000?
        How do I write 20%? | How do I write 20 percent?
        How do I type 20%? | How do I type 20 percent?
        Who are five guys? | Who are 5 guys?
        What is three? | What is 3?
        How do I write 5km? | How do I write 5 km?
    """,
    "spelling_in_code": """
        Does CSS support colour? | Does CSS support color?
        Is colour valid in CSS? | Is color valid in CSS?
        Does colour work in HTML? | Does color work in HTML?
        Is analyse right? | Is analyze right?
        Is favourite wrong? | Is favorite wrong?
        What is centre in HTML? | What is center in HTML?
        Is there a method organise in Ruby? | Is there a method organize in Ruby?
        Does Australia use colour? | Does Australia use color?
        Is catalogue allowed in Scrabble? | Is catalog allowed in Scrabble?
        How do I abbreviate kilogram? | How do I abbreviate kg?
        What is the symbol of kilogram? | What is the symbol of kg?
        What is the short form of kilometers? | What is the short form of km?
        Should I use organise? | Should I use organize?
        Do Canadians use colour? | Do Canadians use color?
        Why colour? | Why color?
        Who uses organise? | Who uses organize?
        What is analyse? | What is analyze?
    """,
    "within_a_language": """
        How is len defined in Python? | How do I define len in Python?
        How is memory handled in Python? | How do I handle memory in Python?
        How is a string handled in C? | How do I handle a string in C?
        How is a module imported in Python? | How do I import a module in Python?
        How is a variable initialized in C? | How do I initialize a variable in C?
        How do I make Julia list pets? | How do I make list pets in Julia?
        How do I make Python loop? | How do I make loop in Python?
    """,
    "fronted": """
        In London, who said it rained? | Who said it rained in London?
        During lunch, who said he would leave? | Who said he would leave during lunch?
        In a hat, who saw the man? | Who saw the man in a hat?
        Without a hat, who saw the man? | Who saw the man without a hat?
        On a horse, who killed the man? | Who killed the man on a horse?
        In a car, how do I find a child? | How do I find a child in a car?
        In jail, why did he write about life? | Why did he write about life in jail?
        When tired, how do I avoid driving? | How do I avoid driving when tired?
        In Germany, how do I order a book about cooking? | How do I order a book about cooking in Germany?
        When cold, who likes beer? | Who likes beer when cold?
        During the war, how did he describe life? | How did he describe life during the war?
        In winter, how did he describe life? | How did he describe life in winter?
        In winter, what is a book about life? | What is a book about life in winter?
        If it rains, who said he would leave? | Who said he would leave if it rains?
        After work, why did he plan to drink? | Why did he plan to drink after work?
        In which city did Tom say Ann lived? | Which city did Tom say Ann lived in?
    """,
    "not_and_its_place": """
        Why did the jury find him not guilty? | Why didn't the jury find him guilty?
        Why did Tom plead not guilty? | Why didn't Tom plead guilty?
        Why did she call it not art? | Why didn't she call it art?
        Why do two people not agree? | Why don't two people agree?
        Why did he look not happy? | Why didn't he look happy?
        What did he call not fair? | What didn't he call fair?
    """,
    "quantity": """
        Are any dogs blind? | Are some dogs blind?
        Are all dogs blind? | Is every dog blind?
        Can any dog swim? | Can every dog swim?
        Is all well? | Is well?
        Are both right? | Are right?
        Which of the two is best? | Which is best?
        Do most dogs bite? | Do dogs bite?
    """,
    "roles": """
        Who was killed by Brutus? | Who killed Brutus?
        Who was painted by Rembrandt? | Who painted Rembrandt?
        Who was Tom painted for? | Who painted Tom?
        What is eaten by cats? | What eats cats?
        Who is he owned by? | Who does he own?
        Who was sent by Rome? | Who sent Rome?
        What is Tom's dog? | What is Tom dog's?
        Whose dog bit Tom? | Who bit Tom's dog?
        What is a dog's life? | What is a dog life?
        What is the dog's name? | What is the dogs' name?
        What is it's name? | What is its name?
    """,
}
PAIRS = [
    tuple(line.strip().split(" | "))
    for lines in TRAPS.values()
    for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_small_difference_that_may_count_is_refused(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert not same_question(b, a).same
