"""Which questions are never cached and never answered from the cache.

Four kinds, each by a fixed name: what is about `now` (a day later its answer is wrong), what asks
for something `creative` (whoever asks again wants another), what is `personal` (its answer may be
meant for one person only), and what is too `long`. Words decide, in English and Chinese; a phrase
in which such a word means something else ("current directory", 目前 never) is taken out first. On
doubt a question counts as one of them: refusing costs one answer's time. Names aren't looked at here:
what may be shared among people is `fit_to_share`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from llm.shareable import fit_to_share as fit_to_share
from llm.types import Message

MAX_CHARS = 2000
"""Longer texts are mostly pasted: somebody's own file, letter or log."""
MAX_LINES = 40
_REMEMBERED = 512
"""Texts, of `MAX_CHARS` at most: with each question all earlier ones of its conversation come again."""


def why_not(messages: Sequence[Message]) -> str:
    """Why the last question may not be cached or served; an empty string where it may.

    All messages of a person are looked at, for an earlier "my name is …" shapes what follows;
    a system prompt is the installation's own and isn't.

    Returns:
        `empty`, `long`, `personal`, `creative`, `now`, or nothing.

    Thread-safety: may be called from any thread.
    """
    asked = [message.content for message in messages if message.role == "user"]
    if not asked or not asked[-1].strip():
        return "empty"
    for earlier in asked[:-1]:
        if reason := _reason(earlier):
            return reason
    return _reason(asked[-1])


def _reason(text: str) -> str:
    if len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES:
        return "long"
    return _by_words(text)


@lru_cache(_REMEMBERED)
def _by_words(text: str) -> str:
    said = _HARMLESS.sub(" … ", text.translate(_STRAIGHT))
    for reason, pattern in (("personal", _PERSONAL), ("creative", _CREATIVE), ("now", _NOW)):
        if pattern.search(said):
            return reason
    return ""


_STRAIGHT = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'} | {
    code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)
}


def _words(english: str, chinese: str = "") -> str:
    """An alternative: English phrases by whole words (any blanks between), Chinese anywhere."""
    phrases = [line.strip() for line in english.replace("|", "\n").splitlines() if line.strip()]
    latin = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in phrases)
    parts = [rf"(?<![\w-])(?:{latin})(?![\w-])"] if latin else []
    return "|".join([*parts, *map(re.escape, chinese.split())])


_EVERYBODY_HAS = (
    "(?:(?:笔记本)?电脑|计算机|笔记本|(?:苹果|安卓)?手机|平板|路由器|打印机|浏览器|键盘|鼠标|屏幕|显示器|硬盘|无线网"
    "|wifi|终端|mac|iphone|ipad|pc)(?![号密的里上中卡帐账a-z])"
)

# Terms in which a word of the lists below means something else.
_HARMLESS = re.compile(
    _words(
        """
        world war i | current directory | current working directory | current folder | current branch
        current line | current user | current shell | current process | current element
        current node | current thread | current function | current row | current cell
        current page | current url | electric current | electrical current | alternating current
        direct current | ocean current | eddy current | current density
        random forest | random forests | random access | random access memory | random variable
        random variables | random seed | random walk | random number generator
        random module | brownian motion | new line | newline | new york | new zealand | new delhi
        new testament | new tab | new file | new folder | new branch | new column | new row
        news feed | news feeds | now() | datetime.now | getdate() | current_timestamp
        real-time operating system | real time operating system | time complexity | run time
        price elasticity | price index | weather front | weather balloon | weathering
        live stream | todo | here and now | my.cnf | mysql | my_list | my_dict
        random.random | stock exchange | capital stock
        our solar system | our galaxy | our sun | our planet | network traffic | docker compose
        available memory | available disk space | available space | still life | plot of
        parts of speech | part of speech | figure of speech | speech recognition
        story point | story points | user story | user stories
        """,
        "数字签名 函数签名 方法签名 签名验证 签名算法 我们为什么 我们如何 我们怎么 故事点 用户故事 当前目录 当前路径 当前分支 当前文件夹 当前行 当前用户 当前工作目录 当前进程 当前线程 当前页面 "
        "随机森林 随机变量 随机种子 随机存取 随机过程 随机梯度 交流电 新闻学 天气预报的原理 "
        "价格弹性 实时操作系统 实时系统",
    )
    # How something random is made is told the same way every time.
    + r"|how\s+(?:do\s+i|can\s+i|do\s+you|do\s+we|to)\s+(?:[\w-]+\s+){1,5}random\s+"
    r"(?:number|integer|string|element|item|sample|row|float|color|password)s?(?!\w)"
    r"|(?:怎么|如何|怎样)[^,，。.?？]{0,12}随机(?:数|字符串|整数|密码|抽样)"
    # Everybody has one, and the way is the same. One rule for both languages.
     + r"|how\s+(?:do\s+i|can\s+i|to)\s+(?:[\w-]+\s+){1,4}my\s+(?:computer|laptop|phone|pc|mac"
    r"|iphone|ipad|router|printer|browser|keyboard|mouse|screen|monitor|hard\s+drive|wifi|terminal)"
    r"(?![\w'’-])"
    rf"|我?(?:怎么|如何|怎样)[^,，。.?？我]{{1,12}}我的{_EVERYBODY_HAS}"
    rf"|我的{_EVERYBODY_HAS}(?:该|要|应该)?(?:怎么|如何|怎样)(?![了样这那会还老总又突啦办])",
    re.IGNORECASE,
)

_OFFICE = "(?:总统|总理|首相|主席|国王|女王|教皇|市长|省长|部长|首富|冠军|董事长|CEO|总裁)"
_YEAR = r"(?<![\w.-])20(?:2[4-9]|[3-9]\d)(?![\w.-])|20(?:2[4-9]|[3-9]\d)\s*年"

_NOW = re.compile(
    "|".join(
        (
            _words(
                """
                today | today's | tonight | tomorrow | tomorrow's | yesterday | yesterday's | now
                right now | nowadays | these days | currently | current | at the moment
                at present | presently | as of | up to date | up-to-date | latest | newest | recent
                recently | lately | so far | this year | this year's | this month | this week
                this weekend | this morning | this afternoon | this evening | this season
                this summer | this winter | this spring | this autumn | this fall | this quarter
                this time of year | this century | this decade
                last year | last month | last week | last night | last weekend
                next year | next month | next week | next weekend | upcoming | just now
                what time is it | what time it is | what day is it | what day is today
                what's the time | what is the time | what's the date | what is the date
                what year is it | date today | time is it
                weather | forecast | temperature outside | is it raining | will it rain
                will it snow | news | headline | headlines | breaking
                price | prices | priced | pricing | cost of | how much does | how much is a
                how much are | how much do | exchange rate | exchange rates | stock price
                stock market | share price | stocks | bitcoin | btc | ethereum | crypto
                interest rate | interest rates | mortgage rate | inflation | unemployment rate
                minimum wage | salary | live score | score of | who won | who is winning
                standings | election | elections | poll | polls | traffic
                still | yet | anymore | any more | any longer | open now | opening hours
                is down | outage | available | in stock | release date | coming out | come out
                came out | new version | newer version | new release | new features | what's new
                what is new | trending | trends | trend | most popular | state of the art
                state-of-the-art | sota | real-time | real time | realtime
                live score | live scores | live results | livestream | live stream | live now
                who is the president | who is the prime minister | who is the ceo
                who is the king | who is the queen | who is the chancellor | who is the mayor
                who is the pope | the president of | the prime minister of | the ceo of
                prime minister | ceo | president of the | richest | wealthiest | world record
                how old is | population | gdp | deadline | countdown | how long until
                how many days until | how long ago | ago | since when | timetable
                train schedule | bus schedule | the schedule | schedule for | tv schedule
                flight | flights | covid | covid-19 | war in | visa requirements
                """,
                "今天 今日 今晚 今早 今夜 今年 今夏 今冬 今后 现在 目前 当前 眼下 如今 当今 当下 此刻 这会儿 最近 近期 近日 "
                "近来 近年 近几年 最新 新出 新款 新版 刚刚 刚才 刚出 本周 这周 这个周末 本月 这个月 本年度 本季度 这个季节 "
                "昨天 昨日 昨晚 前天 明天 明日 明晚 后天 明年 去年 前年 上周 上个月 下周 下个月 下周末 周末 "
                "几点了 几点钟了 几号了 星期几 周几 礼拜几 天气 气温 下雨吗 会下雨 下雪吗 预报 新闻 头条 热搜 热点 "
                "时事 价格 多少钱 价钱 房价 油价 金价 股价 股票 股市 大盘 基金净值 汇率 利率 比特币 行情 报价 物价 "
                "工资 薪资 月薪 年薪 最低工资 比分 赛程 战况 谁赢 选举 大选 路况 堵车 航班 车次 时刻表 限行 疫情 "
                "还有票 余票 开门吗 营业时间 上映 发布 什么时候发布 发布了 发布会 发售 开售 更新了 更新内容 出新 实时 直播 流行 排行 排名 现任 总统是谁 首相是谁 总理是谁 "
                "主席是谁 人口 首富 倒计时 还有几天 还有多少天 多久以前 截止 放假 调休 即将 至今 迄今 截至",
            ),
            _YEAR,
            # Who holds an office or a record, whether something is up, and what the clock says.
            r"(?<!\w)who(?:'s|\s+is|\s+are)\s[^.?!]{0,80}?(?:president|minister|chancellor|king|queen|pope"
            r"|chief\s+executive|chairman|champions?|mayor|governor|head\s+of|leader|coach|owner)(?!\w)",
            r"(?<!\w)who\s+(?:leads|governs|rules|runs|owns|holds|heads|plays|coaches|chairs)(?!\w)",
            r"(?<!\w)is\s[^.?!]{0,80}\s(?:down|up|alive|dead|open|closed|online|offline)\s*(?:[?.!]|\Z)",
            r"(?<!\w)(?:is|are)\s[^.?!]{0,80}\s(?:open|closed)\s+(?:on|at|until|till|in)(?!\w)",
            r"(?<!\w)(?:what|which)\s+(?:day|date|month|year|time|season|week)\s+(?:is\s+it|are\s+we)",
            r"(?<!\w)what(?:'s|\s+is)\s+the\s+(?:day|date|month|year|time)\s*(?:[?.!]|\Z)",
            r"(?<!\w)how\s+(?:hot|cold|warm|humid|windy|dark)\s+is\s+it(?!\w)",
            r"(?<!\w)is\s+it\s+(?:dark|sunny|raining|snowing|cold|hot|warm|windy|cloudy)(?!\w)",
            r"(?<!\w)when(?:'s|\s+is|\s+are|\s+will)(?!\w)|(?<!\w)the\s+next(?!\w)|(?<!\w)tonite(?!\w)",
            r"(?<!\w)how\s+(?:many\s+(?:days|weeks|hours|months)|long)\s+(?:till|to|until)(?!\w)",
            r"(?<!\w)which\s+\w+\s+is\s+(?:stable|supported|best)|(?<!\w)trading\s+at(?!\w)",
            r"(?<!\w)how\s+many\s+people\s+live|(?<!\w)how\s+much\s+is\s+(?!\d|\w+\s+(?:plus|minus|times))",
            r"(?<!\w)what\s+does\s[^.?!]{0,80}\scost(?!\w)|(?<!\w)in\s+(?:dollars|euros|pounds|yen|usd|eur)(?!\w)",
            rf"谁是[^,。?]{{0,20}}{_OFFICE}|{_OFFICE}(?:是|叫)(?:谁|什么|啥|哪)",
            r"(?:挂|崩|宕机|死|去世|离世|倒闭)了[吗没]|还活着|宕机|几度|今儿|[冷热]吗|最贵|最便宜|最火|下一?[班场届次]",
            r"一(?:克|瓶|斤|吨|桶|箱|盎司|公斤)多少(?:钱|块|元)?\s*(?:[?？]|\Z)|是?哪天|几号|什么日子|几块",
            r"[离距][^,。?]{0,20}还有|[首末]班",
        )
    ),
    re.IGNORECASE,
)

_CREATIVE = re.compile(
    "|".join(
        (
            _words(
                """
                poem | poems | poetry | haiku | limerick | sonnet | ode | verse | lyrics | song
                rap | ballad | story | stories | tale | fairy tale | fairytale | novel | fiction
                fanfiction | plot twist | screenplay | dialogue | monologue | scene | joke | jokes | pun
                puns | riddle | riddles | roast | meme | slogan | slogans | tagline | taglines
                motto | caption | captions | pickup line | ice breaker | icebreaker | nickname
                nicknames | username | brainstorm | creative | imagine | pretend | role play
                roleplay | role-play | act as | you are a | invent | make up | made-up | come up with
                another | another one | one more | a different one | different one | again
                something else | anything else | what else
                more ideas | ideas for | some ideas | an idea | random | randomly | surprise
                something funny | something interesting | fun fact | fun facts | cheer me up
                entertain | bored | amuse | give me a name | names for | name for | name my
                suggest | suggestion | suggestions | recommend | recommendation | recommendations
                inspire | inspiration | quote about | quotes about | quote from | quotes from
                motivate | motivational | compliment
                a speech | speech for | a toast to | toast for | essay | blog post | cover letter | love letter | letter to
                birthday | wedding | greeting | congratulate | keep going
                rewrite | rephrase | paraphrase | reword | variation | variations | alternatives
                pick one | pick a | choose a | choose one | flip a coin | roll a | roll the dice
                toss a coin | guess | draw me | draw a picture | compose a | compose an | write me | write a short
                tell me something | what should i cook | what should i watch | what should i read
                what should i eat | what should i do | plan a | plan my | itinerary
                """,
                "写一首 写首 写诗 作诗 诗歌 一首诗 首诗 对联 歌词 写歌 编一个 编个 编一段 故事 小说 童话 剧本 剧情 台词 段子 笑话 "
                "讲个 讲一个 说个 冷笑话 谜语 脑筋急转弯 相声 文案 口号 标语 广告语 起名 取名 起个 取个 名字好听 网名 昵称 "
                "创意 创作 头脑风暴 想象 假装 扮演 模仿 随便 随机 再来 再给 再写 再说 再讲 再换 换一个 换个 换一种 "
                "另一个 另外一个 另写 别的 其他的 还有吗 还有呢 还有什么 惊喜 有趣 好玩 无聊 逗我 推荐 建议 灵感 "
                "点子 主意 祝福 祝词 祝贺 贺词 情书 情话 表白 演讲稿 发言稿 作文 读后感 观后感 日记 周记 检讨 求职信 "
                "朋友圈 签名 润色 改写 仿写 续写 扩写 缩写成 帮我写 给我写 帮我想 帮我编 猜一 抽签 抛硬币 掷骰子 选一个 "
                "安慰 鼓励我 夸我 骂我 吐槽 攻略 行程",
            ),
            r"(?<![\w-])(?:write|create|make|give|generate|tell)(?:\s+(?:me|us))?\s+(?:a|an|some|\w+)"
            r"(?:\s+\w+){0,2}?\s+(?:about|in the style of)(?![\w-])",
            r"\A\W*(?:continue|go on|more|next|继续|接着|然后呢)(?!\w)",
            r"写[一两三几]?[篇首封则份]",
            r"写[一两三几]?段(?!.{0,12}(?:代码|函数|脚本|程序|查询|SQL|正则))",
        )
    ),
    re.IGNORECASE,
)

_PERSONAL = re.compile(
    "|".join(
        (
            _words(
                """
                my | mine | myself | our | ours | ourselves | me and | i am | am i | i'm | im | i've
                i'll | i'd | we are | we're | we have | we've | we need | we want | we use | we live
                call me | i go by | about me | do you know me | who am i | remember me
                you said | you told | you mentioned | as you | earlier | previous answer | above
                following | below | attached | attachment | this file | this document | this code
                this text | this email | this letter | this article | this image | this picture
                this photo | this screenshot | this error | this function | this one | that one
                this message | this paragraph | these files | uploaded | pasted
                password | passwords is | passport number | social security number | ssn
                credit card number | account number | phone number is | address is | api key is
                who are you | your name | are you | do you | you feel | you think | you like
                your opinion | your favorite | your favourite
                """,
                "我的 我们的 咱们的 我叫 我是 我姓 我在 我家 我爸 我妈 我老婆 我老公 我儿子 我女儿 我孩子 我男朋友 我女朋友 我今 "
                "我想 我要 我有 我用 我把 我不 我觉得 我刚 我现 我买 我写 我给 我这 我这边 我们 咱们 我公司 我司 本人 俺 "
                "手机号 电话号码 身份证 银行卡 信用卡号 密码是 账号是 地址是 邮箱是 住址 护照号 学号 工号 社保号 "
                "你是谁 你叫什么 你觉得 你喜欢 你认为 你的 您的 你刚 你之前 你说 上面 以上 上文 下面 以下 下文 如下 附件 这个文件 "
                "这段 这篇 这张 这份 这封 这句 这首 这道题 该文 此文 前面 刚才说 记得我 认识我",
            ),
            # "I have …" tells of somebody, "do I have to …" asks.
            "".join(
                rf"(?<!\b{word} )"
                for word in ("do", "did", "can", "should", "could", "would", "must", "may", "will")
            )
            + r"(?<![\w-])i\s+(?:have|had|was|were|live|work|need|want|feel|think|got|get|bought|made"
            r"|wrote|did|tried|use|used|like|love|hate|lost|forgot|moved|started|keep|know|can't|cannot"
            r"|don't|run|own|study|teach|hit|see|saw|found)(?![\w-])",
            # Any other "I" but the one who asks how: "can I", "how should I". A statement tells of
            # somebody, and so does why something befalls him.
            "".join(
                rf"(?<!\b{word} )"
                for word in (
                    "do",
                    "should",
                    "can",
                    "could",
                    "would",
                    "must",
                    "may",
                    "shall",
                    "might",
                )
            )
            + r"(?<![\w.'+-])i(?![\w'.(\[+=<>-]| [=<>+*/%-])",
            r"(?<!\w)why\s+(?:do|did|can't|don't|should|would|must)\s+i(?!\w)",
            r"(?<!how )(?<!\w)(?:can|could|should|may|might|must|would|do)\s+i\s+(?:be|get|sue|divorce|marry"
            r"|die|tell|leave|quit|trust|love|hear|bleed|look|still|ever|really|deserve)(?!\w)",
            r"(?<!tell )(?<!give )(?<!show )(?<!help )(?<!teach )(?<!let )(?<!explain to )"
            r"(?<![\w-])me(?![\w-])",
            r"(?<![\w-])(?:patient|pregnant|diagnosed|biopsy)\b(?=[^.?!]{0,80}\b(?:presents|born|year\s+old"
            r"|years\s+old|male|female|named|called|was|i)\b)|(?<!\w)is\s[^.?!]{0,80}\spregnant(?!\w)",
            r"(?<!\w)patient\s+(?-i:[A-Z])|(?<!\w)dear\s+(?-i:[A-Z])|year\s+old\s+(?:man|woman|male|female)",
            r"\A\W*(?:translate|fix|summari[sz]e|correct|proofread|check|improve)(?:\s+this)?\s*:",
            r"(?<!\w)(?:pin|code|passphrase|passcode|pw|key)\b[^.?!]{0,80}\b(?:is|:)\s*\S{0,40}\d",
            r"(?<!\w)is\s+\S{0,40}\d\S{0,40}\s+(?:a\s+)?(?:safe|good|secure|strong|weak)(?!\w)|passphrase",
            r"(?<!\w)is\s+\S{1,40}\s+(?:a\s+)?(?:safe|good|secure|strong)\s+(?:pw|pin|passcode)(?!\w)",
            r"(?<!\w)how\s+(?:strong|secure)\s+is\s+\S{0,40}\d",
            r"(?<![帮给诉教请])我(?!(?:该|应该|要|可以|能)?(?:怎么|如何|怎样)(?!办))|咱|住在",
            r"(?:密码|口令|微信号|QQ号|车牌|账号|帐号)[^,，。]{0,6}[A-Za-z0-9]{4,}|身高\d|体重\d",
            # E-mail. One character before the sign will do; a run of them is looked through anew
            # from each of its characters, and Chinese has no blanks.
            r"[\w.+-]@[\w-]+\.\w",
            r"(?<![\d.,])\+?\d[\d\s().-]{7,}\d(?![\d.,])",  # phone, card, account, passport
            r"(?<!\w)[A-Za-z]*\d[\w-]{11,}",  # ids
            r"(?<![\w-])(?:sk|pk|ghp|gho|xox[abp]|AKIA|eyJ|Bearer|hf)[-_ ]?[\w-]{12,}",  # keys
            r"-----BEGIN |(?<!\w)[0-9a-fA-F]{16,}(?!\w)",
            r"https?://|www\.|(?<!\w)(?:[A-Za-z]:\\|~/|/(?:home|Users|mnt|var|srv)/)",
            r"\d{1,3}(?:\.\d{1,3}){3}",  # an address on a network
            r"```|^(?:>|\s{4,}\S|Traceback|diff --git|#include|import |from \w+ import )",
            r"(?<!\w)@\w+",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)
