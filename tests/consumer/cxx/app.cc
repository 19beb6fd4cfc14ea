#include <iostream>

#include "quantizer.h"

int main(int, char **argv)
{
    std::vector<float> x(64, 0.5f);
    x[7] = -3;
    float scale = 0;
    std::cout << quantize(argv[1], x, scale);
    std::cout << ", scale " << scale << '\n';
    std::cout << quantize("/nowhere/libcuda.so.1", x, scale) << '\n';
}
