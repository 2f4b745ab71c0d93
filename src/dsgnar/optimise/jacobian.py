"""The sketched Jacobian and the sketched residual (Algorithm 2 of the paper); the full Jacobian is never formed.

With `alpha_m = sqrt(w_m / |X_m|)` and the residual `r_j = alpha_m F_m(x_j)`,

    J~ = C J Omega S  (rows x columns),        r~ = C r.

The two sketches commute, so their order is a matter of cost:

  * A sketch of disjoint buckets (`Table`) goes first: row b of `C J` is the gradient of one number, the signed sum of the
    residuals in bucket b. One reverse pass per bucket, no row of J, no scatter; the cosine transform then acts on s rows.
  * A sketch with several hashes (`Hashes`) spreads every row over several buckets, so rows of J are formed, a batch at a
    time, compressed by columns and scattered. This is the paper's order.

Both work through chunks of bounded size: memory grows neither with the number of points nor with points times parameters.
`wide` bytes of rows of all parameters are there at a time: they are compressed by columns, or go to their place.
Where the factorisation takes place on the host, the sketch is an array of the host, which it may overwrite: so there is one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from dsgnar.calculus import choices, devices, threads
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import AllColumns, ColumnSketch, Hashes, RowSketch, Table
from dsgnar.optimise.subproblem import AnyArray

Points = Float[np.ndarray, "n_m dimension"]


@dataclass(frozen=True, eq=False)
class Sketched:
    """A sketched Jacobian with its residual, and the way back to parameter space.

    Of several processes only the first has rows: it factorises for all (`agreement.py`).
    """

    jacobian: Float[AnyArray, "rows columns"]
    residual: Float[Array, " rows"]
    lift: Callable[[Float[Array, " columns"]], Float[Array, " d"]]
    compress: Callable[[Float[Array, " d"]], Float[Array, " columns"]]  # the adjoint of `lift`


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Sketches the Jacobian of all residuals with fresh operators at every call."""

    residuals: Residuals
    rows: RowSketch
    columns: ColumnSketch
    chunk: int = 768  # points at a time where buckets go first; their intermediate values stay in a CPU's cache
    batch: int = 4096  # b of Algorithm 2: rows of J at a time where rows are formed
    sub_batch: int = 0  # b': gradients at a time within a batch, which bounds what they store; 0: all of the batch
    wide: int = 2**28  # bytes of rows of all parameters that are made at a time, in each share

    def __post_init__(self) -> None:
        for name, least in (("chunk", 1), ("batch", 1), ("sub_batch", 0), ("wide", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"Jacobian: {name} must be at least {least}, not {getattr(self, name)}")

    def __call__(
        self,
        theta: Float[Array, " d"],
        points: tuple[Points, ...],
        weights: Float[np.ndarray, " conditions"],
        rng: np.random.Generator,
    ) -> Sketched:
        """The sketch at `theta` for the points of each condition."""
        counts = tuple(p.shape[0] for p in points)
        drawn = self.rows.draw(rng, counts)
        column = self.columns.draw(rng, theta.size)
        tables = tuple(part for part in drawn if isinstance(part, Table))
        hashes = tuple((part.bucket, part.sign) for part in drawn if isinstance(part, Hashes))
        kept = tuple(table.kept for table in tables) or counts
        alpha = tuple(np.sqrt(weights / np.asarray(kept)).astype(theta.dtype))
        if tables:
            jacobian, residual = self._in_shares(theta, points, tables, alpha, column)
        else:
            jacobian, residual = self._hashes(theta, tuple(map(jnp.asarray, points)), hashes, alpha, column)
        lift = partial(self._lift, column, parameters=theta.size)
        return Sketched(jacobian, residual, lift, partial(self._compress, column))

    def resized(self, rows: RowSketch, columns: ColumnSketch) -> "Jacobian":
        """Another sketch of the same Jacobian, with the same batches, which shares what is compiled."""
        other = replace(self, rows=rows, columns=columns)
        other.__dict__["_buckets"] = self._buckets
        return other

    def _in_shares(
        self,
        theta: Float[Array, " d"],
        points: tuple[Points, ...],
        drawn: tuple[Table, ...],
        alpha: tuple,
        column: tuple,
    ) -> tuple[Float[AnyArray, "rows columns"], Float[Array, " rows"]]:
        """Buckets in equal shares, side by side, on all devices.

        Points are looked up on the host, so that what is compiled does not depend on how many there are.
        """
        size, homes = drawn[0].index.shape[0], self.residuals.devices
        columns = jax.eval_shape(self.columns.apply, column, theta).shape
        blocks = homes.blocks(size)
        tables = [tuple((x[t.index[cut]], t.sign[cut]) for x, t in zip(points, drawn, strict=True)) for _, cut in blocks]
        room = homes.room(size, columns, theta.dtype) if choices.here().host_factorisation else None
        rooms = [None] * len(blocks) if room is None else homes.parted(room, blocks)

        def work(share):
            (home, _), table, into = share
            return self._share(devices.at(home, theta), table, alpha, column, into)

        shares = list(zip(blocks, tables, rooms, strict=True))
        jacobian, residual = zip(*threads.each(work, shares), strict=True) if shares else ((), ())
        residual = homes.joined(residual, size, ((), theta.dtype))
        if room is not None:
            return homes.filled(room, size), residual
        return homes.joined(jacobian, size, (columns, theta.dtype)), residual

    def _share(
        self, theta: Float[Array, " d"], table: tuple, alpha: tuple, column: tuple, into: np.ndarray | None
    ) -> tuple[Float[Array, "rows columns"] | None, Float[Array, " rows"]]:
        """Buckets of one share, where they are to go on the host; `wide` bytes of rows of all parameters at a time."""
        size = len(table[0][0])
        most = max(1, self.wide // theta.nbytes)
        done, residuals = [], []
        for k in range(0, size, most):
            piece = tuple((x[k : k + most], sign[k : k + most]) for x, sign in table)
            rows, residual = self._buckets(theta, piece, alpha)
            rows = self._compress(column, rows)
            if into is not None:
                into[k : k + most] = rows
            else:
                done.append(rows if most >= size else jax.block_until_ready(rows))
            residuals.append(residual)
        return _whole(done) if done else None, _whole(residuals)

    @cached_property
    def _lift(self) -> Callable:
        return jax.jit(self.columns.lift, static_argnames="parameters")

    @cached_property
    def _compress(self) -> Callable:
        return self.columns.apply if isinstance(self.columns, AllColumns) else jax.jit(self.columns.apply)

    def _signed_sum(self, theta: Float[Array, " d"], xs: tuple, signs: tuple, alpha: tuple) -> Float[Array, ""]:
        """One entry of C r. The value of an empty slot, whose sign is 0, does not count even if it is not a number."""
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
            width = max(1, min(size, round(self.chunk / depth)))
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
                batches = self._batches(x, bucket, sign)
                out = jax.lax.scan(partial(self._scatter, name, theta, a, column), out, batches)[0]
            return out

        return build

    def _scatter(self, name: str, theta, a, column, carry, batch):
        """Add one batch of rows of J to their buckets."""
        x, bucket, sign = batch
        residual, rows = self._rows_of_jacobian(name, theta, x)
        rows = self.columns.apply(column, rows)
        jacobian, sketched = carry
        scale = a / np.sqrt(bucket.shape[1]).astype(theta.dtype)
        for k in range(bucket.shape[1]):
            signed = scale * sign[:, k].astype(theta.dtype)
            jacobian = jacobian.at[bucket[:, k]].add(signed[:, None] * rows, mode="drop")
            sketched = sketched.at[bucket[:, k]].add(signed * residual, mode="drop")
        return (jacobian, sketched), None

    def _rows_of_jacobian(
        self, name: str, theta: Float[Array, " d"], x: Float[Array, "b dimension"]
    ) -> tuple[Float[Array, " b"], Float[Array, "b d"]]:
        """Residuals at a batch of points, and their gradients."""
        gradient = jax.value_and_grad(partial(self.residuals.at_point, name))
        if not self.sub_batch:
            return jax.vmap(gradient, in_axes=(None, 0))(theta, x)
        return jax.lax.map(partial(gradient, theta), x, batch_size=self.sub_batch)

    def _batches(
        self, x: Float[Array, "n_m dimension"], bucket: Int[Array, "hashes n_m"], sign: Int[Array, "hashes n_m"]
    ) -> tuple[Array, ...]:
        """Points (k, b, dimension), buckets and signs (k, b, hashes) in batches.

        Padding repeats a point and goes to a bucket that does not exist, so that scattering drops it: with a factor of
        zero instead, a residual that is not finite would reach a bucket a second time.
        """
        count = x.shape[0]
        size = min(self.batch, count)
        padding = -count % size
        nowhere = self.rows.rows(0)
        x = jnp.concatenate([x, jnp.broadcast_to(x[:1], (padding, x.shape[1]))])
        bucket = jnp.pad(bucket.T, ((0, padding), (0, 0)), constant_values=nowhere)
        sign = jnp.pad(sign.T, ((0, padding), (0, 0)))
        return tuple(p.reshape(-1, size, *p.shape[1:]) for p in (x, bucket, sign))


def _whole(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
