"""The trainer's end of the transfer."""

from types import SimpleNamespace


def trainer_init(init_info):
    """Join the group that the server was told of."""
    return SimpleNamespace(info=init_info, group=SimpleNamespace(store=None, socket=None))
