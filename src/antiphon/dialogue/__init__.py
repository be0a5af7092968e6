"""Who speaks when, as one pure function: (state, stimulus) -> (state, commands).

No clock, no input, no output, no thread: waits are commands (`SetTimer`) and come back as stimuli (`TimerFired`),
so a recorded list of stimuli gives the same commands for ever, and gives others under other settings.
"""
