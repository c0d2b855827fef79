"""External simulators: functions by name, programs with input decks and output files, and servers.

The input is the location x of one evaluation, of shape (D,), and the description of a simulator.
The output is an `Observation`, or a `SimulatorError` that says what is wrong and quotes the simulator's output.
"""
