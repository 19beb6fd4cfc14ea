#!/usr/bin/env python3
"""check_faults.py for the kernels that use matrix units, as they are for sm_80.

usage: check_mma_faults.py KILN CONFIG VERIFY FAULTY_DRIVER [WORD]    (with a word, only the faults whose line holds it)
"""
import check_faults
from mma_faults import FAULTS

check_faults.check(FAULTS, "sm_80", "sm_80")
