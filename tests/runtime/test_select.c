/* The selected image, for every kind of target, every device and every driver. */
#include "test.h"

#include <stdio.h>

/* The devices on which each target runs, from the table in "NVIDIA CUDA Compiler Driver" (family-specific features) and from trials with
 * ptxas 13.0. One column per device: + runs, < the device is too old, . another device. */
static const int devices[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { DEVICES = sizeof devices / sizeof devices[0] };

static const struct {
    const char *name;
    uint16_t sm;
    uint8_t kind, format;
    const char *runs;
} targets[] = {
    /* clang-format off */
    /*                                                           75 80 86 87 88 89 90 100 103 110 120 121 */
    {"sm_75",   75,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "++++++++++++"},
    {"sm_80",   80,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<+++++++++++"},
    {"sm_86",   86,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<++++++++++"},
    {"sm_87",   87,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<+++++++++"},
    {"sm_89",   89,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<+++++++"},
    {"sm_90",   90,  KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<++++++"},
    {"sm_100",  100, KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<<+++++"},
    {"sm_103",  103, KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<<<++++"},
    {"sm_110",  110, KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<<<<+++"},
    {"sm_120",  120, KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<<<<<++"},
    {"sm_121",  121, KILN_TARGET_BASE,   KILN_IMAGE_PTX,   "<<<<<<<<<<<+"},
    {"sm_90a",  90,  KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   "......+....."},
    {"sm_100a", 100, KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   ".......+...."},
    {"sm_103a", 103, KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   "........+..."},
    {"sm_110a", 110, KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   ".........+.."},
    {"sm_120a", 120, KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   "..........+."},
    {"sm_121a", 121, KILN_TARGET_ARCH,   KILN_IMAGE_PTX,   "...........+"},
    {"sm_100f", 100, KILN_TARGET_FAMILY, KILN_IMAGE_PTX,   ".......++..."},
    {"sm_103f", 103, KILN_TARGET_FAMILY, KILN_IMAGE_PTX,   "........+..."},
    {"sm_110f", 110, KILN_TARGET_FAMILY, KILN_IMAGE_PTX,   ".........+.."},
    {"sm_120f", 120, KILN_TARGET_FAMILY, KILN_IMAGE_PTX,   "..........++"},
    {"sm_121f", 121, KILN_TARGET_FAMILY, KILN_IMAGE_PTX,   "...........+"},
    {"cubin75", 75,  KILN_TARGET_BASE,   KILN_IMAGE_CUBIN, "+..........."},
    {"cubin80", 80,  KILN_TARGET_BASE,   KILN_IMAGE_CUBIN, ".+.........."},
    {"cubin90", 90,  KILN_TARGET_BASE,   KILN_IMAGE_CUBIN, "......+....."},
    {"cubin100", 100, KILN_TARGET_BASE,  KILN_IMAGE_CUBIN, ".......+...."},
    {"cubin100f", 100, KILN_TARGET_FAMILY, KILN_IMAGE_CUBIN, ".......+...."},
    {"cubin120a", 120, KILN_TARGET_ARCH, KILN_IMAGE_CUBIN, "..........+."},
    /* clang-format on */
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static kiln_image image_of(size_t target, uint32_t min_driver)
{
    return (kiln_image){.data = targets[target].name,
                        .min_driver = min_driver,
                        .sm = targets[target].sm,
                        .kind = targets[target].kind,
                        .format = targets[target].format};
}

static void every_target_on_every_device_with_every_driver(void **state)
{
    (void)state;
    static const uint32_t drivers[] = {10020, 12070, 12080, 13000};
    for (size_t t = 0; t < TARGETS; t++) {
        for (size_t d = 0; d < DEVICES; d++) {
            for (size_t v = 0; v < 4; v++) {
                const kiln_device device = {.sm = (uint32_t)devices[d], .driver_version = drivers[v]};
                const kiln_image image = image_of(t, 12080);
                const kiln_module module = {.images = &image, .image_count = 1};
                kiln_fit wanted = targets[t].runs[d] == '<'   ? KILN_FIT_DEVICE_TOO_OLD
                                  : targets[t].runs[d] == '.' ? KILN_FIT_OTHER_DEVICE
                                  : drivers[v] < 12080        ? KILN_FIT_DRIVER_TOO_OLD
                                                              : KILN_FIT;
                if (kiln_image_fit(&device, &image) != wanted)
                    fail_msg("%s on %d with %u", targets[t].name, devices[d], drivers[v]);
                assert_ptr_equal(kiln_select(&device, &module), wanted == KILN_FIT ? &image : NULL);
            }
        }
    }
}

static void passes_over_cubins_where_only_ptx_is_wanted(void **state)
{
    (void)state;
    const kiln_image images[] = {{.sm = 80, .format = KILN_IMAGE_PTX},
                                 {.sm = 90, .format = KILN_IMAGE_CUBIN}};
    const kiln_module module = {.images = images, .image_count = 2};
    kiln_device device = {.sm = 90, .driver_version = 13000};
    assert_ptr_equal(kiln_select(&device, &module), &images[1]);
    device.ptx_only = 1;
    assert_ptr_equal(kiln_select(&device, &module), &images[0]);
    assert_int_equal(kiln_image_fit(&device, &images[1]), KILN_FIT_NOT_PTX);
}

static void keeps_family_images_from_what_has_another_name(void **state)
{
    (void)state;
    const kiln_image image = {.sm = 100, .kind = KILN_TARGET_FAMILY};
    assert_int_equal(kiln_image_fit(&(kiln_device){.sm = 103, .driver_version = 12090}, &image), KILN_FIT);
    assert_int_equal(kiln_image_fit(&(kiln_device){.sm = 101, .driver_version = 12090}, &image),
                     KILN_FIT_OTHER_DEVICE);
}

/* The order of preference if all images fit: exact cubin, specific PTX, newest base PTX. */
static const struct {
    int device;
    uint32_t driver;
    const char *present; /* a trailing ! marks an image that needs driver 13.0 */
    const char *taken;   /* "" for none */
} choices[] = {
    {75, 12080, "sm_75 sm_80 sm_90 sm_90a", "sm_75"},  {86, 12080, "sm_75 sm_80 sm_90 sm_90a", "sm_80"},
    {90, 12080, "sm_75 sm_80 sm_90 sm_90a", "sm_90a"}, {90, 12080, "sm_90a sm_90 sm_80", "sm_90a"},
    {90, 12080, "sm_90a! sm_90 sm_80", "sm_90"},       {90, 12080, "sm_90a! sm_90! sm_80", "sm_80"},
    {90, 13000, "sm_90a! sm_90! sm_80", "sm_90a"},     {90, 12080, "sm_80 sm_90 cubin90 sm_90a", "cubin90"},
    {90, 12080, "sm_80 cubin90! sm_90", "sm_90"},      {90, 12080, "sm_90! cubin90!", ""},
    {100, 12080, "sm_90 sm_90a sm_100", "sm_100"},     {100, 12080, "sm_90 sm_90a", "sm_90"},
    {100, 12080, "sm_100 sm_100f sm_100a", "sm_100a"}, {100, 12080, "sm_100a sm_100f sm_100", "sm_100a"},
    {103, 12080, "sm_100 sm_100f sm_100a", "sm_100f"}, {103, 12080, "sm_103 sm_100f", "sm_100f"},
    {103, 12080, "sm_100f sm_103f sm_100", "sm_103f"}, {103, 12080, "sm_103f sm_103a", "sm_103a"},
    {110, 12080, "sm_100f sm_100a cubin100", ""},      {110, 12080, "sm_100f sm_100", "sm_100"},
    {120, 12080, "sm_100f sm_120f sm_100", "sm_120f"}, {121, 12080, "sm_120f sm_120a sm_120", "sm_120f"},
    {121, 12080, "sm_120f! sm_120a sm_120", "sm_120"}, {90, 12080, "", ""},
};

static uint32_t parse_images(const char *list, kiln_image *images)
{
    uint32_t count = 0;
    while (*list != '\0') {
        size_t length = strcspn(list, " !");
        for (size_t t = 0; t < TARGETS; t++) {
            if (strlen(targets[t].name) == length && strncmp(list, targets[t].name, length) == 0)
                images[count++] = image_of(t, list[length] == '!' ? 13000 : 11000);
        }
        list += length;
        list += strspn(list, " !");
    }
    return count;
}

static void the_best_that_fits_is_taken(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof choices / sizeof choices[0]; c++) {
        kiln_image images[8];
        const kiln_module module = {.images = images,
                                    .image_count = parse_images(choices[c].present, images)};
        const kiln_device device = {.sm = (uint32_t)choices[c].device, .driver_version = choices[c].driver};
        const kiln_image *taken = kiln_select(&device, &module);
        const char *name = taken != NULL ? taken->data : "";
        if (strcmp(name, choices[c].taken) != 0)
            fail_msg("row %zu: took '%s', not '%s'", c, name, choices[c].taken);
    }
}

static void null_selects_nothing(void **state)
{
    (void)state;
    const kiln_device device = {.sm = 90};
    const kiln_image image = {.sm = 90};
    const kiln_module module = {.images = &image, .image_count = 1};
    assert_null(kiln_select(NULL, &module));
    assert_null(kiln_select(&device, NULL));
    assert_int_not_equal(kiln_image_fit(NULL, &image), KILN_FIT);
    assert_int_not_equal(kiln_image_fit(&device, NULL), KILN_FIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_family_images_from_what_has_another_name),
        cmocka_unit_test(passes_over_cubins_where_only_ptx_is_wanted),
        cmocka_unit_test(every_target_on_every_device_with_every_driver),
        cmocka_unit_test(the_best_that_fits_is_taken),
        cmocka_unit_test(null_selects_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
