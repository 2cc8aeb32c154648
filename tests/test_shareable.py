"""What may be answered to one person with what another was answered."""

from __future__ import annotations

import pytest

from llm.shareable import fit_to_share


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


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
    How can I hide a bottle from Sarah?
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
    Can Anna Schmidt from Bonn be trusted?
    What did Karl do to me?
    Who is Hans Muller from Gasse 4 in Graz?
    Translate: Dear Anna, the biopsy was positive.
    Fix: Dear Mr Smith, we regret to inform you
    Summarize: Patient presents with chest pain, male, 54, smoker
    Correct this: Anna will meet Tom at 5 in the hotel
    What is wrong with: SELECT * FROM payroll WHERE name = 'Anna Schmidt'
    Is +49 171 555 a German number?
    Is DE89 3704 0044 0532 0130 00 valid?
    Is 4-digit 1234 5678 valid?
    What is the zodiac sign of someone born 03.05.1961?
    Mein Name ist Anna, was kann ich kochen?
    Je m'appelle Anna. Que faire?
    Wie sage ich meinem Chef, dass ich kündige?
    Me llamo Ana y tengo VIH
    Меня зовут Анна. Что мне делать?
    私の名前は太郎です。何を食べますか？
    제 이름은 철수입니다
    我儿子叫王小明
    李雷住在中山路12号，他欠钱不还怎么办？
    王小明得了艾滋病怎么办？
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
    王老师离婚了吗？
""")

MORE = lines(r"""
    who is john smith from accounting
    who is daria kowalski from accounting
    who is daria kowalski
    who's daria kowalski?
    do you know who daria kowalski is
    my boss peter is mean, what to do
    what to do about a mean boss
    is daria pregnant
    is daria kowalski getting divorced
    why did daria get fired
    has daria been arrested
    where does daria live
    where is daria kowalski living
    when was daria kowalski born
    how old is daria kowalski when she married
    what is the best gift for a mother in law who is an ex nurse
    how to fire someone from accounting
    how to tell a colleague in hr
    is ann from the sales team nice
    what did rebecca do
    how to write to mr smith
    who lives at 12 oak street
    is 4 upper garden lane a good place
    hauptstrasse 4
    is order no A12 late
    what is case 4711b
    is ann.lee@corp.example a real mail
    what to do when wife is angry
    how to treat a girlfriend with hiv
    what does thompson earn, smith said
    我老板是谁
    我儿子几岁上学
    老板为什么生气
    中山路12号在哪里
    How do I reverse my list?
    What should we do about it?
    Is Anna pregnant?
    is john smith pregnant?
    Tell me what a list is
    Does ANNA love him?
    What is wrong with Schmidt?
    What is the salary of Dr Weber?
    Is 0171 555 12 a number?
    Is ann@example.com valid?
    What is user_4711a?
    Was kann Python?
    Wer ist Anna?
    Qui est Anna?
    ¿Quién es Ana?
    Anna离婚了吗？
    张伟的工资是多少？
    怎么告诉同事小红？
    患者发热怎么办？
    告诉我怎么安装Docker
    怎么重置密码？
    小王离婚了吗？
    赵敏为什么哭？
    刘强东是谁？
    Is the code 8812 safe?
    Does Peter have HIV?
    Come si cucina il riso?
""")

OF_ONE_FIRM = lines(r"""
    How do I invoice customer smithson for order 4711?
    How do I invoice customer smithson?
    How do I find ticket #88?
    Where is invoice no. 12?
    what is employee id 7
    How to log in to intranet.acme.corp
    Why does wiki.acme answer slowly? Is build.ci.acme down?
    How do I reach acme.com?
    How do I reset the intranet?
    What is wrong with server prod-db-3?
    Why is srv01 slow?
    How to restart host web-7a
    What does error E47 on machine hal9 mean?
    How do I close JIRA-123?
    Explain project bluebird's launch plan
    How does client henderson pay?
    订单4711在哪里？
    服务器db3为什么慢？
""")

OF_SOMEBODYS_OWN = lines(r"""
    Does priya have herpes?
    does priya sharma have breast cancer
    has jorge got hiv
    will jorge die of cancer
    How to treat jorge's cancer
    What is smithson's salary?
    How big are tanaka's debts?
    How to divorce tanaka without losing the kids
    How do I sue henderson?
    阿强欠钱不还怎么办
    怎么让阿强不赌
    欧阳娜得了抑郁症吗
    司马光欠钱怎么办
    张伟丽得了什么病
    李娜抑郁了怎么办
    隔壁老王出轨怎么办
    闺女早恋怎么办
    孩子他爸家暴怎么办
    婆婆偏心怎么办
""")

ANYBODYS = lines(r"""
    How does one reverse a list in Python?
    How to reverse a list in Python
    What is the capital of France?
    What's the difference between TCP and UDP?
    Why is the sky blue?
    Who wrote Hamlet?
    Can dogs eat chocolate?
    What is US law?
    Explain what recursion is.
    How tall is Mount Everest?
    Who invented the telephone?
    who is the author of hamlet
    who is einstein
    who can vote in germany?
    what is a git rebase
    where is the amazon river
    why is java slow
    what does grep do
    is it safe to eat when pregnant?
    how are diamonds made?
    is rust faster than java
    how to square a number in python
    how to find the max of a list
    how to validate an email in javascript
    what is a taylor series
    when was paris founded
    Is JavaScript the same as Java?
    What are France's neighbours? Is Spain one?
    怎么在Python中反转列表？
    天空为什么是蓝色的？
    什么是机器学习？
    TCP和UDP有什么区别？
    怎么用Excel合并单元格？
    黄河有多长？
    老虎有多重？
    小麦有多高？
    高血压有哪些症状？
    阿里巴巴是什么时候成立的？
    阿司匹林有什么作用？
    阿根廷的首都是哪里？
    what is alzheimer's disease?
    what are the symptoms of parkinson's disease?
    Does smoking cause cancer?
    What is women's health insurance?
    How does os.path.join work in Python?
    what is asp.net?
    How do I install Node.js?
    what is covid-19?
    What is SHA-256?
    What does UTF-8 mean?
    What is customer service?
    How do I manage a project?
    What is the client side of an app?
    How do I sue a company?
    How do I connect to a database server in Java?
""")


@pytest.mark.parametrize(
    "question",
    [*OF_SOMEBODY, *MORE, *OF_ONE_FIRM, *OF_SOMEBODYS_OWN, "How?\nlst = [1]", "", "a " * 300],
)
def test_what_may_be_somebodys_is_not_shared(question: str) -> None:
    assert not fit_to_share(question)


@pytest.mark.parametrize("question", ANYBODYS)
def test_what_is_about_nobody_is_shared(question: str) -> None:
    assert fit_to_share(question)


def test_how_anybody_does_it_may_be_shared() -> None:
    assert fit_to_share("How do I reverse a list in Python?")
    assert not fit_to_share("How do I know what is wrong?")
    assert not fit_to_share("How do I reverse my list in Python?")
    assert not fit_to_share("How do I stop when I drink?")
