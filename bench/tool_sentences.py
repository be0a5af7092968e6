"""Five agents with their tools, and sentences that callers might say to them; half of these need no tool.

Every other sentence, and all of the agents that say so, may be used for choosing how tools are chosen; the others
only for judging it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon.core.flow import ToolSpec


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    tool: str | None = None
    arguments: dict[str, list[object]] = field(default_factory=dict)  # the values of each that count as right


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    instructions: str
    tools: tuple[ToolSpec, ...]
    sentences: tuple[Sentence, ...]
    is_fit: bool = False  # all of its sentences may be used for choosing


def tool(name: str, description: str, /, *required: str, **properties: dict[str, object]) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=schema)


def text(description: str) -> dict[str, object]:
    return {"type": "string", "description": description}


AGENTS = (
    Agent(
        name="coffee shop",
        instructions="You are the barista of a coffee shop. Answer in one short sentence.",
        tools=(
            tool("get_price", "Look up what a drink or a snack costs.", "item", item=text("the drink or snack")),
            tool(
                "add_to_order",
                "Put a drink or a snack on the customer's order.",
                "item",
                item=text("the drink or snack"),
                quantity={"type": "integer", "description": "how many"},
            ),
            tool(
                "opening_hours",
                "Tell when the shop opens and closes on a day of the week.",
                "day",
                day={
                    "type": "string",
                    "enum": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
                },
            ),
        ),
        sentences=(
            Sentence("How much is a large cappuccino?", "get_price", {"item": ["large cappuccino", "cappuccino"]}),
            Sentence("What does a blueberry muffin cost?", "get_price", {"item": ["blueberry muffin", "muffin"]}),
            Sentence(
                "I would like two oat milk lattes, please.",
                "add_to_order",
                {"item": ["oat milk latte", "oat milk lattes"], "quantity": [2]},
            ),
            Sentence("Can I get a double espresso?", "add_to_order", {"item": ["double espresso", "espresso"]}),
            Sentence("When do you close on Sunday?", "opening_hours", {"day": ["sunday"]}),
            Sentence("Are you open on Monday morning?", "opening_hours", {"day": ["monday"]}),
            Sentence("What's the price of the cheesecake?", "get_price", {"item": ["cheesecake", "the cheesecake"]}),
            Sentence(
                "Three croissants to go, please.",
                "add_to_order",
                {"item": ["croissant", "croissants"], "quantity": [3]},
            ),
            Sentence("Until what time are you open on Friday?", "opening_hours", {"day": ["friday"]}),
            Sentence("And please add a green tea.", "add_to_order", {"item": ["green tea"]}),
            Sentence("Good morning, how are you today?"),
            Sentence("Thank you very much, have a nice day."),
            Sentence("Do you prefer tea or coffee yourself?"),
            Sentence("It is raining cats and dogs out there."),
            Sentence("What is the difference between a latte and a flat white?"),
            Sentence("Sorry, I did not catch that."),
            Sentence("I am just looking around for now."),
            Sentence("Is your coffee fair trade?"),
            Sentence("My friend told me this place is great."),
            Sentence("Where are the restrooms?"),
        ),
    ),
    Agent(
        name="smart home",
        instructions="You are a friendly assistant in a home. Answer in one short sentence.",
        tools=(
            tool(
                "set_light",
                "Switch the light in a room on or off.",
                "room",
                "on",
                room=text("which room"),
                on={"type": "boolean", "description": "true for on, false for off"},
            ),
            tool(
                "set_temperature",
                "Set the heating to a temperature.",
                "degrees",
                degrees={"type": "number", "description": "in degrees Celsius"},
            ),
            tool(
                "start_timer",
                "Start a kitchen timer that rings after some minutes.",
                "minutes",
                minutes={"type": "integer", "description": "how long"},
            ),
            tool(
                "play_music",
                "Play songs of an artist or a kind of music.",
                "what",
                what=text("the artist or the kind of music"),
            ),
        ),
        sentences=(
            Sentence(
                "Turn on the light in the kitchen.", "set_light", {"room": ["kitchen", "the kitchen"], "on": [True]}
            ),
            Sentence(
                "Please switch off the bedroom light.", "set_light", {"room": ["bedroom", "the bedroom"], "on": [False]}
            ),
            Sentence("Set the heating to twenty one degrees.", "set_temperature", {"degrees": [21]}),
            Sentence("Make it nineteen degrees in here.", "set_temperature", {"degrees": [19]}),
            Sentence("Set a timer for ten minutes.", "start_timer", {"minutes": [10]}),
            Sentence("Remind me in five minutes to check the oven.", "start_timer", {"minutes": [5]}),
            Sentence("Play some jazz.", "play_music", {"what": ["jazz", "some jazz"]}),
            Sentence("I want to hear the Beatles.", "play_music", {"what": ["the beatles", "beatles"]}),
            Sentence(
                "It is too dark in the living room, can you turn the lamp on?",
                "set_light",
                {"room": ["living room", "the living room"], "on": [True]},
            ),
            Sentence("Put the pasta timer on eight minutes.", "start_timer", {"minutes": [8]}),
            Sentence("What a lovely evening."),
            Sentence("Tell me a joke."),
            Sentence("Who wrote Romeo and Juliet?"),
            Sentence("I am going to bed soon, good night."),
            Sentence("How do I get a wine stain out of a shirt?"),
            Sentence("What is the capital of Italy?"),
            Sentence("I had a long day at work."),
            Sentence("Thanks, that is perfect."),
            Sentence("Can dogs eat chocolate?"),
            Sentence("What should I cook for dinner tonight?"),
        ),
    ),
    Agent(
        name="assistant",
        instructions="You are a helpful voice assistant. Answer in one short sentence.",
        tools=(
            tool("get_weather", "Tell the weather in a city.", "city", city=text("the name of the city")),
            tool("get_time", "Tell what time it is now in a city.", "city", city=text("the name of the city")),
            tool(
                "send_message",
                "Send a text message to somebody.",
                "to",
                "text",
                to=text("who gets it"),
                text=text("what it says"),
            ),
        ),
        sentences=(
            Sentence("What is the weather like in Paris?", "get_weather", {"city": ["paris"]}),
            Sentence("Will I need an umbrella in London today?", "get_weather", {"city": ["london"]}),
            Sentence("What time is it in Tokyo?", "get_time", {"city": ["tokyo"]}),
            Sentence("Tell me the current time in New York.", "get_time", {"city": ["new york"]}),
            Sentence("Send a message to Anna that I will be late.", "send_message", {"to": ["anna"]}),
            Sentence("Text my mother that dinner is ready.", "send_message", {"to": ["my mother", "mother"]}),
            Sentence("Is it cold in Oslo right now?", "get_weather", {"city": ["oslo"]}),
            Sentence("How late is it in Sydney?", "get_time", {"city": ["sydney"]}),
            Sentence("How is the weather in Madrid this morning?", "get_weather", {"city": ["madrid"]}),
            Sentence("Write to Tom that the meeting is at noon.", "send_message", {"to": ["tom"]}),
            Sentence("Hello, who are you?"),
            Sentence("What is two plus two?"),
            Sentence("How many legs does a spider have?"),
            Sentence("I feel a little sad today."),
            Sentence("Explain what a volcano is."),
            Sentence("Do you like music?"),
            Sentence("Give me a tip for better sleep."),
            Sentence("That is all, goodbye."),
            Sentence("What do bees make?"),
            Sentence("Can you repeat that, please?"),
        ),
    ),
    Agent(
        name="hotel",
        instructions="You are the receptionist of a hotel. Answer in one short sentence.",
        tools=(
            tool("order_taxi", "Order a taxi to a place.", "place", place=text("where it should go")),
            tool(
                "wake_up_call",
                "Wake a guest up by telephone.",
                "hour",
                hour={"type": "integer", "description": "hour of the day"},
            ),
            tool("room_service", "Have food or drinks brought to the room.", "what", what=text("the food or drink")),
            tool(
                "find_free_rooms",
                "Look up whether a kind of room is free.",
                "kind",
                kind={"type": "string", "enum": ["single", "double", "suite"]},
            ),
        ),
        sentences=(
            Sentence("I need a cab to the airport.", "order_taxi", {"place": ["airport"]}),
            Sentence("Could you call a taxi to the opera?", "order_taxi", {"place": ["opera"]}),
            Sentence("Please wake me up at seven.", "wake_up_call", {"hour": [7]}),
            Sentence("I have to get up at six tomorrow, can you ring me?", "wake_up_call", {"hour": [6]}),
            Sentence(
                "Bring me a club sandwich, please.", "room_service", {"what": ["club sandwich", "a club sandwich"]}
            ),
            Sentence(
                "We would love a bottle of champagne up here.",
                "room_service",
                {"what": ["bottle of champagne", "a bottle of champagne", "champagne"]},
            ),
            Sentence("Do you have a double room tonight?", "find_free_rooms", {"kind": ["double"]}),
            Sentence("Is there a suite left for the weekend?", "find_free_rooms", {"kind": ["suite"]}),
            Sentence("Good evening, I am Mister Brown."),
            Sentence("The view from here is wonderful."),
            Sentence("Which museum would you recommend?"),
            Sentence("How old is this building?"),
            Sentence("Thanks for your help."),
            Sentence("I lost my umbrella somewhere."),
            Sentence("Who was the first man on the moon?"),
            Sentence("Can you speak a little slower?"),
        ),
        is_fit=True,
    ),
    Agent(
        name="office",
        instructions="You are an assistant in an office. Answer in one short sentence.",
        tools=(
            tool(
                "book_meeting_room",
                "Reserve a meeting room for some people.",
                "people",
                people={"type": "integer", "description": "how many people"},
            ),
            tool("find_phone_number", "Look up the phone number of a person.", "person", person=text("whose number")),
            tool(
                "print_document",
                "Print a document.",
                "name",
                name=text("which document"),
                copies={"type": "integer", "description": "how many"},
            ),
        ),
        sentences=(
            Sentence("I need a room for a meeting with twelve people.", "book_meeting_room", {"people": [12]}),
            Sentence(
                "Where can six of us sit together this afternoon? Reserve something.",
                "book_meeting_room",
                {"people": [6]},
            ),
            Sentence("What is the number of Maria Lopez?", "find_phone_number", {"person": ["maria lopez"]}),
            Sentence("How can I reach Mister Chen by phone?", "find_phone_number", {"person": ["mister chen", "chen"]}),
            Sentence("Print the sales report.", "print_document", {"name": ["sales report"]}),
            Sentence("I want three copies of the contract.", "print_document", {"name": ["contract"], "copies": [3]}),
            Sentence("Get me the phone number of the plumber.", "find_phone_number", {"person": ["plumber"]}),
            Sentence("Book a meeting room for four.", "book_meeting_room", {"people": [4]}),
            Sentence("Good morning."),
            Sentence("I did not sleep well last night."),
            Sentence("What does inflation mean?"),
            Sentence("How many days has a leap year?"),
            Sentence("That was a long meeting."),
            Sentence("Should I wear a tie tomorrow?"),
            Sentence("What is your favourite colour?"),
            Sentence("Never mind, forget it."),
        ),
        is_fit=True,
    ),
)
