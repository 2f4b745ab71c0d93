"""The optimiser: from residuals at points to the next parameters (Algorithms 1 to 4 of the paper).

It knows a problem through its residuals only, and nothing of stages, time intervals, files or screens.

    residuals    residuals of all conditions, their mean squares, the weighted loss and its gradient
    sketch       random operators that compress residuals (rows) and parameters (columns)
    jacobian     the sketched Jacobian, without ever forming the Jacobian                        Algorithm 2
    subproblem   damped steps of the sketched model, and the lambda of a radius                  Algorithm 3
    factorise    factorisations of the sketched Jacobian: SVD, and the fastest for its shape
    band         the fast one: reduction to a band matrix, then one banded LU per lambda
    blas         matrix products on sub-blocks in place
    radius       the radius whose step has the target ratio                                      Algorithm 3
    weights      reweighting of the conditions                                                   Algorithm 4
    optimiser    one iteration, composed of these parts                                          Algorithm 1
"""
