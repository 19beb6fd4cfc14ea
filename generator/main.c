/* kiln: the generator with its own families. */
#include <kiln/author/families.h>

int main(int argc, char **argv)
{
    static const kiln_family *const families[] = {KILN_FAMILIES, 0};
    return kiln_main(argc, argv, families);
}
