"""Long products in blocks against the product as a whole."""

import pytest

torch = pytest.importorskip("torch")

from trainmark.backends.torch import products  # noqa: E402

ROWS = [1, 7, 512, 2000, 4001]


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(products, "SHORT_BLOCK", 4096)
    monkeypatch.setattr(products, "LONG_BLOCK", 8192)


def random(*shape):
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))) - 0.5


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("bias", [None, random(5)])
def test_rows_times(rows, bias):
    x, kernel = random(rows, 13), random(5, 13).t()
    expected = x @ kernel + (0 if bias is None else bias)
    torch.testing.assert_close(products.rows_times(x, kernel, bias), expected)


@pytest.mark.parametrize("rows", ROWS)
def test_sum_over_rows(rows):
    left, x = random(rows, 5), random(rows, 13)
    torch.testing.assert_close(products.sum_over_rows(left, x), left.t() @ x)


def test_few_wide_rows_on_many_cores_are_one_block(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    x, kernel = random(128, 2304), random(5, 2304).t()
    torch.testing.assert_close(products.rows_times(x, kernel), x @ kernel)
    torch.testing.assert_close(products.sum_over_rows(random(128, 5), x), random(128, 5).t() @ x)


def test_columns_side_by_side_can_be_multiplied_too():
    left, kernel = random(5, 4001).t(), random(5, 13)
    torch.testing.assert_close(products.rows_times(left, kernel), left @ kernel)
    torch.testing.assert_close(products.sum_over_rows(left, random(4001, 13)), left.t() @ random(4001, 13))
