"""Solving a problem: from settings and a method to a solution.

entry         `solve(problem)`
loop          one iteration after the other: `advance` from a state to the next, `run` to the end
context       what does not change during a run;  state: what does, as one value
settings      what a person may leave open, and what is in force;  method: parts and constants
stages        which target, precision and points are in force, and when to stop;  stop: why
collocation   training and held-out points;  march: time intervals;  model: a problem with a network
record        a row for each iteration, and what was reached
observers     who sees a run;  interruption: Ctrl-C and SIGTERM;  clock: seconds
inference     standard errors of coefficients (coefficients, gauss_newton);  fit: how well data are fitted
solution      what comes out;  function, evaluation: as a function;  advice: what would help;  abilities: export, plot, save
"""
