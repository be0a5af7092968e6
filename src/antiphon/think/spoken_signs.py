"""The signs of units, money and operators in, their English words out, and the words that tell what figures mean.

Data alone; threads: pure. What it does not know: how a reading is put together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = """
km kilometer|m meter|cm centimeter|mm millimeter|nm nanometer|mi mile|yd yard|yds yard|ft foot/feet
kg kilogram|g gram|mg milligram|lb pound|lbs pound|oz ounce
l liter|L liter|ml milliliter|mL milliliter|cl centiliter|dl deciliter|gal gallon|qt quart|pt pint
tsp teaspoon|tbsp tablespoon|cal calorie|kcal kilocalorie|kJ kilojoule
h hour|hr hour|hrs hour|min minute|mins minute|s second|sec second|secs second|ms millisecond|yr year|yrs year
mph mile per hour/miles per hour|kph kilometer per hour/kilometers per hour
km/h kilometer per hour/kilometers per hour|m/s meter per second/meters per second
W watt|kW kilowatt|MW megawatt|kWh kilowatt hour|V volt|mV millivolt|mA milliamp|mAh milliamp hour
Hz hertz/hertz|kHz kilohertz/kilohertz|MHz megahertz/megahertz|GHz gigahertz/gigahertz|dB decibel
KB kilobyte|kB kilobyte|MB megabyte|GB gigabyte|TB terabyte
Mbps megabit per second/megabits per second|Gbps gigabit per second/gigabits per second
fps frame per second/frames per second|rpm revolution per minute/revolutions per minute
°C degree Celsius/degrees Celsius|°F degree Fahrenheit/degrees Fahrenheit|° degree
m² square meter|km² square kilometer|ft² square foot/square feet|cm² square centimeter
m2 square meter|km2 square kilometer|m³ cubic meter|cm³ cubic centimeter|% percent/percent|‰ per mille/per mille
"""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def _read_table(table: str) -> dict[str, tuple[str, str]]:
    units = {}
    for entry in table.replace("\n", "|").strip("|").split("|"):
        sign, _, words = entry.partition(" ")
        one, _, many = words.partition("/")
        units[sign] = (one, many or f"{one}s")
    return units


UNITS: Mapping[str, tuple[str, str]] = _read_table(_PLAIN)  # sign -> (one of it, many of it)

# sign -> (one, many, a hundredth, hundredths)
MONEY: Mapping[str, tuple[str, str, str, str]] = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("US dollar", "US dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "¢": ("cent", "cents", "", ""),
}
CODES: Mapping[str, str] = {"USD": "US$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
MAGNITUDES: Mapping[str, str] = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "bn": "billion",
    "B": "billion",
    "b": "billion",
    "tn": "trillion",
    "T": "trillion",
}
MAGNITUDE_WORDS = _words("hundred thousand million billion trillion")

OPERATORS: Mapping[str, str] = {
    "+": "plus",
    "*": "times",
    "×": "times",
    "·": "times",
    "÷": "divided by",
    "/": "divided by",
    "=": "equals",
    "==": "equals",
    "<": "less than",
    ">": "greater than",
    "≤": "less than or equal to",
    "<=": "less than or equal to",
    "≥": "greater than or equal to",
    ">=": "greater than or equal to",
    "≠": "not equal to",
    "!=": "not equal to",
    "≈": "about",
    "±": "plus or minus",
    "^": "to the power of",
    "**": "to the power of",
    "−": "minus",
    "-": "minus",
}

MONTHS = (  # in their order
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHORT_MONTHS: Mapping[str, str] = {name[:3]: name for name in MONTHS if name != "May"} | {"Sept": "September"}

# Before a figure and part of its word.
FORESIGNS: Mapping[str, str] = {
    "-": "minus",
    "−": "minus",
    "+": "plus",
    "~": "about",
    "≈": "about",
    "±": "plus or minus",
    "<": "less than",
    ">": "more than",
    "≤": "at most",
    "≥": "at least",
}
FRACTIONS: Mapping[int, tuple[str, str]] = {
    2: ("half", "halves"),
    3: ("third", "thirds"),
    4: ("quarter", "quarters"),
    5: ("fifth", "fifths"),
    6: ("sixth", "sixths"),
    8: ("eighth", "eighths"),
    16: ("sixteenth", "sixteenths"),
}
_FRACTION_SIGNS = "½ 1/2 ⅓ 1/3 ⅔ 2/3 ¼ 1/4 ¾ 3/4 ⅕ 1/5 ⅛ 1/8 ⅜ 3/8 ⅝ 5/8 ⅞ 7/8"
SIGN_FRACTIONS: Mapping[str, str] = dict(re.findall(r"(\S) (\S+)", _FRACTION_SIGNS))
RATES: Mapping[str, str] = {"mo": "month", "wk": "week"}  # behind a slash, besides the units

# Four figures behind these are a year; what 1900 to 2099 counts says so itself.
YEAR_CUES = _words(
    "in since by year years from until till before after during around circa early late mid spring summer fall autumn "
    "winter © copyright"
) | {month.lower() for month in MONTHS}
# Figures behind these name something, and are said digit by digit.
CODE_CUES = _words(
    "order number code pin zip ticket confirmation reference account invoice tracking flight id serial extension "
    "booking card"
)
BETWEEN_CUE_AND_CODE = _words("is number code id no # was :")
# "3.11" behind these is three point eleven.
VERSION_CUES = _words(
    "version release python java node ruby rust go php perl kotlin swift django llama gemini claude gpt qwen ios "
    "android ubuntu debian fedora kernel linux windows macos firefox chrome cuda"
)
