"""Two questions are the same only where no reader could doubt it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

from llm.same_question import MAX_CHARS, same_question


def pairs(text: str) -> list[tuple[str, str]]:
    """One pair a line, told apart by a bar."""
    split = [line.strip().split(" | ") for line in text.strip().splitlines() if line.strip()]
    return [(a, b) for a, b in split]


DIFFERENT_ENGLISH = pairs(r"""
    What is time? | What is the time?
    What is a cold? | What is cold?
    How do I polish shoes? | How do I Polish shoes?
    How do I install Go? | How do I install go?
    What is the largest planet? | What are the largest planets?
    Give me a name for a cat | Give me names for a cat
    Recommend a book | Recommend books
    Can you swim? | Swim?
    Can you run Docker on Windows? | Run Docker on Windows
    What does IT do? | What does it do?
    How many legs does a spider have? | How many legs do spiders have on average?
    Who loves Bob? | Who does Bob love?
    What eats snakes? | What do snakes eat?
    How do I convert JSON to CSV? | How do I convert CSV to JSON?
    How do I call C from Python? | How do I call Python from C?
    What is C? | What is C++?
    What is C#? | What is C?
    What does i++ do? | What does ++i do?
    What is 5!? | What is 5?
    Is water wet? | Isn't water wet?
    Why do all birds not fly? | Why don't all birds fly?
    How should I learn Python? | How do I learn Python?
    What is the best way to learn Python? | How do I learn Python?
    How did the war start? | How does the war start?
    Explain recursion to a child. | What is recursion?
    Explain recursion briefly. | What is recursion?
    What is the second planet? | What is the 2 planet?
    How do I delete the file? | How do I delete a file?
    Is the sun a star? | Is a star the sun?
    Is Python faster than Java? | Is Java faster than Python?
    What is the capital of France? | What was the capital of France?
    How far is Paris from London? | How far is London from Berlin?
    How do I remove a file from git? | How do I remove a file from git without deleting it?
    What does polish mean? | What does Polish mean?
    How do I spell two? | How do I spell 2?
    How do you spell colour? | How do you spell color?
    What is the plural of mouse? | What is the plural of mice?
    What are goods? | What is a good?
    What are arms? | What is an arm?
    What is the meaning of "glass"? | What is the meaning of "glasses"?
    What is man eating shark? | What is man-eating shark?
    How do I install Python? | How do I install in Python?
    How do I sort a list in Python? | How do I sort a list in Ruby?
    How do I sort a list in Python 2? | How do I sort a list in Python 3?
    How do I use Python with Excel? | How do I use Excel with Python?
    What is a list in Python? | What is a list?
    What can I do? | What can you do?
    How do I find my IP address? | How do I find your IP address?
    How can I help you? | How can you help me?
    How do I start? | How do you start?
    Who was JFK's father? | Who was JFK father of?
    How long is the Nile? | How long does the Nile take?
    How old is the universe? | How big is the universe?
    How much is 5 euros in dollars? | How much is 5 dollars in euros?
    Is there a way to win? | Is there no way to win?
    How do I not fail? | How do I fail?
    How can I sleep? | Why can I sleep?
    How can I sleep? | How can't I sleep?
    Why can't I sleep? | Why can I sleep?
    What are the differences between a and b? | What is the similarity between a and b?
    What is the difference between cat and kat in Linux? | What is the difference between cat and kat?
    Tell me the capital of France. | Tell me about the capital of France.
    Who wrote Hamlet? | Who was Hamlet written for?
    Explain how to tie a tie. | Explain why to tie a tie.
    How are potatoes grown? | How are people grown?
    How do people make bread? | How do I make people bread?
    What is 20% of 50? | What is 50% of 20?
    What is 2 + 2? | What is 2 - 2?
    How many is a few? | How many is few?
    Do few people know? | Do a few people know?
    How do I boil an egg? | How do I boil eggs for 2 minutes?
    How many calories are in an egg? | How many calories are in eggs?
    What is the moon? | What is a moon?
    What is a sun? | What is the sun?
    What US state is largest? | What us state is largest?
    How do I cut a potato with a knife? | How do I cut a potato without a knife?
    Is it safe to eat raw eggs? | Is it unsafe to eat raw eggs?
    How do I reverse a string in place? | How do I reverse a string?
    Why is the sky blue? | Why is the sky blue in French?
    Only he said he loves her? | He said only he loves her?
    If it rains, what should I do? | If it doesn't rain, what should I do?
    When dogs bark, what do cats do? | When cats bark, what do dogs do?
    What do dogs do when cats run? | When cats run what do dogs do?
    How do I enable Wi-Fi? | How do I disable Wi-Fi?
    What is on? | What is off?
    Translate "hello" to French | Translate "hello" to German
    How do I say please in French? | How do I say in French?
    How do you say thank you? | How do you say?
    What rhymes with please? | What rhymes with
    List the symptoms. | List symptoms for me please in French.
    Who is taller, Ann or Bob? | Who is shorter, Ann or Bob?
    What is the US? | What is the U.S.S.R.?
    What is Mars? | What is March?
    What's the distance in km? | What's the distance in cm?
    How do I make my dog stop barking? | How do I make my dog start barking?
    What is a president? | What is the president?
    Does a president have power? | Does the president have power?
    Can I eat? | May I eat?
    Could I go? | Can I go?
    What's a good book? | What are good books?
    What is in Python? | What is Python?
    Which is better, Python or Java? | Which is better, Java or Python 3?
    What are the needs of dogs? | What dogs need?
    What is the use of a hammer? | What uses a hammer?
    What causes cancer? | What is the cause of the cause of cancer?
    What do you mean by "X"? | What do you mean by "x"?
    Explain C | Explain c
    What is the age of a man? | How old is the man?
    What is a man's best friend? | What is the best friend of the man?
    How do I code in Python without Python installed? | How do I code in Python?
    Who discovered Uranus? | Who was discovered by Uranus?
    Hello, how are you? | How are you made?
    How do I get from Rome to Milan? | How do I get from Milan to Rome?
    How do I play chess with a computer? | How do I play a computer with chess?
    Why did Rome attack Carthage? | Why did Carthage attack Rome?
    Does coffee affect sleep? | Does sleep affect coffee?
    What is the first name of Mozart? | What is the name of the first Mozart?
    Is it true that not all cats purr? | Is it true that all cats do not purr?
    What did Einstein say about Bohr? | What did Bohr say about Einstein?
    How do I make a function return two values? | How do I make two functions return a value?
    What is better? | What are betters?
    How do I write hello world in C? | How do I write hello world in c?
    How do I match a? in regex | How do I match a in regex
    How do I use ls -l? | How do I use ls -L?
    What is $1? | What is 1?
    How do I print "%d"? | How do I print "%i"?
    Explain the code | What is the code?
    How big is the Sun in km? | How big is the Sun in miles?
    Where do whales live? | Where did whales live?
    How do I get better? | How do I get good?
    Name the president of France. | Name a president of France.
    Can you explain to me how it works in one sentence? | Can you explain to me how it works?
    How does a car start? | How do I start a car?
    How does one start a car? | How does one car start?
    How can you love? | How can I love you?
    How can you tell if I am lying? | How can I tell if you are lying?
    What is the way to Rome? | How to Rome?
    What do I need? | What do I not need?
    What is a python? | What is Python?
    How do I feed a python? | How do I feed Python?
    How do I catch a python exception? | How do I catch a python?
    Name the noble gases. | Explain the noble gases.
    How do I open a Python file? | How do I open a file in Python?
    How do I write a Python compiler? | How do I write a compiler in Python?
    How do I read an Excel file? | How do I read a file in Excel?
    What is a Java virtual machine? | What is a virtual machine in Java?
    What is Tom's picture? | What is the picture of Tom?
    Is it safe not to eat eggs? | Isn't it safe to eat eggs?
    Why is not sleeping bad? | Why isn't sleeping bad?
    Why is not sleeping bad? | Why is sleeping not bad?
    How do I buy security? | How do I buy securities?
    How do I calculate interest? | How do I calculate interests?
    What dogs can eat? | What can dogs eat?
    How many dogs can eat? | How many can dogs eat?
    How do I write thank you? | How do I write?
    How do I write thanks a lot? | How do I write thank you?
    How do you work? | How do I work?
    How do you feel? | How do I feel?
    How is a list sorted in Python? | How do I sort a list in Python?
    What helps against a cold? | What helps against cold?
    What helps against a cold? | What helps against the cold?
    Why do people catch a cold? | Why do people catch cold?
    How would you describe Rome? | How do I describe Rome?
    How do you define success? | How do I define success?
    Define a function in Python. | What is the meaning of a function in Python?
    Explain 5 + 5. | What is 5 + 5?
    Name the baby. | What is the baby?
    What are ways to lose weight? | How do I lose weight?
    Is a dog allowed in a shop? | Is the dog allowed in a shop?
    Who is in the office? | Who is in office?
    What is in the water? | What is in water?
    How many people can play Catan? | How do people play Catan?
    When was the Golden Gate Bridge built? | How was the Golden Gate Bridge built?
    Give me an example of irony. | Give me some examples of irony.
    Should I water cacti? | Can I water cacti?
    Can I water cacti? | How do I water cacti?
    Must I pay? | May I pay?
    Will it work? | Would it work?
    Where do I vote? | Where did I vote?
    How do I open a jar? | How do I open the jar that I closed?
    What is the first law of Newton? | What is the law of Newton?
    What does MB/s mean? | What does Mb/s mean?
    How many MB are in a GB? | How many Mb are in a Gb?
    How long is a day on Mars? | How long is a year on Mars?
    How do I stop a process in Linux? | How do I stop a service in Linux?
    Why do we dream? | Why don't we dream?
    How do I get more sleep? | How do I get less sleep?
    How do I loop over a list in Python backwards? | How do I loop over a list in Python?
    Is A better than B? | Is B better than A?
    Which is faster, a train or a car? | Which is faster, a car or a plane?
    How do I sort by name then age? | How do I sort by age then name?
    Which animals eat lions? | Which animals do lions eat?
    What is a man without a dog? | What is a dog without a man?
    How do I send money to Ann from Bob? | How do I send money to Bob from Ann?
""")

DIFFERENT_CHINESE = pairs("""
    百度是什么？ | 100度是什么？
    他什么时候来的？ | 他什么时候来？
    二三是什么？ | 二十三是什么？
    五行是什么？ | 5行是什么？
    什么是苹果？ | 什么是苹果公司？
    怎么去北京？ | 怎么离开北京？
    从北京到上海怎么走？ | 从上海到北京怎么走？
    怎么开启蓝牙？ | 怎么关闭蓝牙？
    我爱的人是谁？ | 我爱人是谁？
    能吃鸡蛋吗？ | 不能吃鸡蛋吗？
    能不能不吃鸡蛋？ | 能不能吃鸡蛋？
    猫为什么怕狗？ | 狗为什么怕猫？
    一个苹果多少卡路里？ | 苹果多少卡路里？
    两个苹果多少卡路里？ | 三个苹果多少卡路里？
    十二个苹果有多重？ | 二十个苹果有多重？
    怎么不睡觉？ | 怎么睡觉？
    他怎么才来？ | 他怎么来？
    为什么天是蓝的？ | 为什么海是蓝的？
    Python怎么安装？ | Java怎么安装？
    Python怎么安装？ | 在Python中怎么安装？
    C和C++有什么区别？ | C和C#有什么区别？
    猫和狗的区别 | 猫和狗的相同点
    可以吃吗？ | 能吃吗？
    他怎么来了？ | 他怎么来？
    "好"怎么读？ | "号"怎么读？
    请假怎么写？ | 假怎么写？
    如何请客？ | 如何做客？
    谁打败了拿破仑？ | 拿破仑打败了谁？
    什么是好的？ | 什么是好？
    多少人？ | 几人？
    用冷水怎么洗？ | 用热水怎么洗？
    把中文翻译成英文 | 把英文翻译成中文
    怎么把大象放进冰箱？ | 怎么把冰箱放进大象？
    会不会下雨？ | 会下雪吗？
    你知道李白是谁吗？ | 李白认识你吗？
    半斤是多少克？ | 一斤是多少克？
    今年多大了？ | 去年多大了？
    怎么才能不吃饭？ | 怎么才能吃饭？
    帮我写一个请假条 | 写两个请假条
    他是不是医生？ | 他不是医生吗？
    上海有多少人？ | 北京有多少人？
    是什么导致失眠？ | 失眠导致什么？
    老师怎么批评？ | 怎么批评老师？
    怎么称呼老师？ | 老师怎么称呼？
    学生怎么教育老师？ | 老师怎么教育学生？
    三百五是多少？ | 三百零五是多少？
    一万二是多少？ | 一万零二是多少？
    怎么样的人会成功？ | 人怎么会成功？
    我想知道的是什么？ | 是什么？
    二〇二〇年发生了什么？ | 二〇二一年发生了什么？
    第一名是谁？ | 一名是谁？
    怎么打的？ | 怎么打？
    他的妈妈的妈妈叫什么？ | 他的妈妈叫什么？
    怎么用英语说谢谢？ | 怎么用英语说拜托？
    谢谢 | 多谢
    他怎么来了？ | 他如何来了？
    中国的朋友有哪些？ | 中国朋友有哪些？
    一个人怎么旅行？ | 人怎么旅行？
    怎么一个人旅行？ | 怎么旅行？
    英语的老师是谁？ | 英语老师是谁？
""")

# What was once taken for the same, by the kind of the mistake.
REFUSED = {
    "marks": r"""
        How do I compute n!? | How do I compute n?
        How do I compute n! | How do I compute n
        What does cd .. do? | What does cd . do?
        How do I undo git add .? | How do I undo git add?
        What is ?? in C#? | What is ?. in C#?
        What does !! do in JavaScript? | What does ! do in JavaScript?
        What does ... do in JavaScript? | What does ! do in JavaScript?
        What does . match in a regex? | What does ? match in a regex?
        What is . in bash? | What is ! in bash?
        What is ... in Go? | What is . in Go?
        How do I call save!? | How do I call save?
        How do I call save! | How do I call save?
        怎么用git add . | 怎么用git add
        怎么用git add .，谢谢 | 怎么用git add，谢谢
        怎么执行cd ..？ | 怎么执行cd？
        怎么执行cd .. | 怎么执行cd .
        Python中怎么用. | Python中怎么用...
        怎么用~ | 怎么用
        怎么输入! | 怎么输入?
        怎么计算n! | 怎么计算n
    """,
    "characters": r"""
        What is the length of "a  b"? | What is the length of "a b"?
        What is the length of `a  b`? | What is the length of `a b`?
        What is the length of a  b? | What is the length of a b?
        What is the UTF-8 encoding of Ａ? | What is the UTF-8 encoding of A?
        What is the code point of ’? | What is the code point of '?
        What is the code point of ，? | What is the code point of ,?
        What is ，? | What is ,?
        Is ； valid in Python? | Is ; valid in Python?
        Ａ的编码是多少？ | A的编码是多少？
        Ａ是什么？ | A是什么？
        Python里；是什么？ | Python里;是什么？
        Python中的，有什么用？ | Python中的,有什么用？
        ！是什么？ | !是什么
    """,
    "numbers": r"""
        How heavy are 20 five pound weights? | How heavy are 25 pound weights?
        How heavy are twenty five pound weights? | How heavy are 25 pound weights?
        How many legs do 20 six legged insects have? | How many legs do 26 legged insects have?
        五六岁的孩子怎么教？ | 56岁的孩子怎么教？
        七八个人怎么坐？ | 78个人怎么坐？
        两三个人怎么玩？ | 23个人怎么玩？
        三四天够吗？ | 34天够吗？
        十八九岁是什么年纪？ | 19岁是什么年纪？
        十八九岁是什么年纪？ | 18 9岁是什么年纪？
        八九十岁怎么锻炼？ | 90岁怎么锻炼？
        九十月份去哪里？ | 90月份去哪里？
        三七怎么吃？ | 37怎么吃？
        四六级是什么？ | 46级是什么？
        十一去哪里？ | 11去哪里？
    """,
    "negation": r"""
        Can you not smoke here? | Can't you smoke here?
        Can I not vote? | Can't I vote?
        May a patient not eat before surgery? | May not a patient eat before surgery?
        Could a king not be crowned? | Couldn't a king be crowned?
        Do you know if I can not vote? | Can't I vote?
    """,
    "languages": r"""
        How do I access a Python variable from PowerShell? | How do I access a variable from PowerShell in Python?
        How do I convert a Python list to Fortran? | How do I convert a list to Fortran in Python?
        How do I call a Python function from Matlab? | How do I call a function from Matlab in Python?
        How do I decompile a Java class? | How do I decompile a class in Java?
        How is a list called in Python? | How do I call a list in Python?
    """,
    "synonyms": r"""
        How do I share google docs? | How do I share google documentation?
        What is a purchase order? | What is a buy order?
        What is a business directory? | What is a business folder?
        What is a repo market? | What is a repository market?
        How do I cook a kid? | How do I cook a child?
        How loud is 100 db? | How loud is 100 database?
        What is a car in lisp? | What is an automobile in lisp?
        Is every doctor a physician? | Is every physician a doctor?
        Is an automobile always a car? | Is a car always an automobile?
        Is color or colour correct? | Is colour or color correct?
        Is grey British? | Is gray British?
        Why do Americans write color? | Why do Americans write colour?
        Does American English use fibre? | Does American English use fiber?
        How is aluminum different from aluminium? | How is aluminium different from aluminum?
        What is the past tense of begin? | What is the past tense of start?
        What is child in French? | What is kid in French?
        What is 21 in French? | What is twenty-one in French?
        How many characters does colour have? | How many characters does color have?
        What is the length of the string color? | What is the length of the string colour?
        What is the hash of email? | What is the hash of e-mail?
        What is 3 in Roman numerals? | What is three in Roman numerals?
        What does life mean? | What is the meaning of life?
        Define life | What is the meaning of life?
        Give me the definition of life | What is the meaning of life?
    """,
    "one_or_several": r"""
        What are hives? | What is a hive?
        How do I treat hives? | How do I treat a hive?
        What are shingles? | What is a shingle?
        What are piles? | What is a pile?
        What are aids? | What is an aid?
        What is the life of a cat? | What is the life of cats?
        What is the difference between arms and legs? | What is the difference between arm and leg?
        How do plants make food? | How does a plant make food?
        What snakes eat frogs? | What do snakes eat frogs?
        What drugs cause? | What do drugs cause?
        Who Bob loves? | Who does Bob love?
    """,
    "capitals": r"""
        What is IOS? | What is iOS?
        How do I configure IOS? | How do I configure iOS?
        How do I bash a door? | How do I Bash a door?
        What is a python? | What is a Python?
        Rust: how do I remove it? | rust: how do I remove it?
        IOS是什么 | iOS是什么
    """,
    "ways": r"""
        How are diamonds made? | How do people make diamonds?
        How is urine produced? | How do people produce urine?
        How could I die? | How to die?
        How would I know? | How to know?
        How could we be wrong? | How to be wrong?
        How do we see color? | How to see color?
        How do I catch a cold? | How to catch a cold?
        How do we get cancer? | How to get cancer?
        How can I get fired? | How to get fired?
        Is there a way to cure cancer? | How do you cure cancer?
        Is there any way I can divide by zero? | How do I divide by zero?
        What is the percentage difference between 50 and 100? | What is the percentage difference between 100 and 50?
        What is the difference between 5 and 3? | What is the difference between 3 and 5?
        What is the time difference between London and Tokyo? | What is the time difference between Tokyo and London?
    """,
    "chinese": r"""
        与门是什么？ | 和门是什么？
        C语言中与怎么表示？ | C语言中和怎么表示？
        Python中与运算怎么写？ | Python中和运算怎么写？
        我跟他学什么？ | 我和他学什么？
        计算机科学是什么？ | 电脑科学是什么？
        大夫是什么官？ | 医生是什么官？
        修真是什么？ | 修理真是什么？
        怎么买单？ | 怎么购买单？
        什么是一个中国？ | 什么是中国？
        为什么坚持一个中国？ | 为什么坚持中国？
        为什么选择一个城市？ | 为什么选择城市？
        3和5的区别 | 5和3的区别
        怎么才能不胖？ | 怎么不胖？
        怎么往Excel里写数据？ | Excel里怎么往写数据？
        Docker里怎么访问主机？ | 怎么访问Docker里主机？
        主机怎么访问Docker里的服务？ | Docker里主机怎么访问的服务？
    """,
    "places": r"""
        他为什么说狗死了？ | 他说狗为什么死了？
        他怎么知道我做饭？ | 他知道我怎么做饭？
        医生说为什么不能喝酒？ | 为什么医生说不能喝酒？
        老板为什么让员工加班？ | 老板让员工为什么加班？
        What is the Amazon? | What is Amazon?
        What is a Mustang? | What is Mustang?
        Who is founder of the Amazon? | Who is the founder of Amazon?
        With a saw, who killed the man? | Who killed the man with a saw?
        How do I write color? | How do I write colour?
    """,
    "one_or_several_in_code": r"""
        How do I merge lists in Python? | How do I merge a list in Python?
        How do I compare strings in Java? | How do I compare a string in Java?
        How do I reverse a list in Python? | In Python, how can I reverse lists?
    """,
}

SAME_ENGLISH = pairs("""
    Tell me how a vaccine works | How does a vaccine work?
    I wonder how far the moon is | How far is the moon?
    Do you know where the nearest star is? | Where is the nearest star?
    I'd like to know if I can eat raw fish | Can I eat raw fish?
    How do I organise a party? | How can I organize a party?
    What is the colour of the sky? | What's the color of the sky?
    I do not own a car. What now? | I don't own a car. What now?
    How do I say "hi" in Thai? | Hello, can you tell me how to say "hi" in Thai?
    How do I renew my passport? | How to renew my passport?
    Can you help me understand how vaccines work? | How do vaccines work?
    Out of curiosity, who painted Guernica? | Who painted Guernica?
    How many kilometres are in a mile? | How many km are in a mile?
    How do I unclog a drain? Can you help? | How do I unclog a drain?
    How do I reverse a list in Python? | Hi! Could you please tell me how to reverse a list in Python? Thanks!
    What is the capital of France? | Hello! Could you please tell me what the capital of France is?
    What is the capital of France? | Tell me the capital of France.
    Why is the sky blue? | Can you explain why the sky is blue?
    How does photosynthesis work? | Explain how photosynthesis works.
    Is it safe to eat raw fish? | Do you know if it is safe to eat raw fish?
    How do I change the color of a cell? | How do I change the colour of a cell?
    How many people live in Tokyo? | What's the population of Tokyo?
    What's the GDP of Norway? | What's the gross domestic product of Norway?
    Can you explain recursion? | Explain recursion.
    Could you tell me about black holes? | Tell me about black holes.
    Do you know the boiling point of ethanol? | What's the boiling point of ethanol?
    Can you list the symptoms of measles? | What are the symptoms of measles?
    Name three types of clouds. | Can you give me three types of clouds?
    Explain the Pauli principle. | What is the Pauli principle?
    Explain the difference between a fruit and a vegetable. | What's the difference between a fruit and a vegetable?
    Can you tell me a joke? | Tell me a joke.
    Can you convert 255 to hex? | Convert 255 to hex.
    What is 15% of 80? | How much is 15 percent of 80?
    What's 6 times 9? | What is 6 multiplied by 9?
    Convert 10 miles to km | What is 10 miles in kilometers?
    Can you tell me what API means? | What does API mean?
    Good morning! What does API mean? | What does API mean?
    How do you spell "necessary"? | How is "necessary" spelled?
    What do you call a baby goat? | What is a baby goat called?
    Can you translate "thanks" to Polish? | Translate "thanks" into Polish.
    Can you write me a poem about autumn? | Write me a poem about autumn.
    Tell me what time the show starts | What time does the show start?
    Hi, I hope you're well. How do I renew my passport? | How do I renew my passport?
    Explain the offside rule, thanks. | Explain the offside rule. Thanks in advance!
    How do I optimize database queries? | How do I optimise database queries?
    How do I reverse a list in python? | How do I reverse a list in Python?
    What is the diffrence between a frog and a toad? | What is the difference between a frog and a toad?
    What does the EU do? | What does the European Union do?
    How do I add "a"? | How do I add "a"
    ７＊８＝？ | 7*8=?
""")

SAME_CHINESE = pairs("""
    怎样安装Kafka？ | 咋安装Kafka？
    猫为啥怕水？ | 猫为什么怕水？
    跑三公里要多久？ | 跑3公里要多久？
    C和C++有什么区别？ | C和C++的区别是什么？
    什么是机器学习？ | 机器学习是什么？
    怎么反转列表？ | 请问如何反转列表？谢谢！
    你能告诉我怎么安装docker吗？ | 怎么安装Docker？
    把20%写成分数 | 把２０％写成分数
    怎么安装 Redis? | 怎么安装 Redis？
    Redis，怎么安装 | Redis,怎么安装
    能不能吃鸡蛋？ | 能吃鸡蛋吗？
    他是不是医生？ | 他是医生吗？
    有个问题想请教：怎么给浏览器清缓存？ | 怎么给浏览器清缓存?
    我想知道光合作用的化学方程式是什么。 | 光合作用的化学方程式是什么？
    你能推荐一本小说吗？ | 推荐一本小说
    可以麻烦你告诉我怎么报名马拉松吗？ | 如何报名马拉松？
    给我推荐三部老电影 | 请给我推荐三部老电影，谢谢！
    冒昧打扰，想请教一个问题：怎么预防感冒？ | 怎样预防感冒？
    １＋２等于几？ | 1+2等于几？
""")


@pytest.mark.parametrize(("a", "b"), DIFFERENT_ENGLISH + DIFFERENT_CHINESE)
def test_what_differs_in_anything_that_counts_is_refused(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert not same_question(b, a).same


@pytest.mark.parametrize(("a", "b"), [pair for some in REFUSED.values() for pair in pairs(some)])
def test_a_kind_of_mistake_is_made_only_once(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert not same_question(b, a).same


@pytest.mark.parametrize(("a", "b"), SAME_ENGLISH + SAME_CHINESE)
def test_what_differs_in_wording_only_is_the_same(a: str, b: str) -> None:
    assert same_question(a, b).same
    assert same_question(b, a).same


def test_no_two_questions_of_different_pairs_are_the_same() -> None:
    """Every question here against every other: far more pairs than anybody would write."""
    groups = [{a, b} for a, b in SAME_ENGLISH + SAME_CHINESE]
    asked = sorted(set().union(*groups, *map(set, DIFFERENT_ENGLISH + DIFFERENT_CHINESE)))
    known: dict[str, str] = {}

    def root(question: str) -> str:
        while known.get(question, question) != question:
            question = known[question]
        return question

    for group in groups:
        first, *others = sorted(group, key=root)
        for other in others:
            known[root(other)] = root(first)
    found = [
        (a, b)
        for place, a in enumerate(asked)
        for b in asked[place + 1 :]
        if root(a) != root(b) and same_question(a, b).same
    ]
    assert found == []


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("What is 2 + 2?", "What is 2 + 3?", "numbers"),
        ("Can I eat it?", "Can't I eat it?", "negation"),
        ("Does a dog bite a man?", "Does a man bite a dog?", "order"),
        ("How do I use foo_bar?", "How do I use foo_baz?", "code"),
        ('What does "a" mean?', 'What does "b" mean?', "quoted"),
        ("Where is Rome?", "Where is Milan?", "names"),
        ("How do I bake bread?", "How do I bake cake?", "words"),
        ("Where is Rome?", "罗马在哪里？", "language"),
        ("", "", "empty"),
        ("Please", "Thanks", "empty"),
    ],
)
def test_the_reason_names_what_differs(a: str, b: str, reason: str) -> None:
    verdict = same_question(a, b)
    assert (verdict.same, verdict.reason) == (False, reason)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Как установить Python?", "Как мне установить Python?"),
        ("Pythonのリストを逆にするには？", "Pythonのリストを逆にする方法は？"),
        ("Comment installer Python ?", "Comment puis-je installer Python ?"),
        ("Wie installiere ich Python?", "Wie kann ich Python installieren?"),
        ("¿Cómo instalo Python?", "¿Cómo puedo instalar Python?"),
        ("파이썬을 어떻게 설치하나요?", "파이썬은 어떻게 설치하나요?"),
        (
            "请用英语解释 how do I reverse a list in Python",
            "用英语解释 how can I reverse a list in Python",
        ),
    ],
)
def test_a_language_that_no_rule_reads_is_refused(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert same_question(a, a).same, "to the character it is the same in any language"


def test_pasted_lines_are_compared_to_the_character() -> None:
    code = "Why does this fail?\nif x:\n    y()\n"
    assert same_question(code, "Why does this fail?\nif x:\n    y()").same
    assert same_question(code, "Can you tell me why this fails?\nif x:\n    y()").same
    assert not same_question(code, code.replace("    y", "  y")).same
    assert not same_question(code, code.replace("if x", "if z")).same


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("print（x）为什么报错？", "print(x)为什么报错？"),
        ("Why does print（x） fail?", "Why does print(x) fail?"),
        ("x ＝ 1 是什么意思？", "x = 1 是什么意思？"),
        ("“a  b” 有几个字？", "“a b” 有几个字？"),
        ("How many letters has 'a  b'?", "How many letters has 'a b'?"),
        ("`a  b` 是什么？", "`a b` 是什么？"),
        ("f(a，b)对吗？", "f(a,b)对吗？"),
    ],
)
def test_in_code_and_quotes_no_sign_is_taken_for_another(a: str, b: str) -> None:
    assert not same_question(a, b).same


def test_marks_of_the_sentence_are_no_code() -> None:
    assert same_question("`a` 是什么？", "`a` 是什么?").same


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("How do I type a full-width ！ sign?", "How do I type a full-width ! sign?"),
        ("怎么输入全角的，", "怎么输入全角的,"),
        ("Why does print(“hi”) fail?", 'Why does print("hi") fail?'),
        ("Why does print（1） fail?", "Why does print(1) fail?"),
        ("int a = 1；为什么报错", "int a = 1;为什么报错"),
        ("f(a，b) 为什么报错", "f(a,b) 为什么报错"),
        ("What does `echo 'a  b'` print?", "What does `echo 'a b'` print?"),
        ("What does “a  b” mean?", "What does “a b” mean?"),
    ],
)
def test_signs_are_unified_only_where_they_cannot_matter(a: str, b: str) -> None:
    assert not same_question(a, b).same
    assert not same_question(b, a).same


def test_how_a_letter_is_composed_may_be_the_question() -> None:
    assert not same_question("What is caf\u00e9?", "What is cafe\u0301?").same


def test_a_long_text_is_the_same_to_the_character_only() -> None:
    text = "How do I boil an egg? " * (MAX_CHARS // 20)
    assert same_question(text, text).same
    assert same_question(text, "Please: " + text).reason == "long"


def test_a_pair_takes_less_than_two_milliseconds() -> None:
    took_ms = []
    for number in range(200):
        a = f"Could you please tell me how to reverse list number {number} in Python?"
        b = f"How do I reverse list number {number} in Ruby when it has {number} elements?"
        c, d = f"请问怎么在Python中反转第{number}个列表？", f"如何用Ruby反转第{number}个列表？"
        began_s = time.thread_time()
        same_question(a, b)
        same_question(c, d)
        took_ms.append((time.thread_time() - began_s) * 500)
    assert statistics.median(took_ms) < 2


def test_the_segmenter_is_loaded_by_the_first_chinese_question_only() -> None:
    code = (
        "import sys\n"
        "from llm.same_question import same_question\n"
        "same_question('What is a?', 'What is b?')\n"
        "assert 'rjieba' not in sys.modules\n"
        "same_question('什么是狗', '什么是猫')\n"
        "assert 'rjieba' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
