"""A measured run whose conversations were recorded, and other settings -> what the run would have been with them.

    result.json, logs -> join.py -> again.py, for each of policies.py's -> trials of lab/trade.py -> validate.py

It stands above the dialogue, which it runs again, and the lab, whose results it reads; neither knows it.
"""
