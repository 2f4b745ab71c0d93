"""Calculus on a computer: derivatives in one pass, sine and cosine, precisions, random streams, threads, compiled kernels.

This room knows nothing of equations or networks. `taylor` differentiates any JAX function in one pass, with the arithmetic
of `jets` and the rules of `taylor_rules`; `elementary` has a fast sine and cosine; `precision` keeps single and double
precision side by side; `streams` draws random numbers by purpose; `threads` and `compiled` keep the cores busy.
"""
