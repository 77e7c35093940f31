"""Words that say nothing about what a question is about: dropped from questions, kept in passages.

The Chinese ones are pairs of characters, because that is what the tokeniser makes of Chinese.
"""

STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have how if in into is it its me my no not of on or
    our should so such that the their then there these they this to us was we were what when where which who whom whose why will
    with would you your
    什么 怎么 如何 为何 为什 哪些 哪个 哪里 多少 是否 可以 我们 你们 他们 这个 那个 请问 一个 是什 么是 怎样 谁是 吗
    """.split()
)
