"""A method: a vote over rotations that stops where the first two agree."""

from dataclasses import dataclass

import numpy as np

from unswayed.ext import methods


@dataclass(frozen=True, slots=True)
class FirstTwo(methods.Method):
    """Ask two rotations, and the others only where these disagree."""

    name = "first-two"
    about = methods.About(
        title="First two",
        source="another package",
        idea="Ask two rotations, and the others only where these disagree.",
        calls="2 to n",
        equation="z_1 if z_1 = z_2, else argmax_c #{t : z_t = c}",
        helps="the judge is often sure: then it makes two calls",
        cannot="The order it starts with decides when it stops.",
    )

    def asks(self, n):
        return tuple(map(methods.Ask, methods.presentations("cyclic", n)))

    def stops_after(self, n):
        return (2,) if n > 2 else ()

    def decide_table(self, table):
        cells = table.allowed.copy()  # which calls count, shape (items, asks)
        cells[methods.agreement(table.choices[:, :2], cells[:, :2]) == 1, 2:] = False
        counts = methods.count_votes(table.choices, cells, table.n, np.ones(len(table.asks)))
        choices, tied = methods.plurality(counts)
        shares = counts[:, :-1] / np.maximum(cells.sum(axis=1), 1)[:, None]
        return methods.verdict_table(table, choices, cells=cells, scores=shares, tied=tied)
