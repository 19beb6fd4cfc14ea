/* The main function of a bundle's verification program. The build defines KILN_VERIFY_INDEX (the bundle's index),
 * KILN_VERIFY_MANIFEST (the manifest's file name, found through the include path, so that the program contains no
 * path), KILN_VERIFY_INPUTS and KILN_VERIFY_UNCOMPARED (see verify.h). If the shipped bundle has no PTX, it also
 * defines KILN_VERIFY_SHIPPED, the file name of that bundle's manifest. A program that uses bundle and manifest
 * for another purpose defines KILN_VERIFY_ENTRY. */
#include "verify.h"

#ifndef KILN_VERIFY_ENTRY
#define KILN_VERIFY_ENTRY kiln_verify_main
#endif
int KILN_VERIFY_ENTRY(int argc, char **argv, const kiln_index *index, const char *manifest,
                      size_t manifest_bytes);

extern const kiln_index KILN_VERIFY_INDEX;

const unsigned kiln_verify_inputs = KILN_VERIFY_INPUTS;
const char kiln_verify_uncompared[] = KILN_VERIFY_UNCOMPARED;

#define TEXT(name, file)                                                                                     \
    __asm__(".pushsection .rodata\n" name "_begin:\n.incbin \"" file "\"\n" name                             \
            "_end:\n.byte 0\n.popsection\n")

/* Hidden: otherwise an arm64 assembler addresses both symbols through the GOT and gives them the same address. */
TEXT("kiln_verify_manifest", KILN_VERIFY_MANIFEST);
__attribute__((visibility("hidden"))) extern const char kiln_verify_manifest_begin[],
    kiln_verify_manifest_end[];

#ifdef KILN_VERIFY_SHIPPED
TEXT("kiln_verify_shipped", KILN_VERIFY_SHIPPED);
__attribute__((visibility("hidden"))) extern const char kiln_verify_shipped_begin[];
const char *const kiln_verify_shipped = kiln_verify_shipped_begin;
#else
const char *const kiln_verify_shipped = NULL;
#endif

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(kiln_verify_manifest_end - kiln_verify_manifest_begin);
    return KILN_VERIFY_ENTRY(argc, argv, &KILN_VERIFY_INDEX, kiln_verify_manifest_begin, bytes);
}
