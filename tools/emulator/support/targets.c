/* See targets.h. Device figures: CUDA C++ Programming Guide, "Compute capabilities", and the products' data sheets. */
#include "targets.h"

#include <stdlib.h>

/* Compute capability 10.1 was renamed 11.0 (ISA 11.1.2). */
static unsigned renamed(unsigned number)
{
    return number == 101 ? 110 : number;
}

static bool same_family(unsigned a, unsigned b)
{
    return a / 10 == b / 10;
}

bool emu_target_in(unsigned number, char kind, const char *list)
{
    if (!kind)
        return false;
    number = renamed(number);
    while (*list) {
        char *end;
        unsigned listed = (unsigned)strtoul(list, &end, 10);
        bool family = *end == 'f';
        if (family ? same_family(number, listed) && number >= listed : kind == 'a' && number == listed)
            return true;
        list = end + 1;
        while (*list == ' ')
            list++;
    }
    return false;
}

bool emu_target_runs_on(unsigned number, char kind, unsigned device)
{
    number = renamed(number);
    if (kind == 'a')
        return number == device;
    if (kind == 'f')
        return same_family(number, device) && number <= device;
    return number <= device;
}

#define KB(n) ((n)*1024u)
#define MB(n) ((n)*1024u * 1024u)
#define GB(n) ((uint64_t)(n) << 30)

/* clang-format off */
const emu_device_model emu_device_models[] = {
    /* sm  SMs  threads blocks shared/SM  optin/block L2        kHz      mem kHz   bits  memory */
    {75,   68,  1024,   16,    KB(64),    KB(64),     KB(5632), 1545000, 7000000,  352,  GB(11)},
    {80,   108, 2048,   32,    KB(164),   KB(163),    MB(40),   1410000, 1215000,  5120, GB(40)},
    {86,   82,  1536,   16,    KB(100),   KB(99),     MB(6),    1695000, 9751000,  384,  GB(24)},
    {87,   16,  1536,   16,    KB(164),   KB(163),    MB(4),    1300000, 3200000,  256,  GB(32)},
    {88,   16,  1536,   16,    KB(164),   KB(163),    MB(4),    1300000, 3200000,  256,  GB(32)},
    {89,   128, 1536,   24,    KB(100),   KB(99),     MB(72),   2520000, 10501000, 384,  GB(24)},
    {90,   132, 2048,   32,    KB(228),   KB(227),    MB(50),   1980000, 2619000,  5120, GB(80)},
    {100,  148, 2048,   32,    KB(228),   KB(227),    MB(126),  1965000, 3996000,  8192, GB(180)},
    {103,  148, 2048,   32,    KB(228),   KB(227),    MB(126),  1920000, 3996000,  8192, GB(270)},
    {110,  20,  1536,   24,    KB(228),   KB(227),    MB(32),   1575000, 4266000,  256,  GB(120)},
    {120,  170, 1536,   24,    KB(100),   KB(99),     MB(96),   2407000, 14001000, 512,  GB(32)},
    {121,  48,  1536,   24,    KB(100),   KB(99),     MB(24),   2418000, 4266000,  256,  GB(120)},
};
/* clang-format on */

const size_t emu_device_model_count = sizeof emu_device_models / sizeof *emu_device_models;

typedef struct target_version {
    unsigned number, base, specific, family; /* lowest .version for sm_N, sm_Na and sm_Nf */
} target_version;

static const target_version target_versions[] = {
    {10, 14, 0, 0},    {11, 14, 0, 0},    {12, 14, 0, 0},    {13, 14, 0, 0},    {20, 20, 0, 0},
    {21, 20, 0, 0},    {30, 30, 0, 0},    {32, 40, 0, 0},    {35, 31, 0, 0},    {37, 41, 0, 0},
    {50, 40, 0, 0},    {52, 41, 0, 0},    {53, 42, 0, 0},    {60, 50, 0, 0},    {61, 50, 0, 0},
    {62, 50, 0, 0},    {70, 60, 0, 0},    {72, 61, 0, 0},    {75, 63, 0, 0},    {80, 70, 0, 0},
    {86, 71, 0, 0},    {87, 74, 0, 0},    {88, 90, 0, 0},    {89, 78, 0, 0},    {90, 78, 80, 0},
    {100, 86, 86, 88}, {101, 86, 86, 88}, {103, 88, 88, 88}, {110, 90, 90, 90}, {120, 87, 87, 88},
    {121, 88, 88, 88},
};

unsigned emu_target_version(unsigned number, char kind)
{
    for (size_t i = 0; i < sizeof target_versions / sizeof *target_versions; i++) {
        const target_version *t = &target_versions[i];
        if (t->number == number)
            return kind == 'a' ? t->specific : kind == 'f' ? t->family : t->base;
    }
    return 0;
}

bool emu_is_ptx_version(unsigned version)
{
    static const uint8_t last_minor[] = {
        [1] = 5, [2] = 3, [3] = 2, [4] = 3, [5] = 1, [6] = 5, [7] = 8, [8] = 8, [9] = 1};
    return version >= 10 && version <= 91 && version % 10 <= last_minor[version / 10];
}

/* CUDA release notes: the PTX ISA that came with each driver. */
static const struct {
    int driver;
    unsigned version;
} driver_versions[] = {
    {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83},
    {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74},
    {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70}, {10020, 65}, {10010, 64}, {10000, 63},
};

unsigned emu_driver_ptx_version(int driver)
{
    for (size_t i = 0; i < sizeof driver_versions / sizeof *driver_versions; i++)
        if (driver >= driver_versions[i].driver)
            return driver_versions[i].version;
    return 63;
}
