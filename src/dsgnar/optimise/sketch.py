"""Random sketches of rows and columns (sections 3.2.1 and 3.2.2 of the paper).

Rows. `C` (s x N) compresses residuals; it is never undone, so an isometry in expectation, `E[C^T C] = I`, is enough.

    CountSketch(s, K)   each residual goes to K random buckets with random signs, scaled by 1/sqrt(K)   (eq. 12)
    Buckets(s)          each residual goes to one bucket, and all buckets are equally full up to one: a random
                        permutation dealt out in turn. Row b of C J is then the gradient of one signed sum, so no row
                        of J is ever formed (`jacobian.py`).
    Buckets(s, depth)   the same with a random choice of the residuals, so many to a bucket
    AllRows()           C = I

Columns. `Omega S` (d x s) compresses parameters; the step is lifted back through it, so it has orthonormal columns.

    SRCT(s)             sign flips D, permutation P, orthonormal DCT-II F, restriction S to s random coordinates
    Groups(s)           s random groups of parameters, equal in number up to one; those of a group move together, each up
                        or down. Costs one pass over the rows, without a transform
    AllColumns()        the identity

Operators are drawn afresh in every iteration from a stream of the run's seed, on the host, in the order of the
conditions; what is drawn is a tuple of small integer arrays, so every operator works for any precision.
"""

import functools
from dataclasses import dataclass, replace
from typing import Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.fft import dct, idct
from jaxtyping import Float, Int

Operator = tuple[Int[np.ndarray, "..."] | Float[np.ndarray, "..."], ...]  # a drawn column sketch


@dataclass(frozen=True, eq=False)
class Table:
    """Where the residuals of one condition go: `index[b, k]` is the k-th residual of bucket b, `sign` 0 where none."""

    index: Int[np.ndarray, "s depth"]
    sign: Int[np.ndarray, "s depth"]
    count: int  # residuals of the condition
    kept: int  # how many of them are dealt out; they stand for all, scaled by sqrt(count / kept)


@dataclass(frozen=True, eq=False)
class Hashes:
    """Where the residuals of one condition go: residual j to the buckets `bucket[:, j]` with the signs `sign[:, j]`."""

    bucket: Int[np.ndarray, "hashes n_m"]
    sign: Int[np.ndarray, "hashes n_m"]


class RowSketch(Protocol):
    """A distribution of row sketches."""

    def rows(self, total: int) -> int:
        """How many rows the sketch has for `total` residuals."""
        ...

    def draw(self, rng: np.random.Generator, counts: tuple[int, ...]) -> tuple[Table, ...] | tuple[Hashes, ...]:
        """One operator: a `Table` or `Hashes` for each condition with so many residuals."""
        ...


@dataclass(frozen=True)
class Buckets:
    """Balanced buckets.

    With `depth`, each bucket holds about so many residuals, of the conditions in proportion to their points, and a random
    choice of the residuals is left out. A bucket of eight is as good a row as one of twenty: both are random combinations
    of equations, and the points are new in the next iteration anyway.

    Conditions with few residuals (the ends of an interval, a value at a point) are not mixed with others: each residual
    weighs as much as thousands of others, and their noise in the same bucket would hide it.
    """

    size: int
    depth: int | None = None

    def rows(self, total: int) -> int:
        return self.size

    def draw(self, rng: np.random.Generator, counts: tuple[int, ...]) -> tuple[Table, ...]:
        alone = self._alone(counts)
        shared, tables, start = self.size - sum(alone), [], self.size - sum(alone)
        for count, own in zip(counts, alone, strict=True):
            kept = self._kept(count, sum(counts), shared)
            tables.append(self._own(start, count) if own else self._filled(self._deal(rng, count, kept, shared)))
            start += own
        return tuple(tables)

    def _alone(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """How many buckets each condition has for itself: one for each residual of the smallest ones, or none."""
        own, left = [0] * len(counts), self.size // 4
        for k in sorted(range(len(counts)), key=lambda k: counts[k]):
            left -= counts[k]
            if left < 0:
                break
            own[k] = counts[k]
        return tuple(own)

    def _own(self, start: int, count: int) -> Table:
        """One residual to a bucket, from bucket `start` on."""
        index, sign = np.zeros((self.size, 1), np.int32), np.zeros((self.size, 1), np.int8)
        index[start : start + count, 0], sign[start : start + count] = np.arange(count), 1
        return Table(index, sign, count, count)

    def _filled(self, table: Table) -> Table:
        """The same with empty buckets at the end, which others have for themselves; they repeat the last one's points."""
        more = ((0, self.size - len(table.index)), (0, 0))
        return replace(table, index=np.pad(table.index, more, "edge"), sign=np.pad(table.sign, more))

    def _kept(self, count: int, total: int, size: int) -> int:
        """How many residuals of a condition are dealt out: all, or full buckets of them."""
        if self.depth is None:
            return count
        return min(count, size * max(1, round(self.depth * count / total)))

    def _deal(self, rng: np.random.Generator, count: int, kept: int, size: int) -> Table:
        depth = -(-kept // size)
        index = np.zeros(depth * size, np.int32)
        sign = np.zeros(depth * size, np.int8)
        index[:kept] = rng.permutation(count)[:kept]
        sign[:kept] = 2 * rng.integers(0, 2, kept, np.int8) - 1
        if depth > 1:
            # An empty slot repeats a residual of its own bucket. Reverse mode multiplies its derivative by the sign 0,
            # which does not silence one that is not finite; so that stays in the bucket to which it belongs.
            index[kept:] = index[kept - size : -size]
        # Conditions with fewer residuals than buckets fill random ones, not always the first.
        turn = rng.permutation(size)
        return Table(index.reshape(depth, size).T[turn], sign.reshape(depth, size).T[turn], count, kept)


@dataclass(frozen=True)
class AllRows:
    """No compression: the rows are the residuals themselves, condition after condition."""

    def rows(self, total: int) -> int:
        return total

    def draw(self, rng: np.random.Generator, counts: tuple[int, ...]) -> tuple[Table, ...]:
        total, tables, start = sum(counts), [], 0
        for count in counts:
            index, sign = np.zeros((total, 1), np.int32), np.zeros((total, 1), np.int8)
            index[start : start + count, 0] = np.arange(count)
            sign[start : start + count] = 1
            tables.append(Table(index, sign, count, count))
            start += count
        return tuple(tables)


@dataclass(frozen=True)
class CountSketch:
    """The paper's sketch, with independent hashes."""

    size: int
    hashes: int = 4

    def rows(self, total: int) -> int:
        return self.size

    def draw(self, rng: np.random.Generator, counts: tuple[int, ...]) -> tuple[Hashes, ...]:
        out = []
        for count in counts:
            bucket = rng.integers(0, self.size, (self.hashes, count), np.int32)
            sign = 2 * rng.integers(0, 2, (self.hashes, count), np.int8) - 1
            out.append(Hashes(bucket, sign))
        return tuple(out)


def dense(operator: tuple[Table | Hashes, ...], rows: int) -> Float[np.ndarray, "s n"]:
    """The matrix C of a drawn operator, for tests and pictures."""
    blocks = []
    for part in operator:
        if isinstance(part, Table):
            matrix = np.zeros((rows, part.count))
            bucket, slot = np.nonzero(part.sign)
            matrix[bucket, part.index[bucket, slot]] = part.sign[bucket, slot] * np.sqrt(part.count / part.kept)
        else:
            hashes, count = part.bucket.shape
            matrix = np.zeros((rows, count))
            for k in range(hashes):
                np.add.at(matrix, (part.bucket[k], np.arange(count)), part.sign[k] / np.sqrt(hashes))
        blocks.append(matrix)
    return np.concatenate(blocks, axis=1)


class ColumnSketch(Protocol):
    """A distribution of column sketches; operators are tuples of arrays that compiled code can take."""

    def draw(self, rng: np.random.Generator, parameters: int) -> Operator: ...

    def apply(self, operator: Operator, rows: Float[Array, "*rows d"]) -> Float[Array, "*rows s"]:
        """`rows @ Omega S`."""
        ...

    def lift(self, operator: Operator, step: Float[Array, " s"], parameters: int) -> Float[Array, " d"]:
        """`Omega S step`."""
        ...


@dataclass(frozen=True)
class SRCT:
    """The subsampled randomised cosine transform."""

    size: int

    def draw(self, rng: np.random.Generator, parameters: int) -> Operator:
        if self.size > parameters:
            raise ValueError(f"the sketch has {self.size} columns, but there are only {parameters} parameters")
        sign = 2 * rng.integers(0, 2, parameters, np.int8) - 1
        order = rng.permutation(parameters).astype(np.int32)
        keep = np.sort(rng.choice(parameters, self.size, replace=False)).astype(np.int32)
        return sign, order, keep

    def apply(self, operator: Operator, rows: Float[Array, "*rows d"]) -> Float[Array, "*rows s"]:
        sign, order, keep = operator
        return dct(rows[..., order] * sign[order].astype(rows.dtype), norm="ortho", axis=-1)[..., keep]

    def lift(self, operator: Operator, step: Float[Array, " s"], parameters: int) -> Float[Array, " d"]:
        sign, order, keep = operator
        spread = idct(jnp.zeros(parameters, step.dtype).at[keep].set(step), norm="ortho")
        return jnp.zeros_like(spread).at[order].set(spread) * sign.astype(step.dtype)


@dataclass(frozen=True)
class Groups:
    """Random groups of parameters with random signs, scaled to orthonormal columns."""

    size: int

    def draw(self, rng: np.random.Generator, parameters: int) -> Operator:
        if self.size > parameters:
            raise ValueError(f"the sketch has {self.size} columns, but there are only {parameters} parameters")
        order = rng.permutation(parameters).astype(np.int32)
        sign = 2.0 * rng.integers(0, 2, parameters) - 1
        depth = -(-parameters // self.size)
        member, weight = np.zeros(depth * self.size, np.int32), np.zeros(depth * self.size)
        member[:parameters], weight[:parameters] = order, sign
        weight = weight.reshape(depth, self.size)
        return member.reshape(depth, self.size), weight / np.linalg.norm(weight, axis=0)

    def apply(self, operator: Operator, rows: Float[Array, "*rows d"]) -> Float[Array, "*rows s"]:
        member, weight = operator
        moved = (rows[..., m] * w.astype(rows.dtype) for m, w in zip(member, weight, strict=True))
        return functools.reduce(jnp.add, moved)

    def lift(self, operator: Operator, step: Float[Array, " s"], parameters: int) -> Float[Array, " d"]:
        member, weight = operator
        return jnp.zeros(parameters, step.dtype).at[member].add(weight.astype(step.dtype) * step)


@dataclass(frozen=True)
class AllColumns:
    """No compression of the parameters: the step lies in the row space of the sketched Jacobian."""

    def draw(self, rng: np.random.Generator, parameters: int) -> Operator:
        return ()

    def apply(self, operator: Operator, rows: Float[Array, "*rows d"]) -> Float[Array, "*rows s"]:
        return rows

    def lift(self, operator: Operator, step: Float[Array, " s"], parameters: int) -> Float[Array, " d"]:
        return step
