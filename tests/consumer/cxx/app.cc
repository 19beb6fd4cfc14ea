#include <iostream>

#include "quantizer.h"

int main(int, char **argv)
{
    std::vector<float> x(64, 0.5f);
    x[7] = -3;
    float scale = 0;
    std::cout << quantize(argv[1], x, scale);
    std::cout << ", scale " << scale << '\n';
    x.resize(32); // half of a group: its scale is that of what there is
    std::cout << quantize(argv[1], x, scale) << ", scale " << scale << '\n';
    std::cout << quantize("/nowhere/libcuda.so.1", x, scale) << '\n';
}
