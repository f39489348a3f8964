"""Compose: costs of steps in, cost or ε of a run out. Pure functions on arrays, and two small filters.

| module | what | when it holds |
|---|---|---|
| `additive` | sum of costs; basic (ε, δ) | costs fixed in advance |
| `advanced` | advanced composition of (ε, δ) | fixed in advance; for comparison |
| `holder` | the Hölder rule of paper S0 | a population, costs that do not depend on the past |
| `product` | the product rule of paper S1 | never |
| `expected`, `one_holder` | averages over runs | averages exact, or bounded with a stated failure |
| `ex_post` | the realised costs of one run | any adaptivity; an ex-post statement |
| `filters` | drop records at their budget | always; ordinary DP |
| `orders` | which orders to keep | chosen before the run, from public quantities |
| `averages` | the mean inside `expected` and `one_holder` | |

A cost is λ·D_{λ+1} = log E[(p/q)^λ], λ = order − 1, with orders on the last axis.
"""

from bayesdp.compose import (
    additive,
    advanced,
    averages,
    ex_post,
    expected,
    filters,
    holder,
    one_holder,
    orders,
    product,
)

__all__ = [
    "additive",
    "advanced",
    "averages",
    "ex_post",
    "expected",
    "filters",
    "holder",
    "one_holder",
    "orders",
    "product",
]
