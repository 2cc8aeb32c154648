"""The closed lists that the Chinese rule goes by; what stands in none is compared as it is."""

from __future__ import annotations

import re

from llm.same_question_en_words import listed


def _any(words: str) -> str:
    """An alternative of these words, the longest first."""
    return "|".join(map(re.escape, sorted(words.split(), key=len, reverse=True)))


GREETING = re.compile(
    rf"^(?:{_any('你好 您好 大家好 嗨 哈喽 早上好 下午好 晚上好 打扰一下 打扰了 冒昧打扰 冒昧打扰一下 你好呀 您好呀 你好啊 您好啊 不好意思 不好意思打扰一下 抱歉打扰 各位好 大佬们好 大佬好 老师好 老师们好 同学们好 朋友们好 我一直很好奇 一直很好奇 我很好奇 小白一个 新手一个 新手提问 小白提问')})(?:[,，!！.。~:：]\s*|\s+)"
)
ASKING = re.compile(
    rf"""^(?:{
        _any('''
    请问 请问一下 请问下 想问 想问下 请教 请教下 我想咨询一下 想咨询一下 我想咨询 咨询一下 问一下哈 问下 弱弱问一句 顺便问一下 想问一下 我想问一下 我想问 想请问 我想请问 请教一下 想请教一下 我想请教 我想请教一下
    我想知道 想知道 我想了解 我想了解一下 想了解一下 问一下 问个问题 有个问题 我有个问题 有个问题想请教
    有个问题想问 我有一个问题 一个小问题 小问题 麻烦问一下 麻烦请问 请你告诉我 请告诉我 请您告诉我 告诉我
    能告诉我 能不能告诉我 可以告诉我 你能告诉我 您能告诉我 你能不能告诉我 可不可以告诉我 可否告诉我
    你知道 您知道 你知不知道 有没有人知道 谁能告诉我 请解释一下 请解释 解释一下
    想向您请教一个问题 想向你请教一个问题 我想向您请教一个问题 我想请教一个问题 想请教一个问题 想问一个问题
    可以麻烦你解释一下 可以麻烦您解释一下 能麻烦你解释一下 能麻烦您解释一下 麻烦解释一下 麻烦你解释一下
    可以麻烦你告诉我 可以麻烦您告诉我 能麻烦你告诉我 能麻烦您告诉我 麻烦你告诉我 麻烦您告诉我 麻烦告诉我
    能解释一下 能不能解释一下 可以解释一下 请说明 请说明一下 求问 求助 求教
    ''')
    })[,，:：\s]*"""
)
WISHING = re.compile(
    rf"""^(?:{
        _any('''
    请 请你 请您 请帮我 麻烦 帮我 请帮忙 帮忙 劳驾 劳驾您 麻烦你 麻烦您 麻烦帮我 能不能帮我 能不能给我 可以帮我 能帮我
    你能帮我 你能不能帮我 你可以帮我 可不可以帮我 可否帮我 能否帮我
    ''')
    })(?={
        _any('''
    写一 写个 写出 写成 列出 列举 介绍 说明 解释 翻译 比较 总结 推荐 给出 计算 描述 概括 说说 讲讲 举
    把''')
    })"""
)
# "能不能计算圆周率" asks whether it can be done; with these somebody wishes.
MODAL_WISHING = re.compile(
    rf"^(?:{_any('能不能 你能不能 可不可以 你可不可以 可否 能否 你能 你可以')})"
    rf"(?={_any('介绍一下 说明一下 解释一下 总结一下 说说 讲讲 列出 列举 推荐一 推荐几 推荐些 写一首 写一篇 写一封 写一段 给我讲个 给我讲一个 给我推荐')})"
)
# "你能推荐一本小说吗": with an amount of what is wished for, the 吗 is the wish's.
WISHED_AMOUNT = re.compile(
    rf"^(?:{_any('你能 你可以 您能 您可以 能 可以')})"
    rf"((?:{_any('推荐一 推荐几 推荐些 写一首 写一篇 写一段 讲个 讲一个 给我讲个 给我讲一个 出一道')})[^,，。；;吗]+)吗(?=[?？]?$)"
)
FOR_ME = re.compile("^(?:请给我|给我|麻烦给我)(?=推荐[一二两三四五六七八九十几]|列出|列举)")
THANKS = re.compile(
    rf"(?<=[\w)\"”'」』》`])(?:[,，.。?？]\s*|\s+)(?:{_any('谢谢 谢谢你 谢谢您 谢谢了 谢谢啦 多谢 多谢了 感谢 万分感谢 非常感谢 先谢谢了 拜托 拜托了')})[!！.。~]?$"
)

QUESTION = re.compile(
    _any(
        "什么 啥 谁 哪 怎么 怎样 如何 咋 为何 几 多少 多久 多长 多大 多高 多远 多重 是否 能否 何时 何处 "
        "吗 能不能 是不是 会不会 有没有 可不可以 要不要"
    )
)

HOW = listed("怎么 怎样 如何 咋")
PRONOUNS = listed("我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 大家 这 那 这个 那个")
NOT_WHAT = PRONOUNS | listed(
    "今天 明天 昨天 现在 刚才 以后 以前 今年 明年 去年 上 下 上个 下个 上一个 下一个 个 谁 说 吃 做 想 要 有 "
    "这里 那里 这些 那些 自己 别人"
)
# Beside them a yes-or-no word may belong to a clause.
UNASKED = listed(
    "如果 要是 不管 无论 不论 取决于 影响 取决 关系到 关心 在乎 在意 看看 问问 试试 试 了解 清楚"
)
PEOPLE = tuple(
    listed(
        "老师 医生 妈妈 爸爸 妈 爸 爷爷 奶奶 哥 姐 弟 妹 儿子 女儿 孩子 老公 老婆 丈夫 妻子 朋友 同学 同事 老板 领导 "
        "律师 警察 客服 家长 父母 学生 专家 邻居 他 她 它 大家 别人 人家 男友 女友 男朋友 女朋友 家人 亲戚 护士 店员 "
        "经理 房东 司机 师傅 们 的"
    )
)
NOT_HOW = listed("不 没 没有 还 又 就 会 这么 那么 了 回事 办 能 可能 老 总 总是 一直 都 的")
CLAUSE_VERBS = listed(
    "说 讲 知道 觉得 认为 以为 想 问 告诉 教 让 叫 使 令 看 看到 看见 听 听说 听见 发现 相信 希望 决定 学 学会 "
    "学习 研究 解释 证明 理解 明白 懂 懂得 忘 忘记 记得 喜欢 爱 怕 害怕 帮 帮助 请 求 派 劝 逼 允许 禁止 防止 阻止 "
    "建议 要求 避免 打算 准备 继续 讨厌 担心 考虑 讨论 描述 判断 预测 选择 确定 检查 表示 指出 承认 否认 宣布 强调 "
    "怀疑 猜 猜测 感到 感觉 意识到 导致 引起 教会 同意 反对 拒绝 值得 需要 有人 没人 写 写道 回答 声称 去 来"
)
WHY = listed("为什么 为何 为啥")
WHAT = frozenset(("什么", "啥"))
QUESTION_WORDS = listed(
    "什么 谁 哪里 哪个 哪些 怎么 怎样 如何 为什么 多少 几 多久 什么时候 何时 怎么样"
)

PARTICLES = listed("呢 啊 呀 哦 嘛 哈 呐")

ABOUT_WORDS = re.compile(
    "(?<!不好)意思|(?<!电)话|"
    + _any(
        "字 词 读音 拼音 怎么读 怎么念 怎么写 如何写 笔画 部首 偏旁 成语 谚语 怎么说 如何说 叫 称呼 含义 "
        "定义 翻译 押韵 对联 发音 英语 英文 日语 日文 法语 法文 德语 德文 韩语 俄语 西语 西班牙语 意大利语 粤语 "
        "中文 汉语 外语 方言 回复 回答 回应 怎么回 润色 改写 造句 句 说成 拼写 语气 礼貌 "
        "长度 字符 编码 拼 正式 简称 全称 缩写 名称"
    )
)

POINTERS = re.compile("[这那]")

YES_NO = {
    "能不能": "能",
    "可不可以": "可以",
    "是不是": "是",
    "有没有": "有",
    "会不会": "会",
    "要不要": "要",
    "能否": "能",
    "可否": "可以",
}
# Question words only: 大夫 was an official, 修真 repairs nothing, 帐 is a tent.
SYNONYMS = {
    "啥": "什么",
    "哪儿": "哪里",
    "何时": "什么时候",
    "啥时候": "什么时候",
    "几时": "什么时候",
    "多长时间": "多久",
}
DIFFERENCES = tuple(
    tuple(ending.split())
    for ending in (
        "有 什么 区别",
        "有 什么 不同",
        "有 什么 不 一样",
        "的 区别 是 什么",
        "之间 有 什么 区别",
        "之间 的 区别 是 什么",
    )
)
# Units of one character are names as often (五代, 三门, 两点, 一块, 三元).
UNITS = listed("公里 千米 厘米 毫米 公斤 千克 毫升 小时 分钟 秒钟 英寸 英尺 英里 美元 欧元 平方米")
DIGITS = dict(zip("一二三四五六七八九", range(1, 10), strict=True)) | {"两": 2}
# Among Chinese words they are no snakes and no trades.
LATIN_NAMES = listed("Python Docker Git")
# Done on purpose to something: 怎么迟到, 怎么损坏 and 怎么堵车 may ask why.
DEEDS = listed(
    "安装 卸载 下载 配置 设置 使用 用 学 学习 学好 做 煮 炒 炖 洗 清洗 清理 清除 去除 删除 恢复 备份 修改 打开 "
    "查看 连接 导出 导入 合并 反转 遍历 排序 计算 提高 练 种 养 选 申请 办理 注销 取消 修 保存 转换 画 拍 "
    "治疗 预防 制作 证明 缓解 预约 报名 注册 编写 部署 调试 腌 烤 蒸 领取 购买 计算"
)
