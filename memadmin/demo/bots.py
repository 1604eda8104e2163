"""The demo bots: support for a small tea and coffee shop, a language tutor, a personal assistant.

They are ordinary agents of the OpenAI Agents SDK and also run on a real model. `stories/` has their scripted
answers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, GuardrailFunctionOutput, RunContextWrapper, function_tool, input_guardrail, output_guardrail
from agents.handoffs import handoff
from agents.items import TResponseInputItem

from memadmin.demo import remembering
from memadmin.demo.cards import CARDS


@dataclass(slots=True)
class Person:
    """The person talking to a bot, with their id in the host application."""

    id: str
    notes: list[str] = field(default_factory=list)


Context = RunContextWrapper[Person]


@dataclass(frozen=True, slots=True)
class ShopOrder:
    number: str
    customer: str
    goods: str
    paid_eur: float
    state: str


ORDERS = [
    ShopOrder("SO-20417", "cust_48213", "Moka pot for 6 cups, olive", 42.00, "delivered, left with a neighbour"),
    ShopOrder("SO-20533", "cust_48213", "Assam loose leaf, 500 g", 19.50, "packed, waiting for the courier"),
    ShopOrder("SO-20391", "cust_50977", "Filter papers no. 4, three boxes", 11.40, "delivered"),
    ShopOrder("SO-20588", "cust_50977", "Enamel mug “Fjord”, two", 36.00, "delivered"),
    ShopOrder("SO-20602", "cust_50977", "Hand grinder, walnut", 79.00, "with the courier for 6 days"),
]

CARD_NUMBER = re.compile(r"\b(?:\d[ -]?){13,16}\b")
BIG_PROMISE = re.compile(r"\b(?:[3-9]\d|100) ?%|voucher worth", re.IGNORECASE)

COURIER_SECONDS = 0.2
"""Timeout for the courier's service, which is sometimes slow."""


# --- the shop --------------------------------------------------------------------------------------------------------


@function_tool
async def find_orders(context: Context, words: str = "") -> str:
    """Lists the customer's orders whose number or goods contain the words; all of them without words."""
    found = [
        f"{order.number}: {order.goods}, {order.paid_eur:.2f} EUR, {order.state}"
        for order in ORDERS
        if order.customer == context.context.id and words.lower() in f"{order.number} {order.goods}".lower()
    ]
    return "\n".join(found) or "no such order"


@function_tool(timeout=COURIER_SECONDS)
async def track_parcel(order_number: str) -> dict[str, Any]:
    """Asks the courier where the parcel of an order is."""
    if order_number == "SO-20602":
        await asyncio.sleep(COURIER_SECONDS * 3)  # the courier's service hangs for lost parcels
    return {"order": order_number, "where": "sorting centre Lasnamäe", "expected": "tomorrow, 9:00 to 13:00"}


@function_tool
async def next_stops(order_number: str, minutes_ago: int = 0) -> str:
    """How many stops the courier's van has to go before it is at the door."""
    return f"{order_number}: {max(0, 50 - minutes_ago)} stops before yours"


@function_tool
async def search_reviews(product: str) -> str:
    """Searches what buyers wrote about a product."""
    raise ConnectionError(f"review service closed the connection while asking for {product}")


@function_tool
async def change_address(order_number: str, street: str, city: str) -> str:
    """Sends an order that was not shipped yet to another address."""
    return f"{order_number} goes to {street}, {city}"


@function_tool(needs_approval=True)
async def refund_order(order_number: str, amount_eur: float, to: str) -> dict[str, Any]:
    """Pays an order back, to "card" or as "voucher". A person of the shop has to agree."""
    return {"refund": f"RF-{order_number[3:]}", "amount_eur": amount_eur, "to": to, "days": 5}


@function_tool
async def send_replacement(order_number: str, goods: str) -> dict[str, Any]:
    """Sends the goods of an order once more, free of charge."""
    return {"order": f"{order_number}-R", "goods": goods, "leaves": "today"}


@function_tool
async def warranty_until(order_number: str) -> str:
    """Until when an order can be sent back or exchanged."""
    return {"SO-20391": "ended 74 days ago"}.get(order_number, "30 days from delivery")


@input_guardrail
async def no_card_numbers(
    context: Context, agent: Agent[Person], said: str | list[TResponseInputItem]
) -> GuardrailFunctionOutput:
    """Stops a run when the customer's last message has what looks like a card number."""
    # Only the last one: a blocked message stays in the session and must not block later ones.
    last = said if isinstance(said, str) else str(said[-1].get("content"))
    return GuardrailFunctionOutput(output_info="card number", tripwire_triggered=bool(CARD_NUMBER.search(last)))


@output_guardrail
async def no_big_promises(context: Context, agent: Agent[Person], answer: str) -> GuardrailFunctionOutput:
    """Stops an answer that promises more than the shop gives."""
    return GuardrailFunctionOutput(output_info="promise", tripwire_triggered=bool(BIG_PROMISE.search(answer)))


refunds: Agent[Person] = Agent(
    name="Refunds",
    handoff_description="Refunds, replacements, complaints about goods.",
    instructions=(
        "You settle refunds and replacements for Harbour Tea & Coffee. Look at the order before you promise anything. "
        "Pay back to the card unless the customer wants a voucher. Never promise more than the price of the order."
    ),
    tools=[find_orders, refund_order, send_replacement, warranty_until, *remembering.tools],
    output_guardrails=[no_big_promises],
)

support: Agent[Person] = Agent(
    name="Triage",
    instructions=(
        "You are the first person a customer of Harbour Tea & Coffee talks to. Answer in the customer's language, in "
        "a few warm sentences. Name order numbers, so that the customer can quote them. Hand refunds and broken goods "
        "to the Refunds agent."
    ),
    tools=[find_orders, track_parcel, next_stops, search_reviews, change_address, *remembering.tools],
    handoffs=[handoff(refunds)],
    input_guardrails=[no_card_numbers],
)


# --- the tutor -------------------------------------------------------------------------------------------------------


@function_tool
async def next_card(card: int) -> str:
    """A card of the deck "Portuguese for a summer in Porto": what to ask, and the answer for the tutor's eyes."""
    english, portuguese = CARDS[card % len(CARDS)]
    return f"{card}. {english} = {portuguese}"


@function_tool
async def note_progress(context: Context, note: str) -> str:
    """Keeps a note about what the student has learnt."""
    context.context.notes.append(note)
    return f"noted, {len(context.context.notes)} so far today"


tutor: Agent[Person] = Agent(
    name="Tutor",
    instructions=(
        "You teach one student, patiently, in the language that the student writes in. Ask one thing at a time, say "
        "what was right before what was wrong, and never do homework for the student."
    ),
    tools=[next_card, note_progress, *remembering.tools],
)


# --- the personal assistant ------------------------------------------------------------------------------------------


@function_tool
async def weather(city: str, day: str) -> str:
    """The forecast for a city."""
    forecasts = {"Porto": "21 °C, light wind, no rain", "Riga": "8 °C, rain in the afternoon ☔"}
    return forecasts.get(city, "no forecast")


@function_tool
async def calendar(day: str) -> str:
    """What stands in the calendar on a day."""
    return {"Saturday": "10:00 swimming with the children", "Monday": "14:30 dentist"}.get(day, "nothing")


@function_tool
async def add_to_calendar(day: str, time: str, what: str) -> str:
    """Puts an entry into the calendar."""
    return f"{day} {time}: {what}"


assistant: Agent[Person] = Agent(
    name="Assistant",
    instructions=(
        "You help one person through the week. Be brief and concrete, answer in their language, and ask before you "
        "put anything into the calendar."
    ),
    tools=[weather, calendar, add_to_calendar, *remembering.tools],
)
