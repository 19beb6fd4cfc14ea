"""As much of bitsandbytes as tools/bench/peers.py calls, over the torch beside it."""
from bitsandbytes import functional


def matmul_4bit(a, packed, quant_state):
    functional.check_product(a, packed, quant_state)
