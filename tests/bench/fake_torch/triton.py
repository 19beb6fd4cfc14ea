"""Kernels that check their grid and arguments and compute nothing."""
import sys


class language:
    constexpr = int


sys.modules["triton.language"] = language


class jit:
    def __init__(self, function):
        self.names = function.__code__.co_varnames[:function.__code__.co_argcount]

    def __getitem__(self, grid):
        def launch(*arguments, num_warps, num_stages, **constants):
            assert len(grid) == 3 and num_warps in (4, 8) and num_stages > 1
            assert self.names[:len(arguments)] + tuple(constants) == self.names
            length = arguments[self.names.index("length")]
            assert length % constants["TILE_Q"] == 0 == length % constants["TILE_K"]
        return launch
