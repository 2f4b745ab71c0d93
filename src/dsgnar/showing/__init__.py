"""What a person sees of a run, and files for other programs.

progress.py     the live view while a run is solved
figures/        the solution page (matplotlib), and pictures of the method
report/         `dsgnar show` and `dsgnar report`: a table, and an interactive page
export.py       the solution for other programs

Shared by all of them:

words.py        numbers, durations, symbols and names of quantities
colours.py      colours, and which part of a colour map a range of values gets
iterations.py   what a history shows: accepted and rejected steps, switches of stage and precision
planes.py       the planes on which a solution is shown
quality.py      the error of a solution, or the residual where no reference is known
"""
