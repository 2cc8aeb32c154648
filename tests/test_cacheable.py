"""Questions that are never cached, and ordinary ones that are, in English and Chinese."""

from __future__ import annotations

import time

import pytest

from llm import cacheable
from llm.cacheable import MAX_CHARS, why_not
from llm.types import Message


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


NOW = lines("""
    What time is it in Tokyo?
    What's the weather like today?
    Will it rain tomorrow?
    Give me the latest news about AI.
    What is the current price of gold?
    Who is the president of France?
    What is the newest version of Python?
    What happened this week?
    How much does an iPhone cost?
    What's the exchange rate of the euro?
    Is the shop open now?
    What are the trending topics?
    Who won the match?
    What films are coming out next month?
    What is the stock price of NVIDIA?
    Which model is state of the art?
    What holidays are there in 2026?
    What is the population of Kenya?
    Are there flights to Rome?
    Who is the richest person?
    How many days until Christmas?
    Has it been released yet?
    今天天气怎么样？
    现在几点了？
    最新的iPhone多少钱？
    目前最好的大模型是哪个？
    明天会下雨吗？
    今年春节是哪天？
    最近有什么新闻？
    美元兑人民币的汇率是多少？
    茅台股价是多少？
    比特币行情如何？
    周末去哪玩？
    北京现在堵车吗？
    这部电影什么时候上映？
    2026年有哪些节假日？
    现任法国总统是谁？
    上海的房价高吗？
    德国人口有多少？
    近几年有哪些流行的框架？
    他在文章里写“今天是个好日子”是什么意思？
    请问 today 的天气如何
    ChatGPT 最近更新了什么？
    Python 的 latest 版本是什么？
""")

CREATIVE = lines("""
    Write a poem about the sea.
    Tell me a joke.
    Write a short story about a robot.
    Surprise me.
    Give me another one.
    Pick a random number.
    Suggest a name for a cat.
    Recommend some books.
    Brainstorm ideas for a party.
    Compose a song about rain.
    Continue
    Give me a slogan for a bakery.
    Pretend to be a pirate.
    Write a cover letter.
    Rephrase it more politely.
    What should I cook tonight?
    Tell me something interesting.
    Roll a dice.
    Give me a fun fact.
    Imagine a world without oil.
    Plan a trip to Lisbon.
    写一首诗。
    讲个笑话
    随便说点什么
    再来一个
    编一个睡前故事
    给猫起个名字
    推荐几本书
    写一篇关于秋天的作文
    给我一个随机数
    来段脱口秀台词
    换一个
    继续
    写一封情书
    说个脑筋急转弯
    帮我写一段文案
    生日祝福怎么说
    给我一些灵感
    扮演一个老师
    还有吗
    写一段描写春天的话
    用 Python 讲个笑话
    给我 random 一个名字
""")

PERSONAL = lines("""
    My name is Ann, what is yours?
    What is my name?
    Who am I?
    I am a nurse, how do I read an ECG?
    I'm 25 and have a headache. What helps?
    Why doesn't our server start?
    Send it to ann@example.com
    Call +44 20 7946 0958 for me
    Is 4111 1111 1111 1111 a valid card?
    My API key is sk-abcdefghijklmnop1234
    What does my contract say?
    I have two dogs. What do they eat?
    Summarize the following text
    Explain this error
    What do you think of it?
    Are you an AI?
    Decode eyJhbGciOiJIUzI1NiJ9abcdef
    What is at https://example.com?
    Is 192.168.1.23 reachable?
    Read /home/ann/notes.txt
    Fix the bug in this code
    You said it was blue.
    Draft a mail to my landlord
    We need a new roof.
    我的电脑开不了机
    我叫小明
    我是程序员，怎么转行？
    我的手机号是多少？
    我家的猫不吃饭
    我们公司怎么报销？
    身份证丢了怎么补办？
    帮我看看这段代码
    总结一下下面的文章
    你是谁？
    你叫什么名字
    你觉得哪个好
    联系 ann@example.com 怎么写
    我想学吉他
    我爸血压高吃什么
    上文说的是什么意思
    我有两个孩子
    我 的 手机号 13800138000
    银行卡被吞了怎么办
    如下代码有什么问题
    这份合同有效吗
""")

OF_THE_DAY = lines(r"""
    Is the Louvre open on Monday?
    What day is it?
    Who is president of France?
    Who leads Germany?
    Who governs Texas?
    Who's the US president?
    Who is the chief executive of Apple?
    What is the newest iPhone?
    What time is it in Tokyo?
    What's the time in Tokyo?
    Is it dark outside?
    Is it sunny in Paris?
    How hot is it in Madrid?
    Is Bitcoin up?
    What's Tesla trading at?
    Is the store open?
    When does the next train leave?
    When is the next solar eclipse?
    When is Easter?
    How many days till Christmas?
    How many days to Christmas?
    Which Python is stable?
    Is GitHub down?
    Who holds the 100 m record?
    Who is world champion?
    Is Queen Elizabeth alive?
    Is Jimmy Carter alive?
    Is Jimmy Carter dead?
    How many people live in Berlin?
    How much is gold?
    What does a Tesla cost?
    What is the date?
    What date is it?
    What year is it?
    What month is it?
    What's the day?
    Who plays tonite?
    张伟的工资
    北京几度？
    现在几点？
    几点了？
    今儿冷吗？
    美国总统叫什么？
    谁是美国总统？
    法国总统是哪位？
    iPhone最贵的是哪款？
    金子一克多少？
    茅台一瓶多少？
    下一班地铁几点？
    春节是哪天？
    离春节还有几天？
    离高考还有多久？
    油价几块？
    GitHub挂了吗？
""")

OF_SOMEBODY = lines(r"""
    John Miller of 12 Oak Street owes me 500 dollars. Can I sue?
    Is Maria Lopez in accounting pregnant?
    Why was I fired from Siemens?
    Should I tell Tom Baker that his wife cheats?
    How do I tell me boss that I quit?
    Does patient Anna Schmidt, born 3 May 1961, need dialysis?
    What dose of insulin for a 54 year old woman called Anna Schmidt?
    Can I get a divorce from Peter?
    Should I divorce Peter?
    Can I be pregnant after one night?
    Why do I bleed when I pee?
    Am I pregnant?
    Why am I so sad?
    Is it normal that I can hear voices?
    The code for the safe is 4711. How do I change it?
    Our wifi key is hunter2
    The pin is 8812, is that safe?
    Is hunter2 a safe passphrase?
    Is "Tr0ub4dor&3" a good pw?
    Is Sommer2019! secure enough?
    How strong is P@ssw0rd-Anna-77?
    Dr. Weber says I should stop taking Xarelto. Is he right?
    I earn 42k. Can I afford a house?
    I weigh 130 kg. How do I lose weight?
    I suffer from HIV. Can I donate blood?
    I cheated on Lisa. What should she know?
    I take Prozac and drink. Is it dangerous?
    I owe 5000 euros. Can they jail me?
    I drank bleach. What happens?
    I killed a man. What do I do?
    I smoke weed. Can the police test me?
    I turned 40. Can I get life insurance?
    I failed the exam. What happens?
    me and Peter broke up. How do I get over it?
    My's
    Can I sue Acme for what it did to me?
    Will Peter leave me?
    Does Anna love me?
    Is Anna cheating on me?
    What did Karl do to me?
    Translate: Dear Anna, the biopsy was positive.
    Fix: Dear Mr Smith, we regret to inform you
    Summarize: Patient presents with chest pain, male, 54, smoker
    Correct this: Anna will meet Tom at 5 in the hotel
    Is +49 171 555 a German number?
    Is DE89 3704 0044 0532 0130 00 valid?
    Is 4-digit 1234 5678 valid?
    What is the zodiac sign of someone born 03.05.1961?
    Me llamo Ana y tengo VIH
    我儿子叫王小明
    李雷住在中山路12号，他欠钱不还怎么办？
    老板拖欠我工资怎么办？
    我怀孕了能吃螃蟹吗？
    我得了糖尿病能吃西瓜吗？
    我杀了人怎么办？
    我出轨了怎么办？
    我欠了50万怎么办？
    我月经不来怎么办？
    我同事王强偷东西怎么办？
    我同学小红怀孕怎么办？
    我舅舅得了癌症怎么办？
    我弟吸毒怎么办？
    我奶奶怎么申请低保？
    我妹妹叫李梅，星座是什么？
    我爱人生病了怎么办？
    我对象劈腿怎么办？
    我领导骚扰怎么办？
    我被公司辞退怎么办？
    我能不能离婚？
    我该不该离婚？
    我会死吗？
    咱家的狗病了怎么办？
    俺
    密码：hunter2 安全吗？
    密码hunter2安全吗？
    口令是什么123456安全吗？
    微信号abc123是谁？
    QQ号 12345678 是谁？
    车牌京A12345是谁的？
    身高180体重90算胖吗？
""")

ORDINARY_ENGLISH = lines("""
    How do I get the current directory in bash?
    What is a news feed?
    How do I reverse a list in Python?
    What is the capital of France?
    Why is the sky blue?
    How does photosynthesis work?
    What is the difference between TCP and UDP?
    How do I center a div in CSS?
    Explain recursion.
    How do I undo the last git commit?
    What does HTTP 404 mean?
    How many bones does a human have?
    How do I boil an egg?
    Can dogs eat chocolate?
    What is the boiling point of water?
    How do I merge two dictionaries in Python?
    Who wrote Hamlet?
    When did the Second World War end?
    How do I remove a red wine stain from a carpet?
    What is a random forest?
    How do I generate a random number in Python?
    How do I list all files in a folder on Linux?
    What is the square root of 144?
    How do I convert a string to an integer in Java?
    Is a tomato a fruit?
    How do I write a for loop in JavaScript?
    How do I make bread without yeast?
    What is the speed of light?
    How do magnets work?
    How do I exit vim?
    What is a primary key?
    How do I fold a fitted sheet?
    How tall is Mount Everest?
    What is electric current?
    How do I add a new column to a table in SQL?
    What does the keyword static do in Java?
    How do I change a flat tire?
    What causes thunder?
    How do vaccines work?
    How do I rename a branch in git?
    What is Big O notation?
    How do I check available disk space on Linux?
    How do I clean my keyboard?
    How do I install Docker on Ubuntu?
    What is the meaning of the word serendipity?
    Translate "good morning" into French.
    How do I tie a tie?
    What is the chemical formula of table salt?
    What is the time complexity of quicksort?
    How do I create a new branch?
    How do I use docker compose?
    Do I need to peel carrots?
    How do I read a CSV file with pandas?
    What are the symptoms of the flu?
    How do I sort an array in descending order?
    How do I take a screenshot on Windows?
    What is the Pythagorean theorem?
    How do I grow basil from seed?
    What is a user story in Scrum?
    How do I escape a quote in bash?
    How far is the moon from the earth?
    Can I freeze cooked rice?
    How do I parse JSON in Go?
    How do I get rid of ants in the kitchen?
""")

ORDINARY_CHINESE = lines("""
    怎么在Python中反转列表？
    天空为什么是蓝色的？
    法国的首都是哪里？
    什么是机器学习？
    光合作用的原理是什么？
    TCP和UDP有什么区别？
    怎么煮鸡蛋？
    如何卸载Node.js？
    怎么去除冰箱里的异味？
    水的沸点是多少度？
    红楼梦的作者是谁？
    第二次世界大战什么时候结束的？
    怎么查看Linux当前目录？
    如何用SQL给表加一列？
    什么是随机森林？
    怎么用Python生成随机数？
    人有多少块骨头？
    狗能吃巧克力吗？
    地球到月球有多远？
    怎么系领带？
    如何退出vim？
    什么是主键？
    怎么把PDF转成Word？
    感冒了可以喝咖啡吗？
    怎么给浏览器清缓存？
    二十三加三十五等于多少？
    勾股定理是什么？
    怎么撤销git的上一次提交？
    怎么洗白衬衫上的油渍？
    如何种植薄荷？
    快速排序的时间复杂度是多少？
    怎么更换自行车内胎？
    打雷是怎么形成的？
    疫苗是怎么起作用的？
    怎么用Excel合并单元格？
    Docker怎么安装？
    Java里static关键字有什么用？
    怎么重命名git分支？
    珠穆朗玛峰有多高？
    食盐的化学式是什么？
    如何读取CSV文件？
    怎么做番茄炒蛋？
    什么是数字签名？
    如何在Windows上截图？
    流感有哪些症状？
    怎么设置用户角色权限？
    怎么查看Python版本？
    如何更新pip？
    什么是闭包？
    怎么保存切开的牛油果？
    为什么海水是咸的？
    什么叫通货膨胀？
    怎么折叠衬衫？
    写一个Python函数求阶乘
    写一段代码读取文件
    解释一下递归
    米饭可以冷冻吗？
    怎么用CSS让div居中？
    如何计算圆的面积？
    怎么缓解眼睛疲劳？
    蜜蜂怎么找到回家的路？
    HTTP 404 是什么错误？
    把“早上好”翻译成法语
""")


@pytest.mark.parametrize("question", NOW + CREATIVE + PERSONAL + OF_THE_DAY + OF_SOMEBODY)
def test_what_is_of_the_moment_of_taste_or_of_a_person_is_refused(question: str) -> None:
    # Many are several at once ("what should I cook tonight?"): one reason is told.
    assert why_not([Message("user", question)]) in {"now", "creative", "personal"}


def test_the_reason_is_the_one_that_is_plain() -> None:
    told = {
        "What's the weather like in Rome?": "now",
        "Tell me a joke.": "creative",
        "What is my name?": "personal",
        "今天天气怎么样？": "now",
        "讲个笑话": "creative",
        "我叫什么？": "personal",
    }
    assert {question: why_not([Message("user", question)]) for question in told} == told


@pytest.mark.parametrize("question", ORDINARY_ENGLISH + ORDINARY_CHINESE)
def test_ordinary_questions_may_be_cached(question: str) -> None:
    assert why_not([Message("user", question)]) == ""


@pytest.mark.parametrize(
    "question",
    [
        "How should I learn Rust?",
        "Can I freeze soup?",
        "Do I need a visa stamp?",
        "How can I explain to me a pointer?",
        "How did World War I end?",
        "How much is 2 plus 2?",
        "How do I get a list?",
        "告诉我怎么安装Docker",
        "怎么修改MySQL密码？",
        "我该怎么反转列表？",
    ],
)
def test_who_asks_how_tells_nothing_of_himself(question: str) -> None:
    assert why_not([Message("user", question)]) == ""


@pytest.mark.parametrize(
    ("english", "chinese", "reason"),
    [
        ("How do I reset my router?", "怎么重置我的路由器", ""),
        ("How do I clean my keyboard?", "我的键盘怎么清洁？", ""),
        ("How can I connect my phone to a TV?", "如何把我的手机连到电视？", ""),
        ("How do I update my browser?", "我怎么更新我的浏览器？", ""),
        ("Why is my computer so slow?", "我的电脑怎么这么慢？", "personal"),
        ("How do I reset my phone password?", "怎么重置我的手机密码？", "personal"),
        ("How do I read my wife's phone?", "怎么看我老婆的手机？", "personal"),
        (
            "How do I hide the files on my laptop from my boss?",
            "怎么对我老板隐藏我的电脑文件",
            "personal",
        ),
        ("What is on my phone?", "我的手机里有什么？", "personal"),
    ],
)
def test_what_is_personal_is_so_in_either_language(english: str, chinese: str, reason: str) -> None:
    assert [why_not([Message("user", each)]) for each in (english, chinese)] == [reason] * 2


def test_both_directions_have_enough_examples() -> None:
    refused = NOW + CREATIVE + PERSONAL
    chinese = [each for each in refused if any("\u4e00" <= sign <= "\u9fff" for sign in each)]
    assert min(len(chinese), len(refused) - len(chinese)) >= 60
    assert min(len(ORDINARY_ENGLISH), len(ORDINARY_CHINESE)) >= 60


def test_what_somebody_said_of_himself_earlier_counts() -> None:
    conversation = [
        Message("user", "My name is Ann."),
        Message("assistant", "Hello Ann!"),
        Message("user", "How do I boil an egg?"),
    ]
    assert why_not(conversation) == "personal"
    assert why_not(conversation[-1:]) == ""


def test_a_system_prompt_is_nobodys() -> None:
    system = Message("system", "You are my assistant. Today is Monday.")
    assert why_not([system, Message("user", "How do I boil an egg?")]) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a" * (MAX_CHARS + 1), "long"),
        ("word\n" * 60, "long"),
        ("word " * (MAX_CHARS // 5), ""),
    ],
)
def test_nothing_and_too_much_are_refused(text: str, reason: str) -> None:
    assert why_not([Message("user", text)]) == reason


def test_no_question_is_refused() -> None:
    assert why_not([]) == "empty"


@pytest.mark.parametrize(
    "question",
    [
        "What is MY name?",
        "WHAT TIME IS IT",
        "What\u2019s the weather?",
        "ｔｏｄａｙ 的日期",
        "what  is   the\ttime",
    ],
)
def test_spelling_hides_nothing(question: str) -> None:
    assert why_not([Message("user", question)])


@pytest.mark.parametrize(
    "question",
    [
        "How do amylases work?",
        "What is a newsletter?",
        "What does knowing mean?",
        "How is dynamite made?",
    ],
)
def test_a_word_within_another_is_not_that_word(question: str) -> None:
    assert why_not([Message("user", question)]) == ""


def test_what_was_looked_at_is_not_looked_at_again() -> None:
    history = [Message("user", f"What is {number} + 2?") for number in range(30)]
    cacheable._by_words.cache_clear()
    for turns in range(1, len(history) + 1):
        assert why_not(history[:turns]) == ""
    assert cacheable._by_words.cache_info().misses == len(history)


def test_long_texts_are_not_held() -> None:
    cacheable._by_words.cache_clear()
    assert why_not([Message("user", "x" * (MAX_CHARS + 1))]) == "long"
    assert cacheable._by_words.cache_info().currsize == 0


@pytest.mark.parametrize(
    "unit", ["怎么", "数据库索引的工作原理", "a.", "ab", "1x", "how ", "x@", "(("]
)
def test_no_text_takes_more_than_its_length_in_time(unit: str) -> None:
    def took_s(chars: int) -> float:
        text = (unit * chars)[:chars]
        best = float("inf")
        for _ in range(5):
            cacheable._by_words.cache_clear()
            begin_s = time.perf_counter()
            why_not([Message("user", text)])
            best = min(best, time.perf_counter() - begin_s)
        return best

    # Eight times the length: eight times the time, not sixty-four times.
    assert took_s(1984) < 24 * max(took_s(248), 1e-4)


@pytest.mark.parametrize(
    "address", ["jo@example.org", "j.o+x@mail.example.org", "写信给jo@example.org吧", "a-@b.c"]
)
def test_an_address_is_personal(address: str) -> None:
    assert why_not([Message("user", f"Who has {address} for an address?")]) == "personal"
