"""Whether a question may be answered to one person with what another was answered.

For the scope that many people share. An answer that was made for somebody alone mustn't reach
anybody else, so this asks more than `cacheable.why_not`: nobody is spoken of, neither the one who
asks nor anybody by name, and every doubt is a no. It costs a second answer's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llm.same_question_en_words import CASELESS, ENGLISH, FOREIGN, STARTING, listed

MAX_CHARS = 400

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_a-zA-Z\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_PRIVATE_SIGNS = re.compile(
    r"\d(?:[\s().-]*\d){4,}"  # phone, card, account, a date of birth
    r"|(?i:\b(?:code|key|number|card|room|flat|street|account|ticket|order|invoice|case|badge"
    r"|extension|policy|iban|apartment|apt|suite)\s+(?:no\.?\s+|number\s+)?[a-z]{0,3}\d)"
    # an address: "12 oak street", "gasse 4"
    r"|(?i:\b\d+[a-z]?\s+(?:\w+\s+){1,3}(?:street|st|road|rd|avenue|ave|lane|drive|court|square|boulevard))\b"
    r"|(?i:\w(?:strasse|gasse|weg|platz)\s+\d)"
    r"|\d\s*[号弄栋幢室]"
    r"|[@\n\r]|://|www\.|\\|~/|[\"“][^\"”]*\d"
    # a password, an id
    r"|(?<![\w])(?=\w*[A-Za-z])(?=\w*\d)(?!(?:python|sha|base|utf|http|oauth|log|ipv|mp|es|h)\d)\w{6,}"
)
# What only one firm has: a host, a machine, a ticket, whoever it deals with.
_INTERNAL = re.compile(
    r"\b(?!(?:asp|vb|ado|ml|dot)\.net\b)[\w-]+\.(?:corp|local|localdomain|lan|internal|intra|intranet"
    r"|home|com|org|net|edu|gov|cn|de|eu|fr|uk|ch|at|cloud|biz|info)\b"
    r"|\b(?!os\.path\.|java\.)[a-z][\w-]*(?:\.[a-z][\w-]*){2,}"
    r"|\b(?:intranet|sharepoint|jira|confluence)\b"
    # prod-db-3, srv01, JIRA-123, "on machine hal9"
    r"|\b[a-z]+[-_][a-z]+[-_][a-z]*\d+\b"
    r"|\b(?:prod|staging|stage|uat|qa|srv|db|vm|host|node|app)[-_]?\d+\b|\b(?:prod|staging|uat|qa)[-_]\w"
    r"|(?-i:\b(?!UTF|SHA|ISO|COVID|GPT|USB|WPA|HTTP|IEEE|RFC|AES|PEP|TLS|SSL|IPV|DDR|PS|MP)[A-Z]{2,}-\d{2,})"
    r"|\b(?:server|host|machine|database|cluster|instance|bucket|queue|printer|device|robot|tenant|unit"
    r"|customer|client|user|employee|contract|project|vendor|supplier|policy|site|warehouse)s?"
    r"\s+(?=[\w-]*[a-z])(?=[\w-]*\d)(?!es\d|ipv\d|http/?\d)[\w-]+"
    r"|\b(?:customer|client|order|ticket|invoice|case|contract|policy|account|employee|member|tenant"
    r"|booking|reservation|shipment|tracking|serial|badge|asset|incident|purchase\s+order)s?"
    r"(?:\s*(?:\#|no\.?|nr\.?|num\.?|number|id))?\s*[:\#]?\s*\d"
    r"|(?:订单|工单|客户|发票|合同|工号|编号|单号|员工|服务器|主机|快递|运单|案件|会员|保单)(?:编?号|号码)?[\s:：#]*[A-Za-z-]*\d",
    re.IGNORECASE,
)
_DEALT_WITH = re.compile(
    r"\b(?:customer|client|supplier|tenant|employee|candidate|applicant|debtor|project)\s+"
    r"(?!(?:a|an|the|and|or|in|on|of|for|to|with|from|by|as|at|is|are|has|have|can|could|should|who|whose"
    r"|that|which|does|do|did|will|would|be|if|when|after|before|without|not|than|vs|versus"
    r"|service|support|success|satisfaction|relationship|relations|experience|journey|data|database"
    r"|base|lifetime|acquisition|retention|segmentation|feedback|churn|value|care|id|ids|list|table"
    r"|management|manager|managers|plan|plans|planning|side|server|code|component|components|library"
    r"|file|files|folder|structure|scope|charter|schedule|certificate|secret|app|application|rights"
    r"|turnover|handbook|benefits|engagement|screening|pool|key|keys|tracking|interview|interviews"
    r"|name|names|names?|request|requests|based|loyalty|need|needs|settings|template|reference|root)\b)"
    r"[a-z]{3,}",
    re.IGNORECASE,
)
# What is somebody's alone: "jorge's cancer", "does priya have herpes", "divorce tanaka".
_ILLNESS = (
    r"(?:\w*cancer|tumou?r|leuka?emia|hiv|aids|herpes|syphilis|gonorrh\w*|chlamydia|std|sti|hpv"
    r"|hepatitis|diabetes|depression|dementia|alzheimer\w*|parkinson\w*|epilepsy|autism|adhd|bulimia"
    r"|anorexia|schizophrenia|psychosis|ptsd|anxiety|asthma|stroke|seizures?|miscarriage|abortion|chemo"
    r"|illness|disease|disorder|syndrome|infection|diagnosis|pregnancy|addiction|alcoholism|suicide"
    r"|surgery|therapy|medication|covid|flu|an?\s+affair)"
)
_MATTER = (
    rf"(?:{_ILLNESS}|salary|wage|wages|debts?|bankruptcy|loan|mortgage|divorce|affair|marriage|custody"
    r"|alimony|inheritance|arrest|resignation|dismissal|firing|sexuality|income|bonus|complaint"
    r"|lover|mistress)"
)
_NOBODYS = (
    r"(?!(?:today|tomorrow|one|someone|somebody|anyone|anybody|everyone|people|person|women|woman|men"
    r"|man|child|children|kid|kids|baby|dog|cat|world|country|company|it|what|that|there|here|who"
    r"|alzheimer|parkinson|crohn|down|huntington|hodgkin|hashimoto|tourette|asperger|addison|cushing"
    r"|graves|raynaud|marfan|turner|kawasaki|lou|bell|wilson|let)['’]s)"
)
_ONES_OWN = re.compile(
    rf"\b{_NOBODYS}[a-z]+(?:['’]s|s['’])\s+(?:[\w-]+\s+){{0,2}}{_MATTER}\b"
    rf"|\b(?:does|did|has|had|is|was|will|could|might)\s+"
    r"(?!(?:it|anyone|anybody|someone|somebody|everyone|everybody|one|there|this|that|a|an|the|having)\b)"
    rf"[a-z]+\s+(?:[a-z]+\s+)?(?:have|had|has|got|get|getting|having|catch|caught|suffer\w*|die\w*)\b"
    rf"[^.?!]{{0,20}}\b{_ILLNESS}\b"
    r"|\b(?:divorce|divorcing|sue|suing|evict|evicting|marry|marrying|blackmail|stalk|invoice|dismiss)\s+"
    r"(?!(?:a|an|the|someone|somebody|anyone|one|people|without|in|for|with|after|before|from|and|or"
    r"|if|is|when|by|over|court|papers|process|law|laws|lawyer|rate|rates|template|number|your|their"
    r"|each|another|not|for|as|because|factoring|that|this|how|why|what|records)\b)[a-z]{3,}",
    re.IGNORECASE,
)
_ANYBODY = re.compile(
    r"\Ahow\s+(?:do|can|could|should|would)\s+i\s+(?!know|tell|look)", re.IGNORECASE
)
"""This "I" is anybody who wants to do it."""
# Who is asked about by name, in small letters: "who is john smith from accounting".
_WHO = re.compile(
    r"\A(?:do\s+you\s+know\s+)?"
    r"(?P<asked>who(?:'s|’s|s|\s+(?:is|was|are|were|does|did|has|will|should|can|could))"
    r"|whose\s+\w+\s+(?:is|was|are|were)"
    r"|(?:what|where|how\s+old|when|why)\s+(?:is|was|does|did))\s+"
    r"(?P<name>[a-z]+(?:\s+[a-z]+)?)",
    re.IGNORECASE,
)
_WHO_IS = re.compile(
    r"\b(?P<asked>who)\s+(?P<name>[a-z]+(?:\s+[a-z]+)?)\s+(?:is|was)\s*[?.!]*\Z", re.IGNORECASE
)
# What only a person is or has. "Is daria pregnant" has a name that no list knows.
_STATES = (
    "pregnant|divorced|divorcing|engaged|fired|hired|promoted|arrested|jailed|cheating|gay|lesbian"
    "|bisexual|trans|drunk|addicted|alcoholic|depressed|suicidal|widowed|adopted|bankrupt|infertile"
    "|retiring|resigning|quitting|married|dating|sick|ill|dying|autistic|bipolar"
)
_STATE = re.compile(
    rf"\A(?:is|was|are|were|will|did|does|has|could|should|why\s+(?:is|was|did|does)|when\s+(?:is|did|does))"
    rf"\s+(?!(?:it|a|an|the|there|this|that|being|getting)\b)\w+(?:\s+\w+){{0,2}}?\s+"
    rf"(?:get|got|be|been|being|getting|become|still|really)?\s*(?:{_STATES})\b",
    re.IGNORECASE,
)
# Where people work together: "from accounting", "in hr".
_AT_WORK = re.compile(
    r"\b(?:from|in|at|of)\s+(?:the\s+)?(?:accounting|hr|human\s+resources|marketing|sales|finance"
    r"|procurement|payroll|legal|engineering|support|reception|management|work|school|church"
    r"|(?:\w+\s+)?(?:department|dept|team|office|class|village|neighborhood|neighbourhood))\b",
    re.IGNORECASE,
)
_PERSONS = listed("""
    i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves
    he she him her his hers himself herself he's she's im ive
    patient husband wife girlfriend boyfriend fiance son daughter mom mum dad boss landlord
    neighbor neighbour colleague coworker roommate mr mrs ms dr dear called named
    girlfriends boyfriends wives husbands bosses uncle aunt auntie nephew niece cousin grandma
    grandpa grandmother grandfather grandson granddaughter stepson stepdaughter stepfather
    stepmother fiancee ex exes mommy daddy mama papa sis bro sibling siblings
    brother sister teammate coworkers colleagues supervisor landlady tenant flatmate housemate
    buddy bestie crush spouse inlaws babysitter nanny intern theirs
    he'll she'll he'd she'd y'all nickname surname birthday
    passport ssn iban
    password passwords passphrase passcode pin pw ssn username userid login
    anna peter john maria sarah lisa tom karl hans james robert michael david william thomas mary
    linda susan karen emma laura julia paul daniel kevin brian george edward jason jennifer
    mohammed muhammad ahmed ali fatima wei ming jose carlos luis ana ivan olga anne
    smith jones johnson williams davis garcia rodriguez martinez hernandez lopez gonzalez wilson
    anderson harris clarke lewis robinson nguyen patel singh khan kumar sharma
    mueller schmidt schneider fischer meyer weber wagner schulz hoffmann rossi ivanov
    elizabeth jessica ashley amanda melissa deborah stephanie rebecca cynthia kathleen amy angela
    shirley brenda pamela nicole samantha katherine christine rachel carolyn janet heather diane
    julie joyce kelly lauren joan evelyn megan andrea cheryl hannah jacqueline martha gloria
    teresa ann sara madison kathryn janice julian abigail judy sophia denise
    marilyn danielle beverly isabella theresa diana natalie brittany kayla alexis lori emily emma
    olivia charlotte mia ella chloe lucy katie kate nina lena petra sabine ursula monika ingrid heidi
    joseph charles christopher matthew anthony donald steven andrew kenneth joshua ronald timothy
    jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin brandon benjamin samuel
    gregory alexander patrick dennis jerry tyler aaron adam nathan henry zachary douglas
    kyle noah ethan jeremy walter keith roger terry sean gerald carl harold
    dylan arthur jesse bryan bruce gabriel joe alan juan albert willie elijah
    wayne randy vincent roy ralph bobby russell bradley philip eugene tim jim jimmy tommy johnny
    mike dave steve bob rob dan ben sam tony andy greg jeff josh matt chris alex alexa felix jan
    stefan markus klaus dieter wolfgang pierre jean michel luca marco giulia sofia pedro
    miguel antonio francisco fernando rafael omar hassan hussein ibrahim mustafa mehmet aisha
    priya raj rahul amit sanjay hiroshi yuki kenji xiaoming feng
""")
_CHINESE_PERSONS = re.compile(
    "[我咱俺她他]|本人|本公司|敝|同事|同学|朋友|妹|姐|哥|弟[弟妹]|叫|名叫|患者|病人|老师|先生|女士|小姐|老板|领导"
    "|邻居|房东|客户|男友|女友|老公|老婆|爱人|丈夫|妻子|儿子|女儿|舅|叔|姑|姨|室友|员工|师傅|医生说"
    "|闺女|孩子(?:他|她)|孩他|婆婆|岳[父母]|丈母娘|丈人|儿媳|女婿|[表堂][哥姐弟妹]|侄|外甥|爷爷|奶奶|外公|外婆"
    "|前任|前夫|前妻|隔壁老|领养的|继[父母]|养[父母]"
    "|密码|口令|账号|帐号|微信号|QQ号|车牌|身份证|电话|手机号|住址|住在|卡号|身高|体重"
)
_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余杜叶程苏魏吕丁任沈姚卢"
    "姜崔钟谭陆汪范廖石贾韦夏付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_COMPOUND_SURNAMES = "欧阳|司马|上官|诸葛|夏侯|皇甫|尉迟|公孙|慕容|令狐|东方|独孤|南宫|端木|宇文|长孙|轩辕|司徒|司空|百里|东郭|西门"
_BEFORE_NAME = r"(?:^|[，。？！、：；,.?!:;\s和与跟是给把被让叫帮替对向问找])"
_CHINESE_NAME = re.compile(
    rf"{_BEFORE_NAME}(?:{_COMPOUND_SURNAMES}|[{_SURNAMES}])[\u4e00-\u9fff]{{1,2}}"
    "(?=的|得|患|住|欠|偷|离婚|结婚|出轨|怀孕|是不是|今年|生病|死|吸毒|该|能不能|会不会|在|有没有|喜欢|爱|打|是谁|为什么|怎么|抑郁|癌|病了|住院|自杀|赌|被开除|被抓|被辞|坐牢|借钱|破产|失业|辞职)"
    rf"|[小老阿][{_SURNAMES}]"
    # 阿强欠钱, and not 阿里, 阿根廷, 阿司匹林
    rf"|{_BEFORE_NAME}阿(?![里拉根富尔司莫姆基联胶片波兹米甘凡伏斯迪奇提塔布萨房嚏猫])[\u4e00-\u9fff]{{1,2}}?"
    "(?:的|得|患|住|欠|偷|离婚|结婚|出轨|怀孕|是|今年|病|死|吸毒|该|能|会|在|有|喜欢|爱|打|为什么|怎么|借|赌|被|不|没)"
)

# What a capital may stand for. Nobody who isn't publicly known is in it, and no given name alone.
_KNOWN = CASELESS | listed("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december christmas easter
    docker k8s django regex google python ubuntu ai js api ip tls paris vienna prague dublin athens sydney april june
    french german spanish italian portuguese japanese russian english european american british
    canadian australian indian african asian norwegian
    java rust ruby swift kotlin scala haskell perl lua dart elixir go c r fortran cobol matlab
    powershell excel word powerpoint outlook office windows mac android ios chrome firefox safari edge
    photoshop illustrator git mercurial jenkins terraform ansible prometheus grafana kafka
    spark hadoop pandas matplotlib scipy flask fastapi spring hibernate react angular vue svelte
    node next.js webpack vite rails laravel wordpress jquery bootstrap tailwind unity unreal blender
    bluetooth ethernet unicode ascii utf rest graphql grpc oauth jwt smtp imap ftp sftp nat lan wan
    ram rom led lcd ide sdk cli gui orm crud mvc oop llm nlp ocr rpc uuid md5 sha aes rsa cors xss
    csrf dom cdn bios uefi raid nas xhtml svg png jpg jpeg gif webp mp wav latex markdown
    nato eu un us usa uk uae ussr who fbi cia nba fifa imf wto
    japan apis china taiwan korea vietnam thailand indonesia malaysia singapore philippines pakistan
    bangladesh iran iraq israel turkey egypt nigeria kenya ethiopia morocco algeria argentina chile
    peru colombia venezuela cuba iceland norway sweden finland denmark netherlands belgium
    switzerland austria poland hungary romania bulgaria greece ukraine belarus estonia latvia
    lithuania croatia serbia slovenia slovakia albania portugal zealand antarctica greenland
    united states kingdom nations america republic south north east west new york
    rome milan venice vienna prague budapest warsaw moscow athens istanbul cairo beijing shanghai
    hong kong seoul delhi mumbai bangkok sydney melbourne toronto vancouver chicago boston
    california texas florida
    earth moon sun mars venus mercury jupiter saturn uranus neptune pluto milky way
    everest himalayas alps andes amazon nile danube rhine pacific atlantic arctic indian ocean
    mount lake sea river great wall pyramid pyramids
    chinese korean arabic hindi latin greek dutch swedish norwegian danish finnish polish turkish
    roman egyptian viking vikings
    world war ii renaissance olympics bible koran quran hamlet macbeth shakespeare einstein newton
    darwin mozart beethoven napoleon caesar pythagorean fibonacci fourier euler gauss celsius
    fahrenheit kelvin big bang
    apple microsoft amazon tesla nvidia intel amd samsung sony openai chatgpt twitter instagram
    whatsapp linkedin netflix spotify uber wechat tiktok
""")


def fit_to_share(text: str) -> bool:
    """Whether what was answered to this question may be given to other people.

    True only for one line of English or Chinese in which no person is spoken of in a way that can
    be told by its words: no "I" or "my" but in "how do I", no "he" or "her", no word for a
    relation ("boss", "wife", 老板), no capital that isn't known to be something public, no common
    given name or surname in any letters, nobody who is asked about as people are ("who is daria
    kowalski", "is daria pregnant", "does priya have herpes", "jorge's cancer", "from accounting",
    阿强欠钱), no number, e-mail, address or id, and nothing that one firm alone has (a host, a
    machine, an order, "customer smithson").

    What words can't tell, and this doesn't: a rare name in small letters where nothing around it
    says that it is one ("how do you deal with daria"), that few are in a plight that anybody may be
    in ("how do I hide an affair", 怎么隐瞒出轨: the answer is anybody's, that somebody asked is told
    by its being there), words that mean something to one firm only ("hal", "bluebird"), a name that is a word as well ("what does
    mark want", "may"), a public name that is also a private person's (Newton), a firm's or a
    project's inner name in small letters, and a Chinese name outside of the plain patterns.
    A deployment where that matters doesn't share.

    Thread-safety: may be called from any thread.
    """
    text = _ANYBODY.sub("how to ", text.strip())
    if not text or len(text) > MAX_CHARS or _OTHER_SCRIPT.search(text):
        return False
    if _PRIVATE_SIGNS.search(text):
        return False
    words = _WORD.findall(text)
    if _INTERNAL.search(text) or _DEALT_WITH.search(text) or _ONES_OWN.search(text):
        return False
    if _STATE.search(text) or _AT_WORK.search(text) or _asks_who(text):
        return False
    if _HAN.search(text):
        if _CHINESE_PERSONS.search(text) or _CHINESE_NAME.search(text):
            return False
        return not _speaks_of_somebody(words, starts=frozenset())
    lowered = {word.lower().partition("'")[0] for word in words}
    if lowered & (FOREIGN | _FOREIGN_HERE) or not lowered & (ENGLISH - _ALSO_FOREIGN):
        return False
    first = re.search(r"\w", text)
    starts = {first.start() if first else 0} | {
        found.end() - 1 for found in re.finditer(r"[.?!]\s+[A-Z]", text)
    }
    return not _speaks_of_somebody(
        words,
        starts=frozenset(
            number for number, found in enumerate(_WORD.finditer(text)) if found.start() in starts
        ),
    )


def _asks_who(text: str) -> bool:
    """Whether it asks who somebody is, or what they do, by a name that isn't known to be public."""
    found = _WHO.match(text) or _WHO_IS.search(text)
    if found is None:
        return False
    names = found["name"].lower().split()
    if names[0] in _NO_NAME or all(name in _KNOWN for name in names):
        return False
    asks_who = re.match(r"who(?!\s+(?:can|could|should|will)\b)", found["asked"], re.IGNORECASE)
    return bool(asks_who or _DOES.search(text, found.start("name")))


_NO_NAME = listed("the a an this that these those it there to in on of and or not most more first")
_DOES = re.compile(
    r"\b(?:salary|live|lives|living|born|married|wife|husband|phone|email|address|mad|angry|sad|upset"
    r"|crying|late|leave|leaving|quit|lying|lie|lied|earn|earns|hate|hates|cheat|cheated)\b",
    re.IGNORECASE,
)


def _speaks_of_somebody(words: Iterable[str], starts: frozenset[int]) -> bool:
    """Whether one of the words is a person's, or a capital that isn't known to be none."""
    for place, written in enumerate(words):
        word = written.replace("’", "'")
        lower = word.lower()
        bare = lower.removesuffix("'s")
        if word == "US" or bare in _KNOWN:
            continue
        if lower in _PERSONS or bare in _PERSONS:
            return True
        if word != lower and not (place in starts and (lower in STARTING or bare in STARTING)):
            return True
    return False


# Words that are English too, and words that only other languages have.
_ALSO_FOREIGN = listed("was i a an do my not me it to of have has the")
_FOREIGN_HERE = listed(
    "kann wer wo mit im von dem den macht gibt auf du en y se di da je tu il elle nous vous mi"
    " sich aus zum zur bei wird sind meinem mein puedo hacer tengo cual quien donde faire sont"
)
