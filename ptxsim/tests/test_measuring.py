"""Contents of output elements, measured on coded inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import engine, kernels
from ptxsim import Module, NotLinear, contents

N = 1000
NUMBERS = np.arange(N)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    source = tmp_path_factory.mktemp("contents") / "contents.cu"
    source.write_text(kernels("contents.cu"))
    return Module(source, engine=engine(), checked=True)


class Launches:
    """A kernel as ``contents`` takes it, which counts its launches."""

    def __init__(self, module: Module, name: str, elements: int, how: int) -> None:
        self._kernel, self._elements, self._how = module.kernel(name), elements, how
        self.count = 0

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        self.count += 1
        out = np.zeros(self._elements, np.float32)
        self._kernel[-(-N // 128), 128](values, out, values.size, self._how)
        return out


@pytest.mark.parametrize(
    ("how", "right"),
    [
        (0, np.ones(N)),
        (1, NUMBERS % 64 < 32),
        (2, 1 + (NUMBERS == N - 1)),
        (3, 1 + (NUMBERS % 128 == 0) * (NUMBERS < 896) - (NUMBERS % 128 == 127)),
    ],
)
@pytest.mark.parametrize("expected", [None, np.ones(N)], ids=["unknown", "known"])
def test_a_sum_is_known_by_a_few_launches(
    module: Module, how: int, right: NDArray[Any], expected: NDArray[Any] | None
) -> None:
    launches = Launches(module, "sums", 1, how)
    found = contents(launches, np.zeros(N, np.float32), 0, expected=expected)
    assert found.shape == (N,)
    np.testing.assert_array_equal(found, right)
    assert launches.count <= 40


def test_factors_of_several_elements(module: Module) -> None:
    for off in (-1, -2):
        at = [0, 5, N - 1]
        found = contents(Launches(module, "smooth", N, off), np.zeros(N, np.float32), at)
        right = np.zeros((3, N))
        for row, i in zip(right, at, strict=True):
            for place, factor in ((i + off, 0.25), (i, 0.5), (i + 1, 0.25)):
                if 0 <= place < N:
                    row[place] += factor
        np.testing.assert_array_equal(found, right)


def test_what_is_not_linear_is_no_sum(module: Module) -> None:
    with pytest.raises(NotLinear):
        contents(Launches(module, "sums", 1, 4), np.zeros(N, np.float32), 0)


A = np.zeros((37, 21), np.float16)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda a: a.T,
        lambda a: -a.sum(axis=1),
        lambda a: (a - np.roll(a, 1, axis=0)).astype(np.float16),
        lambda a: np.cumsum(a, axis=0) * np.float16(0.125),
        lambda a: a.astype(np.float32) * np.float32(0.1) + a[::-1] * np.float32(0.3),
    ],
    ids=["moved", "negative", "differences", "scaled", "no whole numbers"],
)
def test_any_linear_function(kernel: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """As one that is applied to each element alone has it."""
    elements = [0, 7, 20, 30]
    found = contents(kernel, A, elements)
    for place in range(0, A.size, 5):
        one = np.zeros_like(A)
        one.reshape(-1)[place] = 1
        got = np.asarray(kernel(one), np.float64).reshape(-1)[elements]
        np.testing.assert_allclose(found.reshape(4, -1)[:, place], got, atol=1e-4)
