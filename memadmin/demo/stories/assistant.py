"""Two people and their personal assistant: a busy week that gets compacted, and a private matter kept encrypted."""

# ruff: noqa: RUF001 (Cyrillic is meant)

from __future__ import annotations

from datetime import timedelta

from memadmin.demo import bots
from memadmin.demo.script import (
    Exchange,
    Keeping,
    Story,
    asks_server,
    calls,
    computes,
    draws,
    lists_tools,
    says,
    searches_web,
)

BUSY_WEEK = Story(
    "assistant:acct_112",
    "acct_112",
    bots.assistant,
    timedelta(days=4, hours=3, minutes=55),
    [
        Exchange(
            "What does Saturday look like, and what is the weather in Riga? 🌧",
            [
                [calls("calendar", day="Saturday"), calls("weather", city="Riga", day="Saturday")],
                [says("Swimming with the children at 10:00. Riga: 8 °C, rain in the afternoon, so swim early.")],
            ],
        ),
        Exchange(
            "Find a café with a play corner near the pool.",
            [
                [searches_web("café play corner near Ķīpsala pool Riga", "https://example.com/riga-with-children")],
                [
                    says(
                        "“Zīle” is eight minutes on foot, opens at 9:00 and has a wooden kitchen for small cooks.",
                        ("Riga with children", "https://example.com/riga-with-children"),
                    )
                ],
            ],
            after=timedelta(minutes=3),
        ),
        Exchange(
            "Put it in after swimming.",
            [
                [calls("add_to_calendar", day="Saturday", time="11:30", what="Café Zīle")],
                [says("Saturday 11:30, Café Zīle. Done.")],
            ],
            after=timedelta(minutes=1),
        ),
        Exchange(
            "What do four tickets at 12.50 and two at 6 come to, with the 15% family discount?",
            [
                [computes("print((4 * 12.50 + 2 * 6) * 0.85)", "52.7\n")],
                [says("52.70 EUR.")],
            ],
            after=timedelta(hours=5),
        ),
        Exchange(
            "Who is on call at work on Monday?",
            [
                [
                    lists_tools("rota", who_is_on="Who is on call on a day", swap="Asks a colleague to swap"),
                    asks_server("rota", "who_is_on", "Monday: the platform team's second line", day="Monday"),
                ],
                [calls("calendar", day="Monday")],
                [says("The platform team's second line, so not you. You have the dentist at 14:30.")],
            ],
            after=timedelta(hours=20),
        ),
        # By now there is enough history for the compaction session to fold it.
        Exchange(
            "Make me a small card with a harbour for the invitation to the summer party.",
            [
                [draws("harbour-card.png", "A sailing boat in front of a low sun, flat colours, two waves")],
                [says("Here it is: a sailing boat in front of a low sun. Shall I write the invitation too?")],
            ],
            after=timedelta(hours=22),
        ),
        Exchange(
            "Yes, in Latvian, two lines.",
            [[says("Nāc uz vasaras svētkiem ostā!\nSestdien plkst. 18:00, ņem līdzi džemperi un labu garastāvokli.")]],
            after=timedelta(minutes=2),
            is_streamed=True,
        ),
    ],
    keeping=Keeping.COMPACTED,
)

PRIVATE_MATTER = Story(
    "assistant:acct_207",
    "acct_207",
    bots.assistant,
    timedelta(days=1, hours=2, minutes=21),
    [
        Exchange(
            "Запиши меня к кардиологу на понедельник, если получится до обеда. Никому об этом.",
            [
                [calls("calendar", day="Monday")],
                [says("В понедельник у вас только зубной в 14:30. Кардиолог принимает в 9:40, записать?")],
            ],
        ),
        Exchange(
            "Да. И напомни взять с собой старую кардиограмму.",
            [
                [calls("add_to_calendar", day="Monday", time="9:40", what="Кардиолог, взять старую ЭКГ")],
                [says("Записал: понедельник, 9:40, с собой старая кардиограмма. Напомню накануне вечером 💙.")],
            ],
            after=timedelta(minutes=2),
        ),
    ],
    keeping=Keeping.ENCRYPTED,
)

STORIES = [BUSY_WEEK, PRIVATE_MATTER]
