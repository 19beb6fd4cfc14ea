/* kiln: the generator with the families that it comes with. */
#include <kiln/author/families.h>

int main(int argc, char **argv)
{
    static const kiln_family *const families[] = {KILN_FAMILIES, 0};
    return kiln_main(argc, argv, families);
}
