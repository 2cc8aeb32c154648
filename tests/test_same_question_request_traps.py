"""Look-alikes of what the English rule takes for one request, one sum or one spelling."""

from __future__ import annotations

import pytest

from llm.same_question import same_question

TRAPS = {
    "can_you_explain": """
        Can you explain yourself? | Explain yourself
        Can you explain everything? | Explain everything
        Could you explain sex to a child? | Explain sex to a child
        Can you explain gravity without math? | Explain gravity without math
        Can you explain recursion in one word? | Explain recursion in one word
        Would you explain evolution? | Explain evolution
        Can you explain it? | Can't you explain it?
        Can you ever explain love? | Explain love
        Can I explain recursion? | Explain recursion
        Can you explain why he left? | Explain that he left
        Can you explain gravity, then magnets? | Explain gravity
        Can you explain like a pirate? | Explain like a pirate
        Can you describe me? | Describe me
        Can you describe yourself? | Describe yourself
        Could you describe God? | Describe God
        Can you describe the sky as green? | Describe the sky as green
        Would you describe the sky as green? | Describe the sky as green
        How would you describe Rome? | Describe Rome
        How would you describe the war? | Describe the war
        How would you describe the taste? | Describe the taste
        Can you tell me about it when it is ready? | Tell me about it when it is ready
        Can you tell me a lie? | Tell me a lie
        Can you give me an example? | Give me an example
        Can you give me a house? | Give me a house
        Can you give me examples of cats without tails? | Give me an example of cats without tails
        Can you recommend a Tesla? | Recommend a Tesla
        Can you recommend a good doctor to yourself? | Recommend a good doctor to yourself
        Can you recommend good books? | Can you recommend a good book?
        Would you recommend a good book? | Recommend a good book
    """,
    "what_is_given": """
        Give me the history of Rome | What is the history of Rome?
        Tell me the story of Rome | What is the story of Rome?
        Tell me the end of the film | What is the end of the film?
        Give me the keys of the house | What is the keys of the house?
        Give me the capital | What is the capital?
        Give me the capital of France, briefly | What is the capital of France?
        Do you know the king of Spain? | What is the king of Spain?
        Do you know the name of the game? | What is the name of the game?
        Tell me the capitals of Europe | What is the capital of Europe?
        What is the capital city of France? | What is the city of France?
        What is the capital of Mexico? | What is the capital of Mexico City?
        What is the capital city? | What is the capital?
        Explain the boiling point of water | What is the boiling point of water?
        Tell me about the boiling point of water | What is the boiling point of water?
        Do you know the population of Japan in 1900? | What is the population of Japan?
        Should you tell me the currency of Japan? | What is the currency of Japan?
    """,
    "lists": """
        Name the children of Zeus | What are the children of Zeus?
        Name the stages of the rocket Falcon | What are the stages of the rocket?
        Name a stage of mitosis | What are the stages of mitosis?
        Explain the stages of mitosis | What are the stages of mitosis?
        Name the causes | What are the causes?
        Can you name the baby? | What are the baby?
        Name the stages of mitosis, one a line | What are the stages of mitosis?
        Name all stages of mitosis | Name the stages of mitosis
        List the symptoms of flu | List symptoms of flu
        Will you list the symptoms of flu? | Will you list the causes of flu?
        Should you list the ingredients of soap? | List the ingredients of soap
        Do you list the ingredients of soap? | List the ingredients of soap
        Describe the symptoms of flu | What are the symptoms of flu?
        Give me three uses of salt | What are the uses of salt?
        Give me three uses of salt | What are four uses of salt?
        Give me three apples of gold | What are three apples of gold?
        What are the types of three? | Name three types
        Suggest good wine | What is good wine?
        Suggest good wines | What are the good wines?
        Suggest bad wines | What are good wines?
        Suggest good books | What are some good books?
        Recommend a good book | What are good books?
    """,
    "ideas": """
        Explain the Big Mac | What is the Big Mac?
        Explain the Nixon effect | What is the nixon effect?
        Explain the price effect | What is the price effect?
        Explain the Doppler shift | What is the Doppler effect?
        Explain the Doppler effect briefly | What is the Doppler effect?
        Explain the golden rule | What is the golden rule?
        Explain the result of the rule | What is the result of the rule?
        Explain the rule | What is the rule?
        Explain the difference between revenue and cost | What is the difference between revenue and cost?
        Explain the difference between 5 and 3 | What is the difference between 5 and 3?
        Explain the difference between the high and the low | What is the difference between the high and the low?
        Explain the difference between a crow and a raven | What is the difference between a raven and a crow?
        Explain the difference between a crow and a raven | What are the differences between a crow and a raven?
        Explain the difference between a crow and ravens | What is the difference between a crow and a raven?
        Explain a difference between a crow and a raven | What is the difference between a crow and a raven?
    """,
    "jokes_and_sums": """
        Tell a joke about cats | Tell a joke about a cat
        Tell me a joke about cats | Tell my joke about cats
        Tell him a joke | Tell me a joke
        Can I tell a joke? | Can I have a joke?
        Can you tell jokes? | Tell a joke
        Should we have a joke? | Tell a joke
        Give me a joke, no cats | Give me a joke
        Tell two jokes about cats | Tell a joke about cats
        Can you convert a Roth IRA? | Convert a Roth IRA
        Can you convert 401k to a Roth IRA? | Convert 401k to a Roth IRA
        Can you convert sinners to saints? | Convert sinners to saints
        Are you able to convert files to binary? | Convert files to binary
        Can you convert 98 to binary? | Convert binary to 98
        Should you convert 98 to binary? | Convert 98 to binary
        What is 20 percent of 150? | What is 150 percent of 20?
        What is 20% of 150 in words? | What is 20% of 150?
        What is 20% off 150? | What is 20 percent of 150?
        What is 20 percent more than 150? | What is 20% of 150?
        What is 7 / 8? | What is 7 divided by 8?
        What is 9/11? | What is 9 divided by 11?
        What is 4 x 4? | What is 4 times 4?
        What is 24-7? | What is 24 minus 7?
        What is 7 times 8? | What is 7 plus 8?
        What is 8 divided by 2? | What is 2 divided by 8?
        What is 1 + 1 in Java? | What is 1 plus 1 in Java?
        What is 3 tbsp in ml? | What is 3 tsp in ml?
        What is 3 tbsp? | What is 3 tablespoons?
        What is 5 km? | What is 5 kilometers?
        Is 5 km valid CSS? | Is 5 kilometers valid CSS?
        What is 5 km in miles? | What is 5 miles in km?
        What is 5 km in Finnish? | What is 5 kilometers in Finnish?
        What is 5 kg in pounds? | What is 5 kg in lb?
        Convert 5 km | What is 5 km?
        How many cups in a gallon? | How many cup in a gallon?
        How long to cook a 2 kg chicken? | How long to cook 2 kg chicken?
        How long to cook a 2 kg chicken? | How long to cook a 2 lb chicken?
        How long to bake it at 180 degrees? | How long to bake it at 180 °C?
        How do I abbreviate 5 kg? | How do I abbreviate 5 kilograms?
        How many square meters is a field? | How many meters is a field?
    """,
    "framing": """
        Can I ask how to vote? | Can I ask to vote?
        May I ask you out? | May you ask me out?
        Explain the origin. Thanks! | Explain the origin.
        Explain the expression. Thank you. | Explain the expression.
        Explain the phrase. Thanks a lot. | Explain the phrase.
        Describe the gesture. Cheers. | Describe the gesture.
        Hello. Explain the origin. | Explain the origin.
        Hello. Describe the tone. | Describe the tone.
        Explain this. Thanks. | Explain this.
        Improve it. Thank you so much. | Improve it.
        Sorry to bother you, but how do I say it in French? | How do I say it in French?
        Sorry to bother you. Is it polite? | Is it polite?
        I hope you are well. Is that polite? | Is that polite?
        I hope you are well. How do I reply? | How do I reply?
        I hope you're well, how do you say that in Thai? | How do you say that in Thai?
        Good morning! What does it mean? | What does it mean?
        Good morning! What does this mean? | What does this mean?
        Good morning! What does the phrase mean? | What does the phrase mean?
        Good morning! What is the meaning? | What is the meaning?
        Hello! How is it pronounced? | How is it pronounced?
        Hi, how is that spelled? | How is that spelled?
        May I ask what it means? | Hello, what does it mean?
        Can I ask what the word means? | Good morning, what does the word mean?
        Tell me what Tom means | What does tom mean?
        Tell me what he means | What do they mean?
        Tell me what life means to Tom | What does life mean?
        Do you know what that means? | What does this mean?
        Would it be possible to tell him how it works? | How does it work?
        Could you possibly go? | Could you go?
        Does anyone know how to fly? | How to fly?
    """,
    "about_words": """
        How do you pronounce vowels? | How do I pronounce vowels?
        How do you pronounce words? | How do I pronounce words?
        How do you pronounce it? | How is it pronounced?
        How do you pronounce "a"? | How do you spell "a"?
        How do you pronounce "A"? | How is "a" pronounced?
        How do you spell two? | How is 2 spelled?
        How do you spell colour? | How is color spelled?
        How did you pronounce "quinoa"? | How is "quinoa" pronounced?
        How would you pronounce "quinoa"? | How is "quinoa" spelled?
        How do you say "hi" in Thai? | How do you say "hi" in Lao?
        How do you say it in Thai? | How do I say it in Lao?
        How do you say "hi" to a king? | How do I say "hi" to a king in Thai?
        What do you call a baby? | What is a baby called?
        What do you call a fish with no eyes? | What is a fish with no eyes called?
        What do you call a baby seal that sings? | What is a baby seal that sings called?
        What do you call a cow? | What is a cow called?
        What do you call a baby cow? | What is a baby goat called?
        What do you call a group of people? | What is a group of crows called?
        Who do you call a baby cow? | What is a baby cow called?
        Can you translate Latin? | Translate Latin
        Can you translate "hi" into Thai? | Translate "hello" into Thai
        Can you translate "hi" into Thai? | Translate "hi" from Thai
        Should you translate "hi" into Thai? | Translate "hi" into Thai
        Can you write poetry? | Write poetry
        Can you write an essay in pencil? | Write an essay in pencil
        Will you write me a letter if I go? | Write me a letter if I go
        Will you write me a letter? | Write him a letter
        Can you write me? | Write me
        Would you write me a letter? | Write me a letter
        Will you write me a poem? | Write me two poems
    """,
    "spelling": """
        Is grey hair British English? | Is gray hair British English?
        Is grey hair correct? | Is gray hair correct?
        Should I use grey hair or gray hair? | Should I use gray hair or gray hair?
        Is grey a name? | Is gray a name?
        Who is grey? | Who is gray?
        What is grey goo? | What is gray goo?
        Who starred in Grey hair? | Who starred in Gray hair?
        What is aluminium? | What is aluminum?
        Does the UK use aluminium foil? | Does the UK use aluminum foil?
        Do I tire? | Do I tyre?
        How do I tire a dog? | How do I tyre a dog?
        What does the tyre class do? | What does the tire class do?
        How do I use analyse data in Python? | How do I use analyze data in Python?
        How do I analyse in Scrabble? | How do I analyze in Scrabble?
        How do I analyse or analyze? | How do I analyze or analyze?
        How do I set color red in CSS? | How do I set colour red in CSS?
        How do I call analyse data in Python? | How do I call analyze data in Python?
        What is diffrence? | What is difference?
        Is diffrence right? | Is difference right?
        Is diffrence between commas correct? | Is difference between commas correct?
        Whose temp is Ann? | Whose temperature is Ann?
        Who is the temp of the month? | Who is the temperature of the month?
        What does WHO do? | What does the World Health Organization do?
        who does the WHO help? | WHO does the WHO help?
        What is the env var? | What is the environment variable?
        How do I check a file if it exists? | How do I check whether a file exists?
        How do I test a file? | How do I check a file?
        How do I eat on ubuntu? | How do I eat on Ubuntu?
        How do I find a job in java? | How do I find a job in Java?
        How do I find a list in python? | How do I find a list in Python?
        How do I install python on windows? | How do I install Python on windows?
        How do I restart postgres on ubuntu? | How do I restart postgres on Debian?
    """,
    "width_and_marks": """
        Ａ ｉｓ？ | A is
        What is ，? | What is ,?
        Hi， is valid | Hi， is a valid
        What is "a" .? | What is "a"?
        What is "a"!? | What is "a"?
        What is "a".. | What is "a"
        Ｗｈａｔ ｉｓ "ａ"? | What is "a"?
        What is Ａ? | What is A?
        Ｉｓ Ａ wide? | Is A wide?
        １＋１＝３？ | 1+1=2?
        n！ | n!
    """,
    "which_it_does": """
        Tell me which dogs cats bite | Which dogs do cats bite?
        Tell me which dog the cat bites | Which dogs does the cat bite?
        Tell me which dog bites the cat | Which dog does the cat bite?
        Tell me what time flies | What does time fly?
        Tell me which men the boss found | Which men does the boss find?
        Tell me which wood the man saws | Which man does the wood saw?
        Tell me which horse the jockey was | Which horse was the jockey?
        Tell me what all the dog eats | What does all the dog eat?
        Tell me which book the boy puts | Which book did the boy put?
        When's Bob used? | When has Bob used?
        When's it been used? | When is it been used?
        Who's used? | Who is used?
        What's made? | What is made?
        Where's Bob hidden? | Where is Bob hidden?
        How's Tom made money? | How is Tom made money?
    """,
    "attacked": """
        Can you explain well? | Explain well
        Can you explain better? | Explain better
        Can you explain dreams with science? | Explain dreams with science
        Can you explain consciousness scientifically? | Explain consciousness scientifically
        Can you explain jokes for a living? | Explain jokes for a living
        Can you explain God away? | Explain God away
        Can you list the properties of Tom on eBay? | List the properties of Tom on eBay
        Can you list the ingredients of soap in small print? | List the ingredients of soap in small print
        Suggest good manners | What are good manners?
        Recommend good fats | What are good fats?
        Suggest good works | What are good works?
        Can you convert 20 people to islam? | Convert 20 people to islam
        How can I spell better? | How is better spelled?
        How do I pronounce clearly? | How is clearly pronounced?
        How to spell faster | How is faster spelled?
        Can I ask how old an applicant is? | How old is an applicant?
        May I ask where my tenant works? | Where does my tenant work?
        Can I ask what a candidate's religion is? | What is a candidate's religion?
        Can you write me a prescription? | Write me a prescription
        Can you write me a cheque? | Write me a cheque
        Describe Friends. Cheers. | Describe Friends.
        Explain the joke. Thanks a lot. | Explain the joke.
        Explain the hidden sarcasm. Thanks a lot. | Explain the hidden sarcasm.
        How do I pass data to color prop in React? | How do I pass data to colour prop in React?
        How do I practice in the US? | How do I practise in the US?
        How do I license in Excel? | How do I licence in Excel?
        Tell me what kills the most cats | What kills does the most cat?
        Can you recommend a good friend? | Recommend a good friend
        What is the temp of the month? | What is the temperature of the week?
        How to analyze | How to analyse
        How do I analyze, analyse? | How do I analyze, analyze?
        I want to ask Tom how it works | I want to know how it works
        I would appreciate it if you could tell him how it works | How does it work?
        I hope you are well | I hope you are
        I hope you are well, what is the reply? | What is the reply?
        I hope this finds you well. Is it formal? | Is it formal?
        I was hoping you could help. What is the French? | What is the French?
        TIA | Thanks
        What is TIA? | What is tia?
        Can you tell me about TIA? | Can you tell me about tia?
        What is an episode, TIA? | What is an episode?
        How do I treat a stroke, TIA? | How do I treat a stroke?
        How do I treat a stroke, tia? | How do I treat a stroke, TIA?
        Explain Brexit | What is Brexit?
        Can you explain Brexit? | What is Brexit?
        Can you explain Brexit? | Can you explain brexit?
        Explain the Green rule | What is the green rule?
        Give me two examples of irony | Give me examples of irony
        Name three types of clouds | Name three types of cloud
        Name three types of clouds and describe them | What are three types of clouds?
        What are three types of clouds? | What are the three types of clouds?
        Give me the types of clouds | Give me three types of clouds
        Give me the benefits of my job | Give me benefits of my job
        State the capital of France | State capital of France
        What is the capital city of Texas? | What is the capital of texas?
        What is the capital city of the Netherlands? | What is the capital of Netherlands?
        What is 5 foot in meters? | What is 5 foot 2 in meters?
        What is 5 miles in km? | What are 5 miles in km?
        What is 5 miles in km? | How far is 5 miles in km?
        Convert 5 miles to km | Can you convert 5 km to miles?
        Convert -5 celsius to fahrenheit | Convert 5 celsius to fahrenheit
        What is -5 minus 3? | What is 5 minus 3?
        What is 1,5 times 2? | What is 1.5 times 2?
        What is 1,500 times 2? | What is 1500 times 2?
        What is 0.5% of 10? | What is 5% of 10?
        What is 5 percent of 10%? | What is 5% of 10?
        What is a 20 percent of 150? | What is 20 percent of 150?
        What is 10% of 50 percent? | What is 10 percent of 50?
        What's made in Japan? | What has made in Japan?
        How's Tom based? | How has Tom based?
        When's the film made? | When was the film made?
        Where's Tom located Ann? | Where is Tom located Ann?
        Who does the WHO help? | Who does the Who help?
        What does the EU do? | What does the eu do?
        Why did the European Union form? | Why did the EU forms?
        What is an env var? | What is an environment var?
        Which is the quickest way to Rome? | Which is the fast way to Rome?
        What does sorry mean? | What do sorry mean?
        Tell me what Tom means by love | What does Tom mean?
        Explain what HTTP means in German | What does HTTP mean?
        Good morning! What does buenos mean? | Good evening! What does it mean?
        Hello! What does mean mean? | What does it mean?
        What does X mean, thanks | What does x mean?
        What does x, thanks mean? | What does x mean?
        Hey, what does Jude mean? | What does jude mean?
        Translate "hi" to French | Translate "hi" to french people
        Could you translate "hi" to French quickly | Translate "hi" to French
        Translate "hi" into French, please | Translate "hi, please" into French
        How do you say "hi" in French? | How do they say "hi" in French?
        What do you call a baby cow? | What do you call baby cow?
        What do they call a baby cow? | What is a baby cow called?
        Will you write me a poem about us? | Write me a poem about US
        Will you write me a poem tomorrow? | Write me a poem tomorrow
        Can you write me a letter of the alphabet? | Write me the letter of the alphabet
        Tell a joke | Tell jokes
        Can I have a joke about Tom? | Can Tom have a joke about me?
        Will you tell me a joke if I cry? | Will you tell me a joke?
        How would you describe the smell of rain? | How did you describe the smell of rain?
        Describe the taste of durian | Describe the taste of a durian
        Please explain the offside rule. Thanks! | Explain an offside rule
        How long to cook a 2 kg chicken at 180 °C? | How long to cook a 2 kg chicken at 180 °F?
        How long to bake 2 cups? | How long to bake a 2 cup?
        How do I roast a 1 foot pig? | How do I roast a 1 meter pig?
        How many m² is a hectare? | How many m³ is a hectare?
        How many square meters is a hectare? | How many m2 is a hectare?
        Can you explain on Monday? | Explain on Monday
        Can you explain at school? | Explain at school
        Can you explain this? | Explain this
        Can you explain magic today? | Explain magic today
        Could you explain before trial? | Explain before trial
        Can you explain during the exam? | Explain during the exam
        Could you tell me about Tom on the phone? | Tell me about Tom on the phone
        Can you recommend a good book on Amazon? | Recommend a good book on Amazon
        Give me an alternative. Thanks. | Give me an alternative.
        Give three alternatives. Thank you. | Give three alternatives.
        Suggest an alternative. Many thanks. | Suggest an alternative.
        Compare with sorry. Thanks. | Compare with sorry.
        Describe my feelings. Thanks a lot. | Describe my feelings.
        Generate variations. Thank you. | Generate variations.
        How long do I boil 2 kg in css? | How long do I boil 2 kilos in css?
        Sorry, what does excuse me mean? | Excuse me, what does sorry mean?
        What is 2 * 3? | What is 2 ** 3?
    """,
}
PAIRS = [
    tuple(line.strip().split(" | "))
    for lines in TRAPS.values()
    for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_look_alike_of_a_rewrite_is_refused(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert not same_question(b, a).same
