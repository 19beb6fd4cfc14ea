/* A generator with a test's own families. */
#include "test_families.h"

int main(int argc, char **argv)
{
    return kiln_main(argc, argv, test_families);
}
