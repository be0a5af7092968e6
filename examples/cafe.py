"""A coffee shop that greets, takes orders and knows its hours: two tools, one of them with a side effect.

`antiphon converse first.wav second.wav --barge-in-at 1 --agent examples/cafe.py --timeline talk.png`
"""

from __future__ import annotations

from itertools import count
from typing import Literal

from antiphon import Agent, tool

Drink = Literal["espresso", "americano", "latte", "cappuccino", "mocha", "drip coffee", "house coffee", "iced coffee"]
_numbers = count(17)


@tool
async def order(drink: Drink) -> str:
    """Can I get a latte, please? Order a drink."""
    return f"One {drink}. Your number is {next(_numbers)}."


@tool(side_effects=False)
def opening_hours() -> str:
    """Tell when the shop opens and closes."""
    return "We are open from eight to six."


agent = Agent(
    instructions="You are the barista of a small coffee shop. Answer the customer in one short sentence.",
    greeting="Good morning, what can I get you?",
    vocabulary=("triple shot", "single shot", "cappuccino", "latte", "skim milk", "twenty ounce"),
    tools=(order, opening_hours),
    max_tokens=40,
)
