"""A coffee shop that takes orders by voice: `antiphon converse order.wav --agent examples/barista.py`."""

from __future__ import annotations

from antiphon import Agent

# What is on the board behind the counter. Given to the recognizer, it hears "a triple shot" and not "a trip will show".
MENU = (
    "espresso",
    "americano",
    "latte",
    "cappuccino",
    "mocha",
    "iced mocha",
    "coffee",
    "iced coffee",
    "drip coffee",
    "house coffee",
    "single shot",
    "double shot",
    "triple shot",
    "light roast",
    "medium roast",
    "dark roast",
    "small",
    "medium",
    "large",
    "eight ounce",
    "twelve ounce",
    "sixteen ounce",
    "twenty ounce",
    "milk",
    "skim milk",
    "whole milk",
    "soy milk",
    "almond milk",
    "cream",
    "sugar",
    "brown sugar",
    "sweetener",
)

agent = Agent(
    instructions="You are the barista of a small coffee shop. Answer the customer in one short sentence.",
    vocabulary=MENU,
    max_tokens=60,
)
