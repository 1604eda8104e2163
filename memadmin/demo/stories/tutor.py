"""Two students of the tutor: a long vocabulary course, and an evening with fractions in Arabic."""

from __future__ import annotations

from datetime import timedelta
from itertools import cycle

from memadmin.demo import bots
from memadmin.demo.cards import CARDS
from memadmin.demo.script import Exchange, Story, calls, refuses, remembers, says, thinks

PRAISE = cycle(["Right!", "Exactly.", "Muito bem!", "Yes, and well spelt.", "Perfect.", "That was quick ⚡"])

MISTAKES = {
    6: ("onde é a estação?", "Understood by everybody; for places that stay put, “fica” is nicer."),
    15: ("quando o comboio parte?", "Nearly. For a clock time ask “a que horas”."),
    20: ("um café com leite", "That is a big one. In Porto the small one with a drop of milk is “um pingo”."),
    27: ("o suco de laranja", "“Suco” is Brazilian; in Portugal it is “sumo”."),
    32: ("o menu", "Also fine, but the thing on the table is “a ementa”."),
    37: ("o pescado", "That is fish in general. The cod is “o bacalhau”, there are 365 ways to cook it."),
    60: ("a umbrela", "Lovely guess! It guards you from the rain: “guarda-chuva”."),
    65: ("a linha", "“Linha” is the line on paper. People stand in “a fila”."),
    70: ("o banheiro", "Brazilian again. Here: “a casa de banho”."),
    78: ("lunes", "That is Spanish. Portuguese counts the days: “segunda-feira”."),
    93: ("comprender", "Close: “compreender” exists, but you will hear “perceber”."),
    96: ("minha cabeça dói", "Clear enough. A doctor in Porto hears “dói-me a cabeça”."),
}

QUESTIONS = {
    12: (
        "Why “elétrico”? Does that not just mean electric?",
        "It does: the electric one, said when horses pulled most.",
    ),
    50: ("Is there a trick for o and a?", "Mostly the last letter: -o is o, -a is a, -agem is a. The rest you learn."),
    79: ("Why do the days have numbers?", "They count market days from Sunday, which has kept its name, as Saturday."),
}

CARDS_A_DAY = 20
"""After so many cards the student closes the book until the next evening."""


def _lesson() -> list[Exchange]:
    exchanges = [
        Exchange(
            "Hi! In six weeks I spend the summer in Porto. Can we do a hundred words, a few every evening?",
            [
                [
                    calls("next_card", card=0),
                    remembers("Spends the summer in Porto: wants the Portuguese of Portugal.", kind="fact"),
                ],
                [says(f"With pleasure. I ask in English, you answer in Portuguese. First: “{CARDS[0][0]}”.")],
            ],
        )
    ]
    for card, (_, portuguese) in enumerate(CARDS):
        said, remark = MISTAKES.get(card, (portuguese, next(PRAISE)))
        verdict = remark if said == portuguese else f"{remark} So: “{portuguese}”."
        pause = timedelta(hours=23) if card % CARDS_A_DAY == CARDS_A_DAY - 1 else timedelta(seconds=25 + card * 7 % 30)
        if card in QUESTIONS:
            question, answer = QUESTIONS[card]
            exchanges.append(Exchange(question, [[says(answer)]], after=timedelta(seconds=30)))
        if card + 1 < len(CARDS):
            asks = [
                [calls("next_card", card=card + 1)],
                [says(f"{verdict} Next: “{CARDS[card + 1][0]}”.")],
            ]
        else:
            asks = [
                [calls("note_progress", note="100 cards once, 88 right the first time")],
                [says(f"{verdict} That was the hundredth, and 88 were right the first time. Boa viagem! 🌊")],
            ]
        exchanges.append(Exchange(said, asks, after=pause, is_streamed=card % 2 == 0))
    return exchanges


HUNDRED_WORDS = Story(
    "tutor:stud_3071", "stud_3071", bots.tutor, timedelta(days=8, minutes=29), _lesson(), items_read_back=24
)

FRACTIONS = Story(
    "tutor:stud_3088",
    "stud_3088",
    bots.tutor,
    timedelta(days=1, hours=6, minutes=38),
    [
        Exchange(
            "مرحباً! لا أفهم كيف أجمع 1/2 و 1/3. هل يمكنك أن تشرح لي؟",
            [
                [
                    thinks("The student asks how to add fractions with different denominators. Start with a picture."),
                    says("أهلاً بك! تخيّل كعكة مقسومة إلى 6 قطع متساوية 🍰. كم قطعة هي نصف الكعكة؟ وكم قطعة هي ثلثها؟"),
                ]
            ],
        ),
        Exchange(
            "النصف 3 قطع والثلث قطعتان. إذن المجموع 5/6؟",
            [
                [calls("note_progress", note="adds fractions through a common denominator")],
                [says("ممتاز! 3/6 + 2/6 = 5/6. لقد وجدتَ المقام المشترك بنفسك 👏. والآن جرّب: 1/4 + 1/6 = ؟")],
            ],
            after=timedelta(minutes=3),
        ),
        Exchange(
            "اكتب لي الواجب كله من فضلك، يجب أن أسلّمه غداً باسمي.",
            [[refuses("لا أستطيع أن أكتب الواجب بدلاً منك، لكن يسعدني أن نحلّه معاً خطوةً خطوة.")]],
            after=timedelta(minutes=6),
        ),
        Exchange(
            "حسناً، خطوة خطوة: المقام المشترك هو 12؟",
            [[says("نعم، 12! إذن 1/4 = 3/12، وماذا عن 1/6؟")]],
            after=timedelta(minutes=2),
        ),
    ],
)

STORIES = [HUNDRED_WORDS, FRACTIONS]
