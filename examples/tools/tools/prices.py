"""Tools of the example: prices of products, and a way to change them."""

from typing import Annotated

from msgspec import Meta

from moot import tool

PRICES = {"lamp": [10.0, 10.8], "chair": [45.0]}


@tool(idempotent=True)
def price_history(sku: Annotated[str, Meta(description="the product")]) -> list[float]:
    """Past prices of a product, the oldest first."""
    return PRICES.get(sku, [])


@tool(dangerous=True)
def set_price(sku: str, price: Annotated[float, Meta(gt=0)]) -> float:
    """Set the price of a product. A person agrees first."""
    PRICES.setdefault(sku, []).append(price)
    return price
