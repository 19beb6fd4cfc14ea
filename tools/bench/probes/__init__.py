"""Microbenchmarks as PTX. SETS lists them by importance; tools/bench/probes.py runs a set.

design     for the design of kernels: layouts and rates of wgmma and TMA, and how many bits sums keep
constants  for the cost model: rates, latencies, bandwidths, launches
sweeps     every input of a function, the bundle's kernels as the driver compiles them, and split_k's counters under load
"""
from probes import bundle, launches, memory, rates, sweeps, values
from probes.probe import Probe

DEVICE = Probe("device", 0.5, "multiprocessors", [{}], None, lambda gpu: {"value": gpu.sms, **gpu.facts})
SETS = {name: {probe.name: probe for probe in (DEVICE, *probes)} for name, probes in {
    "design": (values.VALUES, rates.WGMMA, values.MMA_SUMS, values.WGMMA_SUMS, values.TENSOR_MAPS, memory.WGMMA_LATENCY,
               memory.BULK_LATENCY, memory.DISTANCE),
    "constants": (rates.MMA, memory.BANDWIDTH, memory.LATENCY, memory.CHASE, rates.ISSUE, rates.SHARED, launches.EMPTY,
                  launches.WAVES, launches.CHAINS, launches.JOIN, launches.ATOMIC),
    "sweeps": (sweeps.SWEEPS, bundle.COUNTERS, bundle.RESOURCES)}.items()}
TABLE = {name: probe for probes in SETS.values() for name, probe in probes.items()}
