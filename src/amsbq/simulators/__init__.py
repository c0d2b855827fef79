"""External simulators: functions that are named in a file, programs with input decks and output files, and servers.

A simulator is built from its description and called at a location x, of shape (D,). It returns an `Observation`, or
raises a `SimulatorError` that says what is wrong and quotes what the simulator printed.
"""
