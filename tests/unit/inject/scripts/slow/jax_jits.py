"""A step that is made in each turn of the loop, and what else differs from turn to turn."""

import sys

import jax
import jax.numpy as jnp

what = sys.argv[1] if len(sys.argv) > 1 else "nothing"
weights = jnp.ones((8, 4))
inputs = jax.random.normal(jax.random.key(0), (16, 8))
rate = 0.01
settings = {"rate": 0.01}


class Network:
    """Has a step as a method."""

    def __init__(self, rate):
        self.rate = rate

    def step(self, weights, x):
        return stepped(weights, x, 1.0, self.rate)


def stepped(weights, x, scale, rate):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((scale * x @ w - 1) ** 2))(weights)
    return weights - rate * gradient, loss


def made(scale):
    @jax.jit
    def step(weights, x):
        return stepped(weights, x, scale, 0.01)

    return step


def with_a_global():
    return jax.jit(lambda weights, x: stepped(weights, x, 1.0, rate))


def with_a_dictionary():
    return jax.jit(lambda weights, x: stepped(weights, x, 1.0, settings["rate"]))


def with_options(scale, number):
    options = {"static_argnums": 2} if number % 2 else {}
    return jax.jit(lambda weights, x, scale: stepped(weights, x, scale, 0.01), **options)


def of_a_network(number):
    return jax.jit(Network(0.01 + number / 1000).step)


def unchanged(weights, x):
    return stepped(weights, x, 1.0, 0.01)


for number in range(40):
    more = ()
    if what == "global":
        rate = 0.01 + number / 1000
        step = with_a_global()
    elif what == "dictionary":
        settings["rate"] = 0.01 + number / 1000
        step = with_a_dictionary()
    elif what == "options":
        step = with_options(1.0, number)
        more = (1.0,)
    elif what == "method":
        step = of_a_network(number)
    elif what == "same":
        step = jax.jit(unchanged)
    else:
        step = made(1.0 + number / 1000 if what == "closure" else 1.0)
    weights, loss = step(weights, inputs, *more)
    print(float(loss))
