"""The part of bitsandbytes that tools/bench/peers.py calls, on top of the fake torch."""
from bitsandbytes import functional


def matmul_4bit(a, packed, quant_state):
    functional.check_product(a, packed, quant_state)
