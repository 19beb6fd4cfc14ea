#pragma once
#include <string>
#include <vector>

/* Quantises one group of 64. Returns "success" or the error message. */
std::string quantize(const char *driver_path, const std::vector<float> &x, float &scale);
