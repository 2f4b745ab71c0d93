"""What a wall does to a medium at rest, u_tau = D u_dd - v u_d + c u with u = 0 at first, at the distance d from the wall.

With s = (4 D tau)^(1/2), eta = d / s, beta = v / (2 D), gamma = beta^2 - c / D and r its root, all follow from

    W(a) = exp((beta + a) d + (a^2 - gamma) D tau) erfc(eta + a s / 2),

which solves the equation for every a:

    values 1 at the wall                   N_0 = (W(r) + W(-r)) / 2                                (Ogata and Banks 1961)
    u_d = k u - 1 there                    R = -f[-r, r, k - beta],   f(a) = a W(a)                 (a divided difference)
    the n-th of a series in roots of tau   N_n = exp(beta d - gamma D tau) s^n i^n erfc(eta),  n > 0

(i^n erfc is the n-fold integral of erfc). Without v and c, r = 0, N_0 = erfc(eta), R = (N_0 - W(k)) / k (Carslaw and Jaeger
1959), dN_n/dd = -N_(n-1) and dN_n/dtau = D N_(n-2). Where nodes of the divided difference lie close together, it is a
derivative; where all three do, R is a series of the N_n.
"""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jax.scipy.special import erfc
from jaxtyping import Array

FAR = 8.0  # from where on erfcx is its asymptotic series, to 1e-12
ROOT_PI = math.sqrt(math.pi)
TERMS = 8  # of the series of R
SHORT = 0.5  # s (r + |k - beta|), up to which it serves
SAME_NODE = 1e-6  # of their sizes: nodes that are taken for one


@dataclass(frozen=True)
class Medium:
    """A medium beside a wall."""

    diffusivity: float
    drift: float = 0.0  # v, away from the wall
    growth: float = 0.0  # c

    @property
    def beta(self) -> float:
        return self.drift / (2 * self.diffusivity)

    @property
    def root(self) -> float:
        return math.sqrt(self.beta**2 - self.growth / self.diffusivity)

    def width(self, tau: Array) -> Array:
        """s."""
        return jnp.sqrt(4 * self.diffusivity * tau)

    def gauss(self, d: Array, tau: Array) -> Array:
        """exp(beta d - gamma D tau - eta^2)."""
        return jnp.exp(self.growth * tau - ((d - self.drift * tau) / self.width(tau)) ** 2)

    def wave(self, a: float, d: Array, tau: Array) -> Array:
        """W(a)."""
        s = self.width(tau)
        if a > 0:
            return self.gauss(d, tau) * erfcx(d / s + a * s / 2)
        faster = (a * a - self.root**2) * self.diffusivity
        return jnp.exp((self.beta + a) * d + faster * tau) * erfc(d / s + a * s / 2)

    def step(self, d: Array, tau: Array) -> Array:
        """N_0."""
        return (self.wave(self.root, d, tau) + self.wave(-self.root, d, tau)) / 2

    def series(self, numbers: tuple[float, ...], d: Array, tau: Array) -> Array:
        """The sum of c_n N_n, n = 1, 2, ..; by 2 n i^n erfc = i^(n-2) erfc - 2 eta i^(n-1) erfc."""
        s = self.width(tau)
        eta, total = d / s, jnp.zeros(())
        before = 2 / ROOT_PI * self.gauss(d, tau)
        now = self.gauss(d, tau) * erfcx(eta) if self.drift or self.growth else erfc(eta)
        for n, number in enumerate(numbers, 1):
            before, now = now, (before - 2 * eta * now) / (2 * n)
            total = total + number * s**n * now if number else total
        return total

    def flux(self, k: float, d: Array, tau: Array, end: float) -> Array:
        """R, for times up to an end."""
        k, r = k - self.beta, self.root
        if (r + abs(k)) * math.sqrt(4 * self.diffusivity * end) <= SHORT:
            numbers = [1.0]
            for n in range(1, TERMS):
                numbers.append(-k * numbers[-1] + (0.0 if n % 2 else r**n))
            return self.series(tuple(numbers), d, tau)
        near = r if k > 0 else -r  # the node next to k
        if abs(k - near) > SAME_NODE * (abs(k) + r):
            slope = (k * self.wave(k, d, tau) - near * self.wave(near, d, tau)) / (k - near)  # f[near, k]
        else:
            W, s = self.wave(near, d, tau), self.width(tau)
            slope = W + near * ((d + near * s * s / 2) * W - s / ROOT_PI * self.gauss(d, tau))
        return (self.step(d, tau) - slope) / (k + near)  # f[-r, r] = N_0


def erfcx(z: Array) -> Array:
    """exp(z^2) erfc(z)."""
    near = jnp.where(z < FAR, z, FAR)
    far = jnp.where(z < FAR, FAR, z)
    inverse, total = 1 / (2 * far * far), jnp.ones_like(z)
    for n in range(10, 0, -1):  # 1 - 1/(2 z^2) (1 - 3/(2 z^2) (1 - ..
        total = 1 - (2 * n - 1) * inverse * total
    return jnp.where(z < FAR, jnp.exp(near * near) * erfc(near), total / (far * ROOT_PI))
