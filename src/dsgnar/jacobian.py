"""The sketched Jacobian and the sketched residual (Algorithm 2 of the paper); the full Jacobian is never formed.

With `alpha_m = sqrt(w_m / |X_m|)` and the residual `r_j = alpha_m F_m(x_j)`,

    J~ = C J Omega S  (rows x columns),        r~ = C r.

The two sketches commute, so their order is a matter of cost:

  * A sketch of disjoint buckets (`Table`) goes first: row b of `C J` is the gradient of one number, the signed sum of the
    residuals in bucket b. One reverse pass per bucket, no row of J, no scatter; the cosine transform then acts on s rows.
  * A sketch with several hashes (`Hashes`) spreads every row over several buckets, so rows of J are formed, a batch at a
    time, compressed by columns and scattered. This is the paper's order.

Both work through chunks of bounded size: memory grows neither with the number of points nor with points times parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar import streams
from dsgnar.residuals import Residuals
from dsgnar.sketch import ColumnSketch, RowSketch, Table

# Points per chunk. For buckets the intermediate values of a chunk stay in a CPU's cache; rows of J are larger.
CHUNK = 768
ROW_BATCH = 4096  # b of Algorithm 2


@dataclass(frozen=True, eq=False)
class Sketched:
    """A sketched Jacobian with its residual, and the way back to parameter space."""

    jacobian: jax.Array
    residual: jax.Array
    lift: Callable[[jax.Array], jax.Array]
    compress: Callable[[jax.Array], jax.Array]  # the adjoint of `lift`


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Sketches the Jacobian of all residuals with fresh operators at every call."""

    residuals: Residuals
    rows: RowSketch
    columns: ColumnSketch

    def __call__(self, theta: jax.Array, points: tuple, weights: np.ndarray, rng: np.random.Generator) -> Sketched:
        """The sketch at `theta` for the points of each condition, as arrays (n_m, d)."""
        counts = tuple(p.shape[0] for p in points)
        drawn = self.rows.draw(rng, counts)
        column = self.columns.draw(rng, theta.size)
        kept = tuple(t.kept if isinstance(t, Table) else n for t, n in zip(drawn, counts, strict=True))
        alpha = tuple(np.sqrt(weights / np.asarray(kept)).astype(theta.dtype))
        if isinstance(drawn[0], Table):
            jacobian, residual = self._in_streams(theta, points, drawn, alpha, column)
        else:
            hashes = tuple((h.bucket, h.sign) for h in drawn)
            jacobian, residual = self._hashes(theta, tuple(map(jnp.asarray, points)), hashes, alpha, column)
        lift = partial(self._lift, column, parameters=theta.size)
        return Sketched(jacobian, residual, lift, partial(self._compress, column))

    def resized(self, rows: RowSketch, columns: ColumnSketch) -> "Jacobian":
        """Another sketch of the same Jacobian, which shares what is compiled."""
        other = replace(self, rows=rows, columns=columns)
        other.__dict__["_buckets"] = self._buckets
        return other

    def _in_streams(self, theta: jax.Array, points: tuple, drawn: tuple[Table, ...], alpha: tuple, column: tuple):
        """Buckets in equal shares, side by side.

        Points are looked up on the host, so that what is compiled does not depend on how many there are.
        """
        size = drawn[0].index.shape[0]
        cuts = np.array_split(np.arange(size), min(streams.count(), size))
        shares = [tuple((x[t.index[cut]], t.sign[cut]) for x, t in zip(points, drawn, strict=True)) for cut in cuts]

        def work(tables):
            rows, residual = self._buckets(theta, tables, alpha)
            return self._compress(column, rows), residual

        return tuple(jnp.concatenate(part) for part in zip(*streams.each(work, shares), strict=True))

    @cached_property
    def _lift(self) -> Callable:
        return jax.jit(self.columns.lift, static_argnames="parameters")

    @cached_property
    def _compress(self) -> Callable:
        return jax.jit(self.columns.apply)

    def _signed_sum(self, theta: jax.Array, xs: tuple, signs: tuple, alpha: tuple) -> jax.Array:
        """One entry of C r."""
        total = jnp.zeros((), theta.dtype)
        for name, x, sign, a in zip(self.residuals.problem.conditions, xs, signs, alpha, strict=True):
            values = jax.vmap(partial(self.residuals.at_point, name, theta))(x)
            total += a * jnp.sum(jnp.where(sign == 0, 0, sign.astype(theta.dtype) * values))
        return total

    @cached_property
    def _buckets(self) -> Callable:
        @jax.jit
        def build(theta, tables, alpha):
            size = tables[0][0].shape[0]
            depth = sum(sign.shape[1] for _, sign in tables)
            width = max(1, min(size, round(CHUNK / depth)))
            chunks = -(-size // width)

            def cut(table):
                filled = jnp.pad(table, ((0, chunks * width - size), *[(0, 0)] * (table.ndim - 1)), mode="edge")
                return filled.reshape(chunks, width, *table.shape[1:])

            def one(chunk):
                xs, signs = zip(*chunk, strict=True)
                gradient = jax.vmap(jax.value_and_grad(self._signed_sum), in_axes=(None, 0, 0, None))
                return gradient(theta, xs, signs, alpha)

            residual, rows = jax.lax.map(one, jax.tree.map(cut, tables))
            return rows.reshape(chunks * width, -1)[:size], residual.reshape(-1)[:size]

        return build

    @cached_property
    def _hashes(self) -> Callable:
        @jax.jit
        def build(theta, points, hashes, alpha, column):
            size = self.rows.rows(0)
            columns = jax.eval_shape(self.columns.apply, column, theta).shape[0]
            out = jnp.zeros((size, columns), theta.dtype), jnp.zeros(size, theta.dtype)
            for name, x, (bucket, sign), a in zip(
                self.residuals.problem.conditions, points, hashes, alpha, strict=True
            ):
                out = jax.lax.scan(partial(self._scatter, name, theta, a, column), out, _batches(x, bucket, sign))[0]
            return out

        return build

    def _scatter(self, name: str, theta, a, column, carry, batch):
        """Add one batch of rows of J to their buckets."""
        x, bucket, sign = batch
        gradient = jax.vmap(jax.value_and_grad(partial(self.residuals.at_point, name)), in_axes=(None, 0))
        residual, rows = gradient(theta, x)
        rows = self.columns.apply(column, rows)
        jacobian, sketched = carry
        scale = a / np.sqrt(bucket.shape[1]).astype(theta.dtype)
        for k in range(bucket.shape[1]):
            signed = scale * sign[:, k].astype(theta.dtype)
            jacobian = jacobian.at[bucket[:, k]].add(signed[:, None] * rows)
            sketched = sketched.at[bucket[:, k]].add(jnp.where(signed == 0, 0, signed * residual))
        return (jacobian, sketched), None


def _batches(x: jax.Array, bucket: jax.Array, sign: jax.Array) -> tuple:
    """Batches (k, b, ..); padding carries the sign 0."""
    count = x.shape[0]
    size = min(ROW_BATCH, count)
    padding = -count % size
    padded = (
        jnp.concatenate([x, jnp.broadcast_to(x[:1], (padding, x.shape[1]))]),
        jnp.pad(bucket.T, ((0, padding), (0, 0))),
        jnp.pad(sign.T, ((0, padding), (0, 0))),
    )
    return tuple(p.reshape(-1, size, *p.shape[1:]) for p in padded)
