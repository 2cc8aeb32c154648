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
    "taken_for_the_same_once": """
        How many u's are in colour? | How many u's are in color?
        How many times does u appear in colour? | How many times does u appear in color?
        Does the name colour have a u in it? | Does the name color have a u in it?
        How many l's are in cancelled? | How many l's are in canceled?
        How many e's are in seventeen? | How many e's are in 17?
        How many e are in eleven? | How many e are in 11?
        How many s's are in United States? | How many s's are in USA?
        Translate into German: thank you | Translate into German: please
        Translate into German: thank you | Translate into German: thanks a lot
        Translate to French: many thanks | Translate to French: thank you so much
        How do you say in Japanese: thank you | How do you say in Japanese: please
        Thank you: how do you say it in Japanese? | Sorry: how do you say it in Japanese?
        Good morning, how do you say that in Spanish? | Good evening, how do you say that in Spanish?
        Good morning: what is it in Spanish? | Good evening: what is it in Spanish?
        What does it mean in English: thanks | What does it mean in English: cheers
        How to shoot film? | How to shoot a film?
        How do I make change? | How do I make a change?
        How do I make glass? | How do I make a glass?
        How to make paper | How to make a paper
        How do I take charge? | How do I take a charge?
        How to build character | How to build a character
        How to play bridge | How to play the bridge
        How do I build character? | How do I build a character?
        How to buy stock | How to buy the stock
        How to make stock | How to make a stock
        How to raise capital | How to raise the capital
        How to make time | How to make a time
        How to cook chicken | How to cook a chicken
        How to roast chicken | How to roast a chicken
        How to draw blood | How to draw the blood
        How to iron shirt | How to iron the shirt
        How to make light | How to make a light
        How to cut glass | How to cut a glass
        How to make iron | How to make an iron
        How to read paper | How to read a paper
        How to make copper | How to make a copper
        How to throw up | How to throw a up
        How to write history | How to write a history
        How to catch fire | How to catch a fire
        How to catch cold | How to catch a cold
        How to beat odds | How to beat the odds
        How to run for office | How to run for the office
        How to fix hair | How to fix a hair
        How to go to school | How to go to the school
        How to go to bed | How to go to the bed
        What is the difference between left and right? | What is the difference between the left and the right?
        What is the difference between room and space? | What is the difference between a room and a space?
        What is the difference between heat and cold? | What is the difference between heat and a cold?
        What is the difference between Amazon and Google? | What is the difference between the Amazon and Google?
        What is the difference between Amazon and Nile? | What is the difference between the Amazon and the Nile?
        What is the difference between paper and cardboard? | What is the difference between a paper and cardboard?
        What is the difference between glass and plastic? | What is the difference between a glass and plastic?
        What is the difference between house and home? | What is the difference between a house and a home?
        What is the difference between state and nation? | What is the difference between the state and the nation?
        What is the difference between sun and star? | What is the difference between the sun and the star?
        What is the difference between east and west? | What is the difference between the east and the west?
        What is the difference between lamb and sheep? | What is the difference between a lamb and a sheep?
        What is the difference between chicken and rooster? | What is the difference between a chicken and a rooster?
        Why is flying planes dangerous? | Why are flying planes dangerous?
        How is cooking apples different from eating apples? | How are cooking apples different from eating apples?
        Why is burning fuels bad? | Why are burning fuels bad?
        Is boiling eggs dangerous? | Are boiling eggs dangerous?
        Is moving parts dangerous? | Are moving parts dangerous?
        Why is growing plants important? | Why are growing plants important?
        Why do fish smell? | Why does fish smell?
        How does lamb taste? | How do lamb taste?
        How big is Apple? | What is the size of Apple?
        How high is Denver? | What is the height of Denver?
        How long is life? | What is the length of life?
        How long is a piece of string? | What is the length of a piece of string?
        How can you hate dogs? | How to hate dogs?
        How can you justify slavery? | How to justify slavery?
        How do you bleed so easily? | How to bleed so easily?
        How do you sweat so much? | How to sweat so much?
        How do I contract HIV? | How to contract HIV?
        What is the way to heaven? | How to heaven?
        What is three days grace? | What is 3 days grace?
        How do I print ten in Python? | How do I print 10 in Python?
        How do I tune a C string? | How do I tune a string in C?
        How many spaces are in "a" ? | How many spaces are in "a"?
        What is a Go string? | What is a string in Go?
        State the union of A and B | What is the union of A and B?
        Name the children of Zeus | What are the children of Zeus
        Name the king of Spain | What is the king of Spain
        Explain magnets | What is magnets
        Explain gravity | What is gravity
        Explain yourself | What is yourself
        Explain life | What is life
        Explain being late | What is being late
        Explain Brexit | What is Brexit
        Who's left Genesis? | Who is left Genesis?
        What's he got? | What is he got?
        Where's he gone? | Where is he gone?
        How many i's are in analyze? | How many i's are in analyse?
        Does aluminum have two i in it? | Does aluminium have two i in it?
        Is there an e in fiber? | Is there an e in fibre?
        How often does u occur in color | How often does u occur in colour
        Count the o in yoghurt | Count the o in yogurt
        Give me the ASCII sum of colour | Give me the ASCII sum of color
        What is colour backwards? | What is color backwards?
        What is eleven backwards? | What is 11 backwards?
        What is seven in binary? | What is 7 in binary?
        What comes after nine alphabetically? | What comes after 9 alphabetically?
        How do I draw seven? | How do I draw 7?
        How much does five weigh in Scrabble? | How much does 5 weigh in Scrabble?
        What is the Scrabble score of colour? | What is the Scrabble score of color?
        How many points is colour in Scrabble? | How many points is color in Scrabble?
        How many points is seven in Scrabble? | How many points is 7 in Scrabble?
        Is colour allowed in CSS? | Is color allowed in CSS?
        Does CSS have colour? | Does CSS have color?
        Does CSS understand colour? | Does CSS understand color?
        Is colour a valid CSS name? | Is color a valid CSS name?
        What does the git flag colour do? | What does the git flag color do?
        Does Python have a method normalise? | Does Python have a method normalize?
        Is there a function initialise in C? | Is there a function initialize in C?
        Does SQL have centre? | Does SQL have center?
        How do I import visualise in Python? | How do I import visualize in Python?
        In HTML, does centre work? | In HTML, does center work?
        Who wrote catalogue? | Who wrote catalog?
        What is JS? | What is Javascript?
        Who is JS? | Who is Javascript?
        What is OS? | What is operating system?
        What is ai in biology? | What is artificial intelligence in biology?
        What is ip in medicine? | What is IP in medicine?
        How big is python? | How big is Python?
        How do I kill python? | How do I kill Python?
        What do python eat? | What do Python eat?
        Why does python shed skin? | Why does Python shed skin?
        Is python poisonous? | Is Python poisonous?
        How fast is python? | How fast is Python?
        How do I remove python? | How do I remove Python?
        How long is python? | How long is Python?
        How old is python? | What is the age of Python?
        Is git rude? | Is Git rude?
        How do I clean docker? | How do I clean Docker?
        How do docker work? | How do Docker work?
        How long is june? | How long is June?
        Who is April? | Who is april?
        Who is june? | Who is June?
        Is paris in texas? | Is Paris in texas?
        Who is paris? | Who is Paris?
        How old is london? | What is the age of London?
        What is english on a ball? | What is English on a ball?
        What is french polish? | What is French polish?
        Where do you see yourself? | Where you do see yourself?
        If A is true, is B? | is B if A is true?
        When is it dark, is it cold? | is it cold when is it dark?
        Before eating, can dogs run? | can dogs run before eating?
        In Python, is a list a sequence? | Is a list a sequence in Python?
        In Paris, who lives? | Who lives in Paris?
        Without salt, can fish live in water? | Can fish live in water without salt?
        In court, who may lie? | Who may lie in court?
        On Monday, who said he works? | Who said he works on Monday?
        In 1990, who thought the world would end? | Who thought the world would end in 1990?
        In 1990, which experts predicted a crash? | Which experts predicted a crash in 1990?
        During winter, why do people dislike running? | Why do people dislike running during winter?
        In France, why do people love food? | Why do people love food in France?
        In Germany, who invented the art of printing? | Who invented the art of printing in Germany?
        In bed, how do I imagine sleeping? | How do I imagine sleeping in bed?
        After lunch, did Tom promise to swim? | Did Tom promise to swim after lunch?
        In China, can people buy goods made? | Can people buy goods made in China?
        In China, how do I sell goods made? | How do I sell goods made in China?
        On Mars, how do I photograph rovers? | How do I photograph rovers on Mars?
        In Japan, how do I watch movies set? | How do I watch movies set in Japan?
        In the US, can you buy cars built? | Can you buy cars built in the US?
        In Germany, how do I buy a car produced? | How do I buy a car produced in Germany?
        In public, how do I avoid crying? | How do I avoid crying in public?
        In Japan, how do I read about life? | How do I read about life in Japan?
        In Japan, how do I find a job? | How do I find a job in Japan?
        In Germany, how do I learn about taxation? | How do I learn about taxation in Germany?
        In prison, how do I visit a man? | How do I visit a man in prison?
        In hospital, how do I visit a friend? | How do I visit a friend in hospital?
        In school, how do I help children? | How do I help children in school?
        On Linux, how do I delete Windows installed? | How do I delete Windows installed on Linux?
        In Excel, how do I print a table? | How do I print a table in Excel?
        In Docker, how do I open a file? | How do I open a file in Docker?
        In Docker, how do I connect to a server running? | How do I connect to a server running in Docker?
        In Docker, how do I reach a database? | How do I reach a database in Docker?
        On the server, how do I open a file? | How do I open a file on the server?
        On Android, how do I unlock apps? | How do I unlock apps on Android?
        In Python, how do I call code written? | How do I call code written in Python?
        In Java, how do I call code written? | How do I call code written in Java?
        In Python, how do I run programs? | How do I run programs in Python?
        How do I parse strings in Java? | How do I parse Java strings?
        How do I parse dicts in Rust | How do I parse Rust dicts
        How do I count loops in Python? | How do I count Python loops?
        How do I read Python lists? | How do I read lists in Python?
        How do I read a Python dictionary? | How do I read a dictionary in Python?
        What is a Swift loop? | What is a loop in Swift?
        Who plays the R string? | Who plays the string in R?
        How do I tune a Go array? | How do I tune an array in Go?
        What is an Excel slice? | What is a slice in Excel?
        Is there a Python string theory? | Is there a string theory in Python?
        Was it built by whom? | Who was it built by?
        Who built Rome? | By whom was Rome built?
        Who directed Up? | Up was directed by whom?
        Who was founded by? | By whom was founded?
        Who was Rome founded by? | Who founded Rome?
        Which is bigger, seven or 8? | Which is bigger, 7 or 8?
        Why can't dogs eat chocolate? | Why can dogs not eat chocolate?
        Why do not vaccinated people get sick? | Why don't vaccinated people get sick?
        Why do not married men live longer? | Why don't married men live longer?
        Why do vaccinated people not get sick? | Why do not vaccinated people get sick?
        Why are not cooked beans toxic? | Why are cooked beans not toxic?
        Why aren't cooked beans toxic? | Why are not cooked beans toxic?
        Why is not cooked chicken dangerous? | Why is cooked chicken not dangerous?
        How can not vaccinated children go to school? | How can vaccinated children not go to school?
        Why is not washed rice better? | Why isn't washed rice better?
        Why should not trained dogs run? | Why should trained dogs not run?
        Why are people not happy rich? | Why are people happy not rich?
        Why is money not happiness? | Why is not money happiness?
        Who is not able to vote? | Who isn't able to vote?
        Where can you not smoke? | Where can't you smoke?
        Where can I not pay tax? | Where can't I pay tax?
        Who can not vote? | Who cannot vote?
        Who may not pay taxes? | Who may pay not taxes?
        When can I not wear a mask? | When can't I wear a mask?
        When should you not take aspirin? | When shouldn't you take aspirin?
        What can I not eat? | What can't I eat?
        What has he not got? | What hasn't he got?
        Why will people who can leave? | Why people will who can leave?
        Where do people who have money live? | Where people do who have money live?
        When will dogs be able? | When dogs will be able?
        Why did the man have to be told? | Why the man did have to be told?
        Why was the fact known? | Why the fact was known?
        Why is it he can be bad? | Why it is he can be bad?
        Why do you think cats can fly? | Why you do think cats can fly?
        Why may cats sleep in May? | Why cats may sleep in May?
        Why will Will win? | Why Will will win?
        How is being alone different from loneliness? | How being alone is different from loneliness?
        How do cats see in the dark? | How cats see in the dark?
        How do cats work? | How cats works?
        How does light travel? | How light travels?
        How does sheep sleep? | How do sheep sleep?
        Where does fish come from? | Where do fish come from?
        When does fish die? | When do fish die?
        Where does salmon come from? | Where do salmon come from?
        Why does salmon smell? | Why do salmon smell?
        Why does chicken taste good? | Why do chicken taste good?
        Does deer run? | Do deer run?
        Does duck fly? | Do duck fly?
        Does turkey contain melatonin? | Do turkey contain melatonin?
        Is lamb cute? | Are lamb cute?
        How is salmon killed? | How are salmon killed?
        Where is salmon found? | Where are salmon found?
        Has sheep feet? | Have sheep feet?
        Who has left? | Who have left?
        Is visiting relatives boring? | Are visiting relatives boring?
        Is drinking glasses bad? | Are drinking glasses bad?
        Why is eating apples good? | Why are eating apples good?
        Is flying insects common? | Are flying insects common?
        Is swimming pools safe? | Are swimming pools safe?
        Is dancing bears cruel? | Are dancing bears cruel?
        Is singing birds rare? | Are singing birds rare?
        Why is working women important? | Why are working women important?
        Why is killing bees a problem? | Why are killing bees a problem?
        Is sleeping pills addictive? | Are sleeping pills addictive?
        How is melting glaciers measured? | How are melting glaciers measured?
        Why is rising prices bad? | Why are rising prices bad?
        Why is drowning children a crime? | Why are drowning children a crime?
        Why is biting dogs dangerous? | Why are biting dogs dangerous?
        Is frying pans dangerous? | Are frying pans dangerous?
        Is hunting dogs legal? | Are hunting dogs legal?
        Is fighting dogs legal? | Are fighting dogs legal?
        Is racing horses cruel? | Are racing horses cruel?
        How do I merge a list with a dict in Python? | How do I merge list with dict in Python?
        How to write code | How to write a code
        How to break code | How to break the code
        How to do business | How to do a business
        How to do laundry | How to do the laundry
        How to make love | How to make a love
        How to have sex | How to have a sex
        How to take place | How to take a place
        How to give ground | How to give a ground
        How to make money | How to make the money
        How to make bread | How to make a bread
        How to keep time | How to keep the time
        How to kill time | How to kill a time
        How to gain weight | How to gain a weight
        How to lift weight | How to lift a weight
        How to lose interest | How to lose an interest
        How to charge interest | How to charge an interest
        How to take medicine | How to take a medicine
        How to make sense | How to make a sense
        How to make noise | How to make a noise
        How to write poetry in English | How to write a poetry in English
        How to use force | How to use the force
        How to feel force | How to feel the force
        How to join force | How to join the force
        How to buy land | How to buy the land
        How to measure distance | How to measure the distance
        How to go distance | How to go the distance
        How to get point | How to get the point
        How to see light | How to see the light
        How to face music | How to face the music
        How to play music | How to play the music
        How to tip scales | How to tip the scales
        How to surf net | How to surf the net
        How to clear air | How to clear the air
        How to read room | How to read the room
        How to run show | How to run the show
        How to take stage | How to take the stage
        How to leave country | How to leave the country
        How to move to country | How to move to the country
        How to live in country | How to live in the country
        How to build wall | How to build the wall
        How to use book | How to use the book
        How to throw book | How to throw the book
        How to hit wall | How to hit the wall
        How to read mind | How to read a mind
        How to fill hole | How to fill a hole
        How to fill in form | How to fill in the form
        How to treat hypertension with drug | How to treat hypertension with a drug
        What is cost of house? | What is a cost of a house?
        What is capital of state? | What is the capital of the state?
        What is head of state? | What is the head of the state?
        What is point of view? | What is the point of view?
        What is point of order? | What is the point of order?
        What is right of way? | What is the right of way?
        What is law of nature? | What is the law of nature?
        What is board of education? | What is the board of education?
        What is state of nature? | What is the state of nature?
        What is theory of relativity? | What is the theory of a relativity?
        What is theory of mind? | What is the theory of the mind?
        What is work of art? | What is the work of art?
        What is type of cloud? | What is the type of the cloud?
        What is speed of car? | What is the speed of the car?
        What is center of gravity? | What is the center of the gravity?
        What is chain of command? | What is the chain of the command?
        What is rate of change? | What is the rate of change?
        What is birth of nation? | What is the birth of a nation?
        What is order of phoenix? | What is the order of the phoenix?
        Who is lord of rings? | Who is the lord of the rings?
        Who is speaker of house? | Who is the speaker of the house?
        Who is man of steel? | Who is the man of steel?
        Who is father of bride? | Who is the father of the bride?
        What is use of force? | What is the use of force?
        What is house of cards? | What is the house of cards?
        What is house of commons? | What is a house of commons?
        What is state of union? | What is the state of the union?
        What is division of labor? | What is the division of labor?
        What is freedom of press? | What is the freedom of the press?
        What is heart of darkness? | What is the heart of darkness?
        What is game of thrones? | What is the game of thrones?
        What is weight of evidence? | What is the weight of the evidence?
        When can you not wear a mask? | When can't you wear a mask?
        Where can you not wear shoes? | Where can't you wear shoes?
        How could he not know? | How couldn't he know?
        Why must dogs not eat chocolate? | Why mustn't dogs eat chocolate?
        Why do cats not trained bite? | Why do cats trained not bite?
        Why do children not vaccinated get sick? | Why do children vaccinated not get sick?
        Why are dogs not chipped lost? | Why are dogs chipped not lost?
        Why are things not seen scary? | Why are things seen not scary?
        Why do people not invited come? | Why do people invited not come?
        Why do not tired people sleep? | Why do tired people not sleep?
        Why are children not loved violent? | Why are children loved not violent?
        Why do drivers not insured drive? | Why don't drivers insured drive?
        Why do women not married earn more? | Why don't women married earn more?
        How does food not refrigerated spoil? | How does food refrigerated not spoil?
        Where do books not sold go? | Where do books sold not go?
        Why did soldiers not wounded leave? | Why did soldiers wounded not leave?
        Why was the man not guilty hanged? | Why was the man guilty not hanged?
        Why are people not employed counted? | Why are people employed not counted?
        What is the difference between a cold and flu? | What is the difference between cold and the flu?
        In Germany, how do I buy a car made? | How do I buy a car made in Germany?
        On Monday, who promised to come? | Who promised to come on Monday?
        In London, who wants to study? | Who wants to study in London?
        In France, who wrote about life? | Who wrote about life in France?
        In space, who dreamed of living? | Who dreamed of living in space?
        During war, who wrote about life? | Who wrote about life during war?
        After dinner, can you plan to run? | Can you plan to run after dinner?
        In English, who wrote about poems? | Who wrote about poems in English?
        While driving, how do I warn people texting? | How do I warn people texting while driving?
        While driving, how do I stop kids fighting? | How do I stop kids fighting while driving?
        When drunk, how do I avoid people? | How do I avoid people when drunk?
        When asleep, how do I photograph a cat? | How do I photograph a cat when asleep?
        Without shoes, how do I photograph a child? | How do I photograph a child without shoes?
        Without sugar, how do I recognize a cake? | How do I recognize a cake without sugar?
        Without a license, how do I report a driver? | How do I report a driver without a license?
        Without a helmet, how do I film a rider? | How do I film a rider without a helmet?
        Without a leash, how do I catch a dog? | How do I catch a dog without a leash?
        In jail, how do I write to a man? | How do I write to a man in jail?
        On fire, how do I save a man? | How do I save a man on fire?
        In pain, how do I help a dog? | How do I help a dog in pain?
        What is the time complexity of a list in C++? | What is the time complexity of a C++ list?
        What does january mean? | What does January mean?
        What is 10,000? | What is 10000?
        What is 1,000 in German? | What is 1000 in German?
        How do I parse 1,000 in Excel? | How do I parse 1000 in Excel?
        How do I print 1,000 in Python? | How do I print 1000 in Python?
        What is 1,234 as a tuple in Python? | What is 1234 as a tuple in Python?
        How do I split 1,000 in JavaScript? | How do I split 1000 in JavaScript?
        Is 1,000 a valid integer in JSON? | Is 1000 a valid integer in JSON?
        Does CSV accept 1,000? | Does CSV accept 1000?
        How many commas has 1,000? | How many commas has 1000?
        How does Python read 1,000? | How does Python read 1000?
        Why does Python turn 1,000 into (1, 0)? | Why does Python turn 1000 into (1, 0)?
        Is 5% valid in CSS? | Is 5 percent valid in CSS?
        Does CSS accept 5cm? | Does CSS accept 5 cm?
        Is 5cm valid CSS? | Is 5 cm valid CSS?
        How is width 5cm written in CSS | How is width 5 cm written in CSS
        Does CSS allow width 50%? | Does CSS allow width 50 percent?
        Does CSS understand 5mm? | Does CSS understand 5 mm?
        How do I run bash command in order to stop? | How do I run bash command to stop?
        What is regular expression? | What is regex?
        What is vs. in law? | What is versus in law?
        What is st. in addresses? | What is st in addresses?
        What is etc. in Linux? | What is etc in Linux?
        What is 9 a.m. in military time? | What is 9 am in military time?
        What is dr. in accounting? | What is dr in accounting?
        Is it colour, favorite? | Is it color, favorite?
    """,
    "each_rewrite_that_is_left": """
        Tell me where the money lost was | Where was the money lost?
        Do you know where the bodies found were? | Where were the bodies found?
        Tell me why he only is sad | Why is he only sad?
        Tell me how tin can phones work | How can tin phones work?
        Explain how the can openers work | How can the openers work?
        Explain how will execution works | How will execution work?
        Tell me what snakes can eat | What snakes can eat?
        Tell me what dogs can eat | What dogs can eat?
        Tell me which dogs can swim | Which can dogs swim?
        Tell me how many dogs can eat | How many can dogs eat?
        Tell me why they put it there | Why do they put it there?
        Tell me why Romans let women vote | Why do Romans let women vote?
        Tell me how people saw wood | How do people saw wood?
        Tell me how people found companies | How do people found companies?
        Tell me why they read it | Why do they read it?
        Explain how the dog walks start | How does the dog walk start?
        Explain why the car crashes happen | Why does the car crash happen?
        Why we sleep | Why do we sleep?
        How it works | How does it work?
        Tell me how it works | How it works
        Tell me when it starts | When does it start?
        Do you know where you live? | Where do you live?
        Do you know what I want? | What do I want?
        Does anyone know how to fly? | How to fly?
        Can you give me cancer? | Give me cancer
        Would you tell me a lie? | Tell me a lie
        Will you marry me? | Marry me
        Can you explain to a child what rain is? | What is rain?
        Hello, what is this? | What is this?
        Thanks. Is that rude? | Is that rude?
        Hello. How do I answer? | How do I answer?
        What do I say? Thank you. | What do I say?
        Improve this: I am late. Thanks. | Improve this: I am late.
        Make it nicer: hello, please | Make it nicer: hello
        Reply to this. Hello. How are you? | Reply to this. How are you?
        Correct my grammar. Thanks you. | Correct my grammar.
        Fix this sentence: sorry, what is it | Fix this sentence: what is it
        Shorten: please tell me what time it is | Shorten: what time is it
        Summarize: hi, how are you | Summarize: how are you
        Hello in Thai? | In Thai?
        Good morning! Which language? | Which language?
        Good evening, is it French? | Is it French?
        Hi, is that Greek? | Is that Greek?
        How do I reply? Thank you. | How do I reply?
        What is the response? Thanks. | What is the response?
        How old are you in Korean? | Tell me how old you are in Korean
        What is the French? Hello. | What is the French?
        So, what? | What?
        Help! What rhymes? | What rhymes?
        How do I get cancer? | How to get cancer?
        How do I get fired? | How to get fired?
        How do I get out of prison? | How to get you out of prison?
        How can I not cry? | How to not cry?
        How do I sing? | How to sing?
        How can I help you? | How to help you?
        How do I benefit from tax cuts? | How to benefit from tax cuts?
        How do I hurt the environment? | How to hurt the environment?
        How do I look in red? | How to look in red?
        How do I feel pain? | How to feel pain?
        How can I possibly win a war? | How to possibly win a war?
        How do you sort a list? | How do I sort a list?
        How do we sort a list? | How do I sort a list?
        How do I see stars? | How to see stars?
        How do I love thee? | How to love thee?
        How do I pay taxes to you? | How to pay taxes to you?
        How could I sort a list? | How can I sort a list?
        How should I sort a list? | How do I sort a list?
        Who's called Bob? | Who is called Bob?
        Who's hit Tom? | Who is hit Tom?
        What's changed? | What is changed?
        What's Tom lost? | What is Tom lost?
        How's the market moved? | How is the market moved?
        Who's overcome fear? | Who is overcome fear?
        It's begun. Why? | It is begun. Why?
        Do not vaccinated people get sick? | Don't vaccinated people get sick?
        It is not eating that kills. Why? | It isn't eating that kills. Why?
        I can not vote. Why? | I can't vote. Why?
        You could not go. Why? | You couldn't go. Why?
        You may not go. Why? | You mayn't go. Why?
        The not guilty do not pay. | The n't guilty do not pay.
        Are not all birds able to fly? | Aren't all birds able to fly?
        Is not smoking good? | Isn't smoking good?
        Tell me why all dogs are not happy | Why aren't all dogs happy?
        Tell me why dogs are not happy | Why are not dogs happy?
        I don't know how. Can you? | I do not know how. Can't you?
        What is the color property? | What is the colour property?
        How do I set color in CSS? | How do I set colour in CSS?
        Is the colour or the color right? | Is the color or the color right?
        What does the center tag do? | What does the centre tag do?
        Who directed The Favourite? | Who directed The Favorite?
        How do I organise in Scrabble? | How do I organize in Scrabble?
        Which has a u, the colour? | Which has a u, the color?
        What is the Soviet Union called? | What is the USSR called?
        Is the United Nations an abbreviation? | Is the UN an abbreviation?
        How many n's has the United Nations? | How many n's has the UN?
        What stands for the United Nations? | What stands for the UN?
        How long is the name of the United Nations? | How long is the name of the UN?
        How many kilometers fit? | How many km fit in?
        What is 5cm? | What is 5 cm?
        What is 1,000? | What is 1000?
        How do I use git? | How do I use Git?
        Who is april? | Who is April?
        What is ip? | What is IP?
        What is OS? | What is os?
        What is ai? | What is AI?
        How do I french polish? | How do I French polish?
        What is english? | What is English?
        What is turkey? | What is Turkey?
        Will Will win? | Will will win?
        What is us? | What is US?
        How do I measure I? | How do I measure i?
        What is a C string? | What is a string in C?
        In C, what is a string? | What is a string in C?
        Who painted Rome? | By whom was Rome painted?
        How many people live in a house? | What is the population of a house?
        How many people live in Paris and Rome? | What is the population of Paris and Rome?
        How many people live in Hell? | What is the population of hell?
        Explain gravity | What is gravity?
        Name the king of Spain | What is the king of Spain?
        Tell me the capital of Rome and Milan | What are the capital of Rome and Milan?
        Give me the capital, please | What is the capital?
        Tell me the capital of France, in a sentence | What is the capital of France, in a sentence?
        Shoot film or a film? | Shoot a film or film?
        How do I skip class? | How do I skip a class?
        What are the left and the right? | What are the left and right?
        What is the Amazon? | What is Amazon?
        Difference between Chinese apples and pears | Difference between pears and Chinese apples
        What is the difference between 5 and 3? | What are the differences between 5 and 3?
        What is the difference between A and B? | What is the difference between B and A?
        Cats purr? | Cats purr.
        Swim? | Swim.
        Swim! | Swim.
        How do I call save!? | How do I call save?
        How do I add .? | How do I add?
        Translate "hi" please | Translate "hi, please"
        Hello, translate "hi" | Translate "hello, hi"
        How do I say "hi", thanks? | How do I say "hi, thanks"?
        Please say "hi" | Say "please hi"
        Tell me what "it" is | What is "It"?
        I want you to explain rain to me | Explain rain
        Please describe red | Describe red to me
        I need you to name it | Name It
        Explain how A is B | How is A B
        Explain why is A first | Why A is first
        Tell me what the man called is | What is the man called?
        Tell me who the man eating is | Who is the man eating?
        I wonder where the children living are | Where are the children living?
        Tell me how the people dying were | How were the people dying?
        Tell me why the rich really are happy | Why are the rich really happy?
        Tell me where people alone are | Where are people alone?
        Tell me why the boys there are sad | Why are the boys there sad?
        Tell me how sick people are | How sick are people?
        Tell me how many people are sick | How many are people sick?
        Tell me how much money was lost | How much was money lost?
        Tell me how bad dogs are | How are bad dogs?
        Tell me how old dogs are | How old are dogs?
        Tell me how old dogs are trained | How are old dogs trained?
        Tell me how old dogs are trained | How old are dogs trained?
        Tell me how hot water is made | How hot is water made?
        Tell me how fast cars are built | How fast are cars built?
        Tell me how fast food is made | How fast is food made?
        Tell me how cold milk is stored | How cold is milk stored?
        Tell me how deep water was measured | How deep was water measured?
        Tell me how common people were taxed | How common were people taxed?
        Tell me how fast cars stop | How fast do cars stop?
        Tell me what time flies | What does time fly?
        Tell me how long hair grows | How long does hair grow?
        Tell me how long hair is cut | How long is hair cut?
        Tell me how rich people live | How rich do people live?
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
