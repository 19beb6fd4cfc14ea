/* Several bundles in one program, some of them in shared objects that it opens at run time. */
#include "fake_driver.h"
#include "test.h"

#include <dlfcn.h>

#include "mini.h"
#include "sample.h"

/* ---- packs --------------------------------------------------------------------------------------------------------- */

static const char *const packs[] = {
    PACK,             /* uses the program's runtime */
    PACK_WITH_RUNTIME /* has its own runtime, which works because all state is in the loader */
};
enum { PACKS = sizeof packs / sizeof packs[0] };

static const kiln_index *open_pack(const char *path, void **library)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL)
        fail_msg("%s", dlerror());
    const kiln_index *index = dlsym(*library, "sample_index");
    assert_non_null(index);
    return index;
}

/* ---- loaders ------------------------------------------------------------------------------------------------------- */

enum { MOST_SLOTS = 16 };

typedef struct loaded {
    kiln_loader loader;
    kiln_slot slots[MOST_SLOTS];
} loaded;

static void open_bundle(loaded *l, const kiln_bundle *bundle)
{
    assert_in_range(bundle->slot_count, 1, MOST_SLOTS);
    assert_status(kiln_open(&l->loader, &fake_table, bundle, l->slots, MOST_SLOTS, NULL), KILN_OK);
}

static const sample_axpy_args axpy = {.n = 1000, .a = 1.5f, .x = 0x100, .y = 0x200};
static const sample_blend_args blend = {.x = 0x1000, .y = 0x2000, .factor = 0.1, .rows = 100, .stride = 4096};
static const mini_axpy_args mini = {.type = MINI_AXPY_TYPE_F32, .x = 256, .y = 512, .a = 2, .n = 1000};
static const char blend_id[] = "blend/type=f32,acc=f32,width=64,clamp=false,strategy=narrow";

static void launch_by_pointer(loaded *l, const kiln_kernel *kernel, const void *args)
{
    const int launches = fake.counts[FAKE_launch_kernel];
    assert_status(kernel->launch(&l->loader, NULL, args), KILN_OK);
    assert_int_equal(fake.counts[FAKE_launch_kernel], launches + 1);
    assert_ptr_equal(fake.launch.function, kernel->entry); /* this kernel's own name, not a namesake's */
}

static int set_up(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void a_packs_kernels_are_found_and_launched(void **state)
{
    (void)state;
    for (int p = 0; p < PACKS; p++) {
        void *library;
        static loaded pack;
        const kiln_index *index = open_pack(packs[p], &library);
        fake_reset();
        open_bundle(&pack, index->bundle);
        const kiln_kernel *kernel = kiln_find_name(index, blend_id);
        assert_non_null(kernel);
        assert_ptr_equal(kiln_find(index, sample_blend_f32_f32_64_noclamp_narrow_kernel.key), kernel);
        assert_ptr_not_equal(kernel, &sample_blend_f32_f32_64_noclamp_narrow_kernel);
        launch_by_pointer(&pack, kernel, &blend);
        assert_ptr_equal(fake.loaded_image, kernel->module->images[1].data);
        launch_by_pointer(&pack, kiln_find_name(index, "axpy"), &axpy);

        /* Errors of the pack reach the program's loader. */
        sample_blend_args odd = blend;
        odd.stride = 12;
        kiln_error error;
        assert_status(kernel->launch(&pack.loader, NULL, &odd), KILN_ERROR_BAD_ARGUMENT);
        assert_status(kiln_last_error(&pack.loader, &error), KILN_OK);
        assert_string_equal(error.detail, "stride must be a multiple of 8");

        assert_status(kiln_preload(&pack.loader, index->kernels, index->bundle->kernel_count), KILN_OK);
        assert_int_equal(fake.loads, index->bundle->kernel_count);
        assert_status(kiln_close(&pack.loader), KILN_OK);
        assert_int_equal(fake.unloads, fake.loads);
        assert_int_equal(dlclose(library), 0);
    }
}

/* Two linked bundles and two opened ones; three of the four have the same name and kernels. */
static void bundles_stand_side_by_side(void **state)
{
    (void)state;
    static loaded linked, linked_mini, opened[PACKS];
    void *libraries[PACKS];
    const kiln_index *indices[PACKS];
    open_bundle(&linked, &sample_bundle);
    open_bundle(&linked_mini, &mini_bundle);
    for (int p = 0; p < PACKS; p++) {
        indices[p] = open_pack(packs[p], &libraries[p]);
        open_bundle(&opened[p], indices[p]->bundle);
    }
    for (int round = 1; round <= 3; round++) {
        assert_status(sample_axpy(&linked.loader, NULL, &axpy), KILN_OK);
        assert_ptr_equal(fake.launch.function, sample_axpy_kernel.entry);
        assert_status(mini_axpy(&linked_mini.loader, NULL, &mini), KILN_OK);
        assert_ptr_equal(fake.launch.function, mini_axpy_f32_kernel.entry);
        for (int p = 0; p < PACKS; p++)
            launch_by_pointer(&opened[p], kiln_find_name(indices[p], "axpy"), &axpy);
        assert_int_equal(fake.loads, 2 + PACKS); /* each loads its own module once */
    }
    /* A kernel on another bundle's loader is refused. */
    static const uint64_t grid[3] = {1, 1, 1};
    assert_status(kiln_launch(&linked.loader, kiln_find_name(indices[0], "axpy"), NULL, grid, 0, NULL),
                  KILN_ERROR_BAD_ARGUMENT);
    assert_status(
        kiln_launch(&linked_mini.loader, &sample_blend_f32_f32_64_noclamp_wide_kernel, NULL, grid, 0, NULL),
        KILN_ERROR_BAD_ARGUMENT);

    assert_status(kiln_close(&linked.loader), KILN_OK);
    assert_status(kiln_close(&linked_mini.loader), KILN_OK);
    for (int p = 0; p < PACKS; p++) {
        launch_by_pointer(&opened[p], kiln_find_name(indices[p], blend_id), &blend);
        assert_status(kiln_close(&opened[p].loader), KILN_OK);
        assert_int_equal(dlclose(libraries[p]), 0);
    }
    assert_int_equal(fake.loads, fake.unloads);
}

static void a_pack_shows_its_index_alone(void **state)
{
    (void)state;
    static const char *const hidden[] = {"sample_bundle", "sample_axpy", "sample_axpy_kernel", "kiln_launch"};
    for (int p = 0; p < PACKS; p++) {
        void *library;
        (void)open_pack(packs[p], &library);
        for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
            assert_null(dlsym(library, hidden[i]));
        assert_int_equal(dlclose(library), 0);
    }
}

static void a_pack_of_another_layout_is_refused(void **state)
{
    (void)state;
    void *library;
    static loaded pack;
    kiln_error error;
    const kiln_index *index = open_pack(PACK_NEWER, &library);
    assert_status(kiln_open(&pack.loader, &fake_table, index->bundle, pack.slots, MOST_SLOTS, NULL),
                  KILN_ERROR_LAYOUT);
    assert_status(kiln_last_error(&pack.loader, &error), KILN_OK);
    assert_int_equal(error.needed, KILN_LAYOUT_VERSION);
    assert_int_equal(error.present, KILN_LAYOUT_VERSION + 1);
    assert_int_equal(fake.calls, 0);
    assert_int_equal(dlclose(library), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_packs_kernels_are_found_and_launched, set_up),
        cmocka_unit_test_setup(bundles_stand_side_by_side, set_up),
        cmocka_unit_test_setup(a_pack_shows_its_index_alone, set_up),
        cmocka_unit_test_setup(a_pack_of_another_layout_is_refused, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
