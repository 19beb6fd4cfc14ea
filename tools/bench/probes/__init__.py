"""Microbenchmarks as PTX. TABLE lists them by importance; tools/bench/probes.py runs them."""
from probes import launches, memory, rates, values
from probes.probe import Probe

DEVICE = Probe("device", 0.5, "multiprocessors", [{}], None, lambda gpu: {"value": gpu.sms, **gpu.facts})
TABLE = {probe.name: probe for probe in (
    DEVICE, values.VALUES, rates.WGMMA, rates.MMA, values.MMA_SUMS, values.WGMMA_SUMS, memory.BANDWIDTH, values.TENSOR_MAPS,
    memory.WGMMA_LATENCY, memory.LATENCY, memory.BULK_LATENCY, memory.CHASE, memory.DISTANCE, rates.ISSUE, launches.EMPTY, launches.CHAINS,
    launches.JOIN, launches.ATOMIC, rates.SHARED)}
