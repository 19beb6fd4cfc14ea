/* Runs the linked fuzz target on the named files, or on all files of the named folders. */
#include "replay.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static unsigned replayed;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 20];
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
    LLVMFuzzerTestOneInput(bytes, size);
    replayed++;
    return 0;
}

static int replay_folder(const char *path)
{
    struct dirent **entries;
    int failed = 0, count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= replay_file(inside);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed || count < 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        struct stat s;
        bool is_folder = stat(argv[i], &s) == 0 && S_ISDIR(s.st_mode);
        failed |= is_folder ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    printf("%u inputs\n", replayed);
    return failed || !replayed;
}
