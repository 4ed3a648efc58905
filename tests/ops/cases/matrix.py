# SPDX-License-Identifier: Apache-2.0
"""Cases of ops/matrix, from NumPy."""
import numpy as np

from golden import FLOATS, NUMBERS, Golden, Like, rng



def draw(dtype, *shape):
    return rng.integers(-9, 9, shape).astype(dtype) if "int" in dtype else rng.standard_normal(
        shape).astype(dtype)


def regular(dtype, *shape):
    """Well conditioned: the unit matrix and a little noise."""
    return (2 * np.eye(shape[-1]) + 0.3 * rng.standard_normal(shape)).astype(dtype)


def transposed(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


def flag(value):
    return "true" if value else "false"


def products(g):
    for dtype in NUMBERS:
        for m, k, n in ((2, 3, 4), (1, 1, 1), (7, 5, 1), (1, 5, 7), (0, 3, 2), (2, 0, 3), (3, 2, 0),
                        (9, 11, 10)):
            for ta, tb in ((0, 0), (0, 1), (1, 0), (1, 1)):
                if m * n * k > 100 and (ta, tb) != (1, 1):
                    continue
                a, b = draw(dtype, *((k, m) if ta else (m, k))), draw(dtype, *((n, k) if tb else (k, n)))
                g.op(f"MatMul/{dtype}/{m}x{k}x{n}-{ta}{tb}", "MatMul", [a, b],
                     [transposed(a, ta) @ transposed(b, tb)],
                     {"transpose_a": flag(ta), "transpose_b": flag(tb)}, grad2=(m, k, n) == (2, 3, 4))
        for shape in ((2,), (), (0,), (1, 2, 1, 1, 1, 2)):
            for tx, ty in ((0, 0), (0, 1), (1, 0), (1, 1)):
                x = draw(dtype, *shape, *((3, 2) if tx else (2, 3)))
                y = draw(dtype, *shape, *((4, 3) if ty else (3, 4)))
                g.op(f"BatchMatMul/{dtype}/{len(shape)}-{tx}{ty}", "BatchMatMul", [x, y],
                     [transposed(x, tx) @ transposed(y, ty)], {"adj_x": flag(tx), "adj_y": flag(ty)})
    for dtype in FLOATS:
        b = Like(dtype, (300, 150), 89, 0.02, -1)
        g.op(f"MatMul/{dtype}/large-row", "MatMul", [Like(dtype, (1, 300), 97, 0.02, -1), b],
             [(Like(dtype, (1, 300), 97, 0.02, -1).array.astype(float) @ b.array).astype(dtype)],
             tol=1e-4 if dtype == "float32" else 1e-12, nograd="too large")
        x = np.array([[np.nan, 1], [2, np.inf]], dtype)
        g.op(f"MatMul/{dtype}/special", "MatMul", [x, np.ones((2, 1), dtype)],
             [np.array([[np.nan], [np.inf]], dtype)], nograd="not finite")
    g.op("MatMul/int32/wraps", "MatMul", [np.array([[2**31 - 1]], np.int32), np.array([[2]], np.int32)],
         [np.array([[-2]], np.int32)])
    g.error("MatMul/inner", "MatMul", [np.ones((2, 3)), np.ones((2, 3))], "inner dimensions 3 and 2 differ")
    # Operands without elements, a result without end.
    n = 2**31 - 1
    huge = f"a = Placeholder() {{dtype=float32, shape=[%s,0]}}\n" \
        f"b = Placeholder() {{dtype=float32, shape=[0,%s]}}\ny = MatMul(a, b)\nz = Neg(y)\n"
    g.graph("MatMul/huge", huge % (n, n), [], ops="MatMul",
            error=f"a result of shape [{n},{n}] is too large")
    g.graph("MatMul/huge-unknown", huge % ("?", "?"),
            [("z", {"a": np.ones((n, 0), np.float32), "b": np.ones((0, n), np.float32)},
              "too large")], ops="MatMul")
    g.error("MatMul/rank", "MatMul", [np.ones(3), np.ones((3, 2))], "matri")
    g.error("BatchMatMul/batch", "BatchMatMul", [np.ones((2, 2, 3)), np.ones((3, 3, 2))],
            "batch dimensions differ")
    g.error("BatchMatMul/inner", "BatchMatMul", [np.ones((2, 2, 3)), np.ones((2, 2, 3))],
            "inner dimensions 3 and 2 differ")
    g.error("BatchMatMul/rank", "BatchMatMul", [np.ones(3), np.ones((3, 2))], "rank")


SHAPES = [(3, 3), (1, 1), (2, 3, 3), (0, 2, 2), (2, 0, 0), (1, 2, 1, 2, 1, 2, 2, 2)]


def inverses(g):
    for dtype in FLOATS:
        tol = 1e-4 if dtype == "float32" else 1e-10
        for shape in SHAPES:
            a = regular(dtype, *shape)
            for adjoint in (False, True):
                g.op(f"MatrixInverse/{dtype}", "MatrixInverse", [a],
                     [transposed(np.linalg.inv(a), adjoint).astype(dtype)], {"adjoint": flag(adjoint)}, tol,
                     grad2=shape == (3, 3))
            g.op(f"MatrixDeterminant/{dtype}", "MatrixDeterminant", [a],
                 [np.asarray(np.linalg.det(a), dtype)], tol=tol, grad2=shape == (3, 3))
        g.op(f"MatrixDeterminant/{dtype}/singular", "MatrixDeterminant",
             [np.array([[1, 2], [2, 4]], dtype)], [np.array(0, dtype)], nograd="singular")
        swapped = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 3]], dtype)
        g.op(f"MatrixDeterminant/{dtype}/swapped", "MatrixDeterminant", [swapped], [np.array(-3, dtype)])
        for shape in SHAPES:
            n = shape[-1]
            for k in (1, 4, 0) if shape == (3, 3) else (2,):
                a, b = regular(dtype, *shape), draw(dtype, *shape[:-1], k)
                for adjoint in (False, True):
                    x = np.linalg.solve(transposed(a, adjoint), b) if b.size else b
                    g.op(f"MatrixSolve/{dtype}", "MatrixSolve", [a, b], [x.astype(dtype)],
                         {"adjoint": flag(adjoint)}, tol)
                    for lower in (True, False):
                        t = np.tril(a) if lower else np.triu(a)
                        x = np.linalg.solve(transposed(t, adjoint), b) if b.size else b
                        g.op(f"MatrixTriangularSolve/{dtype}", "MatrixTriangularSolve", [a, b],
                             [x.astype(dtype)], {"lower": flag(lower), "adjoint": flag(adjoint)}, tol)
    singular = np.array([np.eye(2), [[1.0, 2], [2, 4]]])
    g.error("MatrixInverse/singular", "MatrixInverse", [singular], "matrix 1 is singular: pivot 2 is zero")
    g.error("MatrixInverse/square", "MatrixInverse", [np.ones((2, 3))], "square, not [2,3]")
    g.error("MatrixDeterminant/square", "MatrixDeterminant", [np.ones((2, 3))], "square, not [2,3]")
    g.error("MatrixDeterminant/rank", "MatrixDeterminant", [np.ones(3)], "rank|square")
    g.error("MatrixSolve/singular", "MatrixSolve", [singular, np.ones((2, 2, 1))], "matrix 1 is singular")
    g.error("MatrixSolve/shapes", "MatrixSolve", [np.ones((2, 2)), np.ones((3, 1))], "fit")
    g.error("MatrixSolve/square", "MatrixSolve", [np.ones((2, 3)), np.ones((2, 1))], "square")
    g.error("MatrixTriangularSolve/singular", "MatrixTriangularSolve",
            [np.array([[1.0, 0], [5, 0]]), np.ones((2, 1))], "diagonal element 2 is zero")
    g.error("MatrixTriangularSolve/shapes", "MatrixTriangularSolve", [np.ones((2, 2)), np.ones((3, 1))], "fit")


def cholesky(g):
    for dtype in FLOATS:
        tol = 1e-4 if dtype == "float32" else 1e-10
        for shape in SHAPES:
            r = regular(dtype, *shape)
            a = (r @ transposed(r, True)).astype(dtype)
            l = np.linalg.cholesky(a) if a.size else a
            upper_is_ignored = a + np.triu(np.full(shape[-2:], 7, dtype), 1)
            g.op(f"Cholesky/{dtype}", "Cholesky", [upper_is_ignored.astype(dtype)], [l.astype(dtype)], tol=tol,
                 nograd="the gradient is that of a symmetric input; cholesky/symmetric checks it")
            d = draw(dtype, *shape)
            if a.size:
                inverse = np.linalg.inv(l)
                phi = np.tril(transposed(l, True) @ np.tril(d))
                phi = phi - 0.5 * np.eye(shape[-1]) * phi
                x = transposed(inverse, True) @ phi @ inverse
                x = (x + transposed(x, True)) / 2
            else:
                x = a
            g.op(f"CholeskyGrad/{dtype}", "CholeskyGrad", [l.astype(dtype), d], [x.astype(dtype)],
                 tol=tol * 10, grad2=shape == (3, 3))
    # The derivative along a symmetric direction: f(a + t s) for f = sum(w * Cholesky(a)).
    r, s, w = regular("float64", 3, 3), draw("float64", 3, 3), draw("float64", 3, 3)
    a, s, t = r @ r.T, s + s.T, 1e-5
    slope = ((w * np.linalg.cholesky(a + t * s)).sum() - (w * np.linalg.cholesky(a - t * s)).sum()) / (2 * t)
    g.graph("Cholesky/symmetric", """
        a = Placeholder() {dtype=float64, shape=[3,3]}
        w = Placeholder() {dtype=float64, shape=[3,3]}
        s = Placeholder() {dtype=float64, shape=[3,3]}
        l = Cholesky(a)
        d = CholeskyGrad(l, w)
        product = Mul(d, s)
        axes = Const() {dtype=int32, value=[0,1]}
        slope = Sum(product, axes)
        """, [("", {"a": a, "w": w, "s": s}, {"slope": np.float64(slope)})], ops="Cholesky CholeskyGrad",
            tol=1e-7)
    both = np.array([[4.0, 1, -0.5], [1, 3, 0.25], [-0.5, 0.25, 2]])
    g.op("Cholesky/differences", "Cholesky", [both], [np.linalg.cholesky(both)], symmetric=True, grad2=True)
    g.error("Cholesky/indefinite", "Cholesky", [np.array([[1.0, 0], [2, 1]])],
            "matrix 0 is not positive definite: leading minor 2")
    g.error("Cholesky/square", "Cholesky", [np.ones((2, 3))], "square, not [2,3]")
    g.error("CholeskyGrad/shapes", "CholeskyGrad", [np.ones((2, 2)), np.ones((3, 3))], "shape|fit")


def band(g):
    types = ["float32", "float64", "int32", "int64", "int8", "uint8", "int16", "uint16"]
    for dtype in types:
        for shape in ((4, 5), (5, 3), (2, 3, 3), (0, 3), (3, 0), (1, 2, 1, 2, 1, 2, 2, 3)):
            x = rng.integers(1, 9, shape).astype(dtype)
            for lower, upper in ((0, 0), (1, -1), (-1, 0), (2, 1), (-1, -1), (9, 0)):
                if dtype not in FLOATS and (lower, upper) != (2, 1):
                    continue
                i, j = np.indices(shape[-2:])
                keep = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
                g.op(f"MatrixBandPart/{dtype}", "MatrixBandPart", [x, np.int64(lower), np.int64(upper)],
                     [(x * keep).astype(dtype)], grad2=shape == (4, 5) and lower == 2)
    g.error("MatrixBandPart/rank", "MatrixBandPart", [np.ones(3), np.int64(0), np.int64(0)], "rank")
    g.error("MatrixBandPart/number", "MatrixBandPart", [np.ones((3, 3)), np.zeros(2, np.int64), np.int64(0)],
            "scalar")


with Golden("matrix") as golden:
    products(golden)
    inverses(golden)
    cholesky(golden)
    band(golden)
