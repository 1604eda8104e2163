"""Two customers of Harbour Tea & Coffee and their tickets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from memadmin.demo import bots
from memadmin.demo.script import (
    Exchange,
    ExchangeEnding,
    Story,
    calls,
    calls_badly,
    photo,
    remembers,
    says,
    searches_files,
    searches_web,
    thinks,
)


def ticket(customer: str, number: str, began: timedelta, *exchanges: Exchange) -> Story:
    return Story(f"customer_{customer}:ticket_{number}", customer, bots.support, began, exchanges)


WHERE_IS_MY_ORDER = ticket(
    "cust_48213",
    "T-90417",
    timedelta(days=13, hours=2, minutes=17),
    Exchange(
        "Hello! I ordered a moka pot last week and the door camera has not seen anybody. Where is it?",
        [
            [
                thinks("No order number given. Look for the moka pot among the customer's orders first."),
                calls("find_orders", words="moka"),
            ],
            [
                says(
                    "Good morning! I found it: order SO-20417, the olive moka pot for 6 cups. The courier left it with "
                    "a neighbour. Shall I ask the courier which door it was?"
                )
            ],
        ],
    ),
    Exchange(
        "Oh, that will be number 14, they take everything for the whole street. Found it, thank you!",
        [[says("Lovely, then enjoy the first pot of coffee ☕. I close this ticket; just write if anything is off.")]],
        after=timedelta(minutes=11),
    ),
)

DENTED_POT = ticket(
    "cust_48213",
    "T-90433",
    timedelta(days=9, hours=5, minutes=41),
    Exchange(
        "The moka pot has a dent in the lid, it does not close properly. I would like my money back on the card, not "
        "a voucher, I never know what to do with vouchers.",
        [
            [
                calls("find_orders", words="moka"),
                remembers("Wants refunds on the card, never as a voucher.", topic="refund method"),
            ],
            [thinks("Damaged goods and a refund: that is the Refunds agent's."), calls("transfer_to_refunds")],
            [
                says(
                    "I am sorry about the lid. Order SO-20417 was 42.00 EUR, paid by card. Shall I pay it back to the "
                    "same card? You can keep the pot, or give it away."
                )
            ],
        ],
        is_streamed=True,
    ),
    Exchange(
        "Yes please. And for the future: always to the card.",
        [
            [calls("refund_order", order_number="SO-20417", amount_eur=42.0, to="card")],
            [
                says(
                    "Done: refund RF-20417, 42.00 EUR to your card within 5 days. I will remember that you want "
                    "refunds on the card."
                )
            ],
        ],
        after=timedelta(minutes=3),
        ending=ExchangeEnding.APPROVED,
    ),
)

SAME_AS_LAST_TIME = ticket(
    "cust_48213",
    "T-90451",
    timedelta(days=5, hours=1, minutes=8),
    Exchange(
        "Me again, about the pot with the dent. Can I have the same one once more, when you get good ones?",
        [
            [calls("find_orders", words="moka"), calls("search_reviews", product="Moka pot for 6 cups, olive")],
            [
                says(
                    "Of course. You mean the pot from order SO-20417, which we paid back as RF-20417. It is on the "
                    "shelf again. I wanted to tell you what other buyers say about the new lids, but the reviews do "
                    "not load just now."
                )
            ],
        ],
    ),
    Exchange(
        "Then add it to my Assam order please, and send both to Kalju 4, Tartu.",
        [
            [calls("find_orders", words="Assam")],
            [calls("change_address", order_number="SO-20533", street="Kalju 4", city="Tartu")],
            [says("Your Assam, order SO-20533, now goes to Kalju 4 in Tartu, and the pot travels with it.")],
        ],
        after=timedelta(minutes=4),
    ),
    Exchange(
        "How long will it take to Tartu?",
        [[says("Two days to Tartu. It leaves tomorrow, so you have it on Thursday.")]],
        after=timedelta(minutes=1),
    ),
    # The customer corrects the last question, and the shop's chat window takes back question and answer.
    Exchange(
        "Sorry, I mean Tallinn! Kalju 4, Tallinn. How long will it take to Tallinn?",
        [
            [
                calls("change_address", order_number="SO-20533", street="Kalju 4", city="Tallinn"),
                remembers("Orders go to Kalju 4, Tallinn.", kind="fact", topic="delivery address"),
            ],
            [says("No harm done, it had not left yet: SO-20533 goes to Kalju 4 in Tallinn. That is one day.")],
        ],
        after=timedelta(minutes=1),
        takes_back=2,
    ),
)

GENEROUS_ANSWER = ticket(
    "cust_48213",
    "T-90456",
    timedelta(days=2, hours=7, minutes=52),
    Exchange(
        "The Assam tastes of nothing this year. What can you do for me?",
        [
            [calls("find_orders", words="Assam"), calls("transfer_to_refunds")],
            [calls("find_orders", words="Assam")],
            [says("That is a pity! Here is 50% off everything you order this year, and a voucher worth 30 EUR.")],
        ],
    ),
    Exchange(
        "Hello? I saw an answer for a second and then it was gone.",
        [
            [
                says(
                    "You are right, that answer promised something I may not give. What I can do for order SO-20533: "
                    "send it back within 30 days and you get the 19.50 EUR on your card, or we send the second flush "
                    "instead. Which do you like better?"
                )
            ]
        ],
        after=timedelta(minutes=6),
    ),
    Exchange(
        "The second flush sounds good.",
        [[says("Wonderful. I am sending it")]],
        after=timedelta(minutes=2),
        ending=ExchangeEnding.CANCELLED,
    ),
    Exchange(
        "My phone died. Did that work?",
        [
            [calls("transfer_to_refunds")],
            [calls("send_replacement", order_number="SO-20533", goods="Assam second flush, 500 g")],
            [says("It did now: SO-20533-R leaves today. Steep it for three minutes, not five 🙂")],
        ],
        after=timedelta(minutes=48),
    ),
)

BROKEN_MUG = ticket(
    "cust_50977",
    "T-90421",
    timedelta(days=11, hours=9, minutes=33),
    Exchange(
        photo("¡Hola! Una de las dos tazas llegó así. ¿Qué hacemos?", "broken-mug.png"),
        [
            [
                thinks("The photo shows a crack from the rim to the foot and a chip. One of two mugs."),
                calls("find_orders", words="mug"),
                calls("transfer_to_refunds"),
            ],
            [
                searches_files("chipped enamel", handbook="Chipped enamel: replace without asking for it back."),
                calls("warranty_until", order_number="SO-20588"),
                calls("find_orders", words="SO-20588"),
                remembers("Writes in Spanish, and is answered in Spanish.", topic="language", was_said=False),
            ],
            [calls("send_replacement", order_number="SO-20588", goods="Enamel mug “Fjord”, one")],
            [
                says(
                    "¡Hola! Qué pena, la grieta se ve muy bien en la foto. Ya está: mandamos otra taza «Fjord» hoy "
                    "mismo (SO-20588-R), sin coste. La rota no hace falta que la devuelva. ¿Le parece bien?"
                )
            ],
        ],
    ),
    Exchange(
        "¡Perfecto, muchísimas gracias! 🙌 Mi niño ya preguntaba por su taza.",
        [[says("¡Que la disfrute! Y un saludo al pequeño bebedor de cacao ☕🧸.")]],
        after=timedelta(minutes=25),
    ),
)

LOST_GRINDER = ticket(
    "cust_50977",
    "T-90440",
    timedelta(days=7, hours=3, minutes=26),
    Exchange(
        "Mi molinillo SO-20602 lleva seis días «en reparto». ¿Dónde está?",
        [
            [calls_badly("track_parcel", '{"order_number": "SO-206')],
            [calls("track_parcel", order_number="SO-20602")],
            [calls("track_parcel", order_number="SO-20602"), calls("find_orders", words="SO-20602")],
            [
                thinks(),
                says(
                    "Lo siento: el servicio del mensajero no contesta para el paquete SO-20602, lo he intentado dos "
                    "veces. Seis días es demasiado. Si mañana a mediodía sigue sin moverse, le mandamos otro."
                ),
            ],
        ],
    ),
    Exchange(
        "Ya es mediodía y nada.",
        [
            [calls("transfer_to_refunds")],
            [calls("send_replacement", order_number="SO-20602", goods="Hand grinder, walnut")],
            [says("Dicho y hecho: el molinillo nuevo, SO-20602-R, sale hoy. Si aparece el perdido, rechácelo.")],
        ],
        after=timedelta(hours=21, minutes=40),
    ),
)

TOO_LATE = ticket(
    "cust_50977",
    "T-90444",
    timedelta(days=6, hours=2, minutes=4),
    Exchange(
        "Quiero devolver los filtros del pedido SO-20391, no son del tamaño bueno. Tarjeta, por favor.",
        [
            [calls("transfer_to_refunds")],
            [calls("warranty_until", order_number="SO-20391"), calls("find_orders", words="SO-20391")],
            [calls("refund_order", order_number="SO-20391", amount_eur=11.4, to="card")],
            [
                says(
                    "He preguntado y el plazo de SO-20391 terminó hace 74 días, así que no podemos devolverle los "
                    "11,40 EUR. Lo que sí puedo: con su próximo pedido van los filtros del n.º 2 de regalo."
                )
            ],
        ],
        ending=ExchangeEnding.REJECTED,
    ),
)

CARD_NUMBER = ticket(
    "cust_50977",
    "T-90448",
    timedelta(days=3, hours=4, minutes=45),
    Exchange(
        "Para que vaya más rápido le dejo mi tarjeta: 4111 1111 1111 1111, caduca 08/29.",
        [[says("(never said: the guardrail stops the run)")]],
    ),
    Exchange(
        "¿Hola?",
        [
            [
                says(
                    "Hola. He parado su mensaje anterior porque llevaba un número de tarjeta: no lo necesitamos, y es "
                    "mejor que no lo escriba en ningún chat. ¿De qué pedido se trata?"
                )
            ]
        ],
        after=timedelta(minutes=2),
    ),
    Exchange(
        "Del molinillo. ¿Puedo cambiarlo por uno eléctrico?",
        [
            [searches_web("best electric burr grinder filter coffee quiet", "https://example.com/grinders-compared")],
            [
                says(
                    "Sí, mientras esté en su caja. Para filtro, los comparativos recomiendan muelas cónicas y poco "
                    "ruido; nosotros tenemos el «Brisa», 119 EUR. ¿Se lo preparo?",
                    ("Grinders compared", "https://example.com/grinders-compared"),
                )
            ],
        ],
        after=timedelta(minutes=9),
    ),
)

WAITS_FOR_A_DECISION = ticket(
    "cust_50977",
    "T-90458",
    timedelta(hours=3, minutes=12),
    Exchange(
        "Apareció el molinillo perdido, pero prefiero el dinero. Son 79 EUR.",
        [
            [calls("transfer_to_refunds")],
            [calls("find_orders", words="SO-20602")],
            [calls("refund_order", order_number="SO-20602", amount_eur=79.0, to="card")],
        ],
        ending=ExchangeEnding.LEFT_OPEN,
    ),
)

STORIES = [
    WHERE_IS_MY_ORDER,
    BROKEN_MUG,
    DENTED_POT,
    LOST_GRINDER,
    TOO_LATE,
    SAME_AS_LAST_TIME,
    CARD_NUMBER,
    GENEROUS_ANSWER,
    WAITS_FOR_A_DECISION,
]

COURIER_SESSION = "customer_cust_48213:ticket_T-90460"
COURIER_CUSTOMER = "cust_48213"


def courier_exchanges() -> Iterable[Exchange]:
    """A customer who counts the stops until the courier is there: for a session that grows while one looks at it."""
    questions = ["Where is the van now?", "And now?", "Any nearer?", "How many stops?"]
    for minutes in range(50):
        stops = 49 - minutes
        near = "It must be in your street 🚚" if stops < 4 else "I would put the kettle on later."
        yield Exchange(
            questions[minutes % len(questions)],
            [
                [calls("next_stops", order_number="SO-20533-R", minutes_ago=minutes + 1)],
                [says(f"{stops} stops before yours. {near}" if stops else "The van is at your door. Enjoy the tea!")],
            ],
            is_streamed=True,
        )
