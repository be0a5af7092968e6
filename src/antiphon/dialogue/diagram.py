"""The table of transitions as a Mermaid state diagram, for docs/architecture.md; print it with `python -m`."""

from __future__ import annotations

from collections import defaultdict

from antiphon.dialogue.state import Phase
from antiphon.dialogue.transitions import BY_OWNER, TRANSITIONS


def mermaid() -> str:
    """One arrow per pair of phases, labelled with the stimuli that may lead from one to the other; none to itself.

    What the conversation's owner may do at any time is left out.
    """
    arrows: dict[tuple[Phase, Phase], list[str]] = defaultdict(list)
    for (phase, stimulus), rule in TRANSITIONS.items():
        if stimulus in BY_OWNER:
            continue
        for target in Phase:
            if target in rule.leads_to and target is not phase:
                arrows[phase, target].append(stimulus.__name__)
    lines = ["stateDiagram-v2", "    [*] --> LISTENING"]
    for (phase, target), stimuli in arrows.items():
        lines.append(f"    {phase.name} --> {target.name}: {', '.join(stimuli)}")
    return "\n".join([*lines, "    ENDED --> [*]"])


if __name__ == "__main__":
    print(mermaid())  # noqa: T201 - what this module is for
