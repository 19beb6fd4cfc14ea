# Read by ctest: a CUDA_VISIBLE_DEVICES for the machine's devices must not hide emulated ones.
unset(ENV{CUDA_VISIBLE_DEVICES})
