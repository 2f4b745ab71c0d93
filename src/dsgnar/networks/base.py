"""What every network has in common (paper, section 4.3 and Appendix B).

A network u_theta maps one point x of the domain, an array of shape (n_in,), to the values of the unknowns
there, an array of shape (n_out,). It comes in two parts:

- an `Architecture`, a small frozen dataclass that a person writes down (`MLP(widths=(16,) * 6)`), and
- the module that its `build` returns: a callable `equinox.Module` whose floating-point arrays are theta, all
  of it. Whatever is not trained is stored as plain Python numbers.

Weights are stored as (inputs, outputs) and applied as `h @ W + b`, the transpose of the paper's `W h + b`: a
batch of points then stays the leading axis in every layer and nothing is ever transposed.

Initial values are drawn by NumPy in double precision and rounded to the precision asked for: one key means one
network in both precisions and on every device, and nothing has to be compiled for it.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.calculus.precision import x64
from dsgnar.networks.embeddings import Inputs, check_count


@dataclasses.dataclass(frozen=True)
class Architecture(abc.ABC):
    """A description of a network, independent of the problem that it will solve."""

    @abc.abstractmethod
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> eqx.Module:
        """A freshly initialised network from the coordinates `inputs` to `outputs` unknowns.

        Whatever in the module is not an array must not depend on the bounds of the time axis: time marching
        adds networks that were built for different intervals (paper, section 4.4).
        """


def from_key(key: Array) -> np.random.Generator:
    """The stream of random numbers that belongs to a JAX key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def lecun_normal(rng: np.random.Generator, n_in: int, n_out: int) -> np.ndarray:
    """Variance 1/n_in (LeCun et al. 1998): a sum of features of unit size is of unit size."""
    return rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)


def orthogonal(rng: np.random.Generator, n_in: int, n_out: int, gain: float = 5 / 3) -> np.ndarray:
    """`gain` times orthonormal rows or columns, whichever fit; 5/3 makes up for the contraction of tanh."""
    Q, R = np.linalg.qr(rng.normal(size=(max(n_in, n_out), min(n_in, n_out))))
    Q = gain * Q * np.sign(np.diag(R))  # the signs make the distribution uniform (Mezzadri 2007)
    return Q if n_in >= n_out else Q.T


CALM = 0.1  # outputs that are to begin near a value begin so much smaller about it


class Affine(eqx.Module):
    """h @ weight + bias."""

    weight: Array
    bias: Array

    @classmethod
    def of(cls, weight: np.ndarray, dtype: Any, bias: np.ndarray | float = 0.0) -> "Affine":
        """The map with these initial values; one number is repeated for all biases."""
        return cls(to_array(weight, dtype), to_array(np.broadcast_to(bias, weight.shape[1]), dtype))

    def __call__(self, h: Array) -> Array:
        return h @ self.weight + self.bias

    def scaled(self, h: Array, scale: Array | float) -> Array:
        """scale (h @ weight + bias), with the scale moved onto the parameters.

        That costs one product per weight instead of one per point, neuron and Taylor coefficient: sketched
        Jacobians of the networks of the paper's Burgers examples took 10 to 40 % less time on two CPU cores.
        """
        return h @ (scale * self.weight) + scale * self.bias


def begun_at(network: Any, levels: Sequence[float]) -> Any:
    """A network that begins near these values, where they are not zero; one whose last map is not affine stays as it is."""
    last = getattr(network, "output", None)
    if not any(levels) or not isinstance(last, Affine):
        return network
    near, calm = np.asarray(levels), np.where(np.asarray(levels) != 0, CALM, 1.0)
    begun = Affine.of(np.asarray(last.weight) * calm, last.weight.dtype, np.asarray(last.bias) + near)
    return eqx.tree_at(lambda n: n.output, network, begun)


def to_array(values: np.ndarray | float, dtype: Any) -> Array:
    """Initial values as a JAX array, rounded to `dtype`."""
    return jnp.asarray(np.asarray(values, dtype))


def check_widths(widths: Sequence[int], where: str) -> tuple[int, ...]:
    """The widths of the hidden layers as a tuple of positive integers, or an error."""
    if isinstance(widths, str) or not isinstance(widths, Sequence | np.ndarray) or len(widths) == 0:
        raise ValueError(f"{where}: widths must list the hidden layers, as in (16, 16, 16), not {widths!r}")
    return tuple(check_count(w, f"{where}: widths[{i}]") for i, w in enumerate(widths))


def count_parameters(module: Any) -> int:
    """d_theta: how many trained numbers `module` holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array)))


@x64
def cast(module: Any, dtype: Any) -> Any:
    """`module` with every trained array rounded to `dtype`."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, module)


@x64
def check_network(module: Any, n_in: int, n_out: int, dtype: Any) -> None:
    """Raise a ValueError unless `module` maps (n_in,) to (n_out,) in `dtype` and has something to train.

    Nothing is computed: the shapes come from an abstract evaluation.
    """
    name, wanted = type(module).__name__, f"from an array of shape ({n_in},) to one of shape ({n_out},)"
    if not callable(module):
        raise ValueError(f"the network {name} cannot be called: give it a __call__(self, x) {wanted}")
    if count_parameters(module) == 0:
        raise ValueError(
            f"the network {name} has nothing to train: make it an equinox.Module (or another pytree) whose"
            " parameters are floating-point arrays; integers and Python numbers count as fixed"
        )
    try:
        result = eqx.filter_eval_shape(module, jax.ShapeDtypeStruct((n_in,), dtype))
    except Exception as error:
        raise ValueError(
            f"the network {name} does not accept one point, an array of shape ({n_in},) with one number per"
            f" axis of the domain: {error}. Let it map one point, not a batch, {wanted}"
        ) from error
    shape = getattr(result, "shape", None)
    if shape is None:
        kind = type(result).__name__
        raise ValueError(f"the network {name} returns a {kind}: let it return one array, {wanted}")
    if shape != (n_out,):
        raise ValueError(
            f"the network {name} maps one point of shape ({n_in},) to shape {shape}, but the problem has"
            f" {n_out} unknown(s): let it return an array of shape ({n_out},), one number per unknown"
        )
    expected = np.dtype(dtype)
    if result.dtype != expected:
        raise ValueError(
            f"the network {name} returns {result.dtype} for {expected} points: build it in {expected}, or"
            f" pass it through dsgnar.networks.cast(network, '{expected}')"
        )
