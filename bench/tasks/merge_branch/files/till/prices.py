"""Prices are in cents."""


def price(kind, cents):
    return cents


def total(articles):
    return sum(price(kind, cents) for kind, cents in articles)
