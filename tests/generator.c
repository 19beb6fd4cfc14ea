/* A generator of the families that a test has. */
#include "test_families.h"

int main(int argc, char **argv)
{
    return kiln_main(argc, argv, test_families);
}
