"""Where computing happens: engine calls run on lanes, never on the event loop."""
