/* Tests kiln.hpp on the scripted driver: closing, moving, and status texts. With the emulated driver (hpp_test libcuda.so.1) also
 * device memory, and loaders per context. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>

#include <kiln/kiln.hpp>
#include <kiln/trace.h>

extern "C" {
#include "fake_driver.h"
}
#include "mini.h"

static_assert(!std::is_copy_constructible_v<kiln::loader> &&
              std::is_nothrow_move_constructible_v<kiln::loader> &&
              std::is_nothrow_move_assignable_v<kiln::loader>);
static_assert(!std::is_move_constructible_v<kiln::driver> && !std::is_move_constructible_v<kiln::storage<1>>);
static_assert(kiln::status{}.ok() && kiln::status{} == KILN_OK && kiln::status{KILN_ERROR_LOAD} != KILN_OK);
static_assert(!std::is_convertible_v<kiln::status, bool> && std::is_convertible_v<kiln_status, kiln::status>);

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            std::printf("line %d: %s\n", __LINE__, #condition);                                              \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

namespace {

kiln::storage<MINI_SLOTS> memory, other_memory;
const mini_axpy_args args = {MINI_AXPY_TYPE_F32, 256, 512, 2, 1024};

/* The end of a scope unloads everything, also after a move; the driver gets one unload. */
void closes()
{
    fake_reset();
    {
        kiln::loader first;
        CHECK(first.open(memory, fake_table, mini_bundle).ok() && first.is_open());
        CHECK(first.open(memory, fake_table, mini_bundle) == KILN_ERROR_ALREADY_OPEN && first.is_open());
        CHECK(kiln::status{mini_axpy(first, nullptr, args)}.ok());
        kiln::loader second = static_cast<kiln::loader &&>(first);
        CHECK(!first.is_open() && first.get() == nullptr && second.is_open());
        CHECK(mini_axpy(first, nullptr, args) == KILN_ERROR_NULL_POINTER);
        CHECK(kiln::status{mini_axpy(second, nullptr, args)}.ok() && fake.unloads == 0);
        kiln::loader third;
        CHECK(third.open(other_memory, fake_table, mini_bundle) && third.preload(mini_index) &&
              fake.loads == 3);
        third = static_cast<kiln::loader &&>(second); /* closes the previous loader */
        CHECK(fake.unloads == 2 && third.get() == &memory.loader);
        kiln::loader &same = third;
        third = static_cast<kiln::loader &&>(same);
        CHECK(third.is_open());
    }
    CHECK(fake.loads == 3 && fake.unloads == 3);
    kiln::loader again; /* the memory may be used again */
    CHECK(again.open(memory, fake_table, mini_bundle) && again.close() && again.close() && !again.is_open());
    CHECK(mini_axpy(again, nullptr, args) == KILN_ERROR_CLOSED);
}

/* A bundle's kernels that the device cannot run are not loaded; naming one is an error. */
void preloads()
{
    fake_reset();
    kiln::loader loader;
    CHECK(loader.preload(mini_index) == KILN_ERROR_NULL_POINTER);
    CHECK(loader.open(memory, fake_table, mini_bundle) && loader.preload(mini_index) && fake.loads == 2);
    CHECK(loader.close() && loader.preload(mini_index) == KILN_ERROR_CLOSED);
    fake_reset();
    fake.major = 7;
    fake.minor = 0;
    CHECK(loader.open(memory, fake_table, mini_bundle) && loader.preload(mini_index) && fake.loads == 0);
    CHECK(loader.preload(mini_index.kernels, 1) == KILN_ERROR_NO_IMAGE);
}

/* Closing in another context fails, and the loader stays open until its own context is current. */
void context()
{
    fake_reset();
    kiln::loader loader;
    CHECK(loader.open(memory, fake_table, mini_bundle).ok());
    fake.current = FAKE_OTHER_CONTEXT;
    CHECK(loader.close() == KILN_ERROR_WRONG_CONTEXT && loader.is_open());
    kiln::loader other;
    loader = static_cast<kiln::loader &&>(other); /* other then owns the open loader */
    CHECK(!loader.is_open() && loader.get() == nullptr && other.is_open() && other.get() == &memory.loader);
    fake.current = FAKE_CONTEXT;
    CHECK(other.close().ok() && !other.is_open());
}

void errors()
{
    fake_reset();
    char text[64], cut[8];
    kiln::loader loader;
    CHECK(std::strcmp(loader.describe(text), "the loader is not open") == 0);
    CHECK(*loader.last_error().detail == '\0');
    CHECK(loader.open(memory.loader, memory.slots, 1, fake_table, mini_bundle) == KILN_ERROR_TOO_FEW_SLOTS);
    CHECK(!loader.is_open() && loader.last_error().needed == MINI_SLOTS);
    CHECK(std::strstr(loader.describe(text), kiln::status{KILN_ERROR_TOO_FEW_SLOTS}.text()) == text);
    CHECK(std::strlen(loader.describe(cut)) == 7);
    CHECK(loader.open(memory, fake_table, mini_bundle).ok());
    CHECK(std::strcmp(loader.describe(text), "") == 0);
    CHECK(loader.open(memory, fake_table, mini_bundle) == KILN_ERROR_ALREADY_OPEN);
    CHECK(std::strcmp(loader.describe(text), "the loader is open already: mini") == 0);

    kiln::driver driver;
    const char *missing = "";
    CHECK(driver.load("/nowhere/libcuda.so.1", &missing) == KILN_ERROR_DRIVER_NOT_FOUND &&
          missing == nullptr);
    CHECK(driver->mem_alloc == nullptr && driver.get()->library == nullptr);
    driver.close();
}

/* One line explains an error of kiln or of the driver, even before a loader exists. */
void causes()
{
    fake_reset();
    char text[256], cut[8];
    kiln::driver driver;
    kiln::loader loader;
    CHECK(driver.failure().ok() && std::strcmp(driver.describe(text), "") == 0);
    kiln::status s = driver.load("/nowhere/libcuda.so.1");
    CHECK(driver.failure() == s &&
          std::strcmp(kiln::describe(text, s, driver, loader), driver.describe(text)) == 0);
    CHECK(std::strstr(text, "driver library not found: /nowhere/libcuda.so.1") == text);
    CHECK(std::strcmp(kiln::describe(cut, s, driver, loader), "driver ") == 0);
    CHECK(driver.check("cuInit", 0).ok());
    s = driver.check("cuInit", 34);
    CHECK(s == KILN_ERROR_DRIVER);
    CHECK(std::strcmp(kiln::describe(text, s, driver, loader),
                      "driver call failed: cuInit: the CUDA toolkit's stub library (34)") == 0);
    s = mini_axpy(loader, nullptr, args);
    CHECK(std::strcmp(kiln::describe(text, s, driver, loader), "a required pointer is null") == 0);
    CHECK(loader.open(memory, fake_table, mini_bundle).ok());
    mini_axpy_args wrong = args;
    wrong.x = 257;
    s = mini_axpy(loader, nullptr, wrong);
    CHECK(std::strcmp(kiln::describe(text, s, driver, loader), loader.describe(text)) == 0);
    CHECK(std::strstr(text, "misaligned pointer: axpy: ") == text);
}

/* describe writes about the given failure, not about an older or a newer one with the same status. */
void stale_causes()
{
    fake_reset();
    char text[256], other[256];
    kiln::driver driver;
    kiln::loader loader;
    const kiln::status no_device = driver.check("cuInit", 100);
    CHECK(std::strcmp(kiln::describe(text, KILN_OK, driver, loader), "success") == 0);
    fake.fail_at = fake.calls + 1;
    fake.fail_result = 700;
    const kiln::status opened = loader.open(memory, fake_table, mini_bundle);
    CHECK(opened == no_device && std::strstr(loader.describe(other), "driver call failed: ") == other);
    CHECK(std::strcmp(kiln::describe(text, opened, driver, loader), other) == 0);
    CHECK(std::strcmp(kiln::describe(text, KILN_OK, driver, loader), "success") == 0);
    CHECK(std::strstr(kiln::describe(text, no_device, driver, loader), "driver call failed: cuInit") == text);
    const kiln::status no_memory = driver.check("cuMemAlloc", 2);
    CHECK(std::strstr(kiln::describe(text, no_memory, driver, loader), "driver call failed: cuMemAlloc") ==
          text);
    CHECK(std::strcmp(kiln::describe(text, no_device, driver, loader), "driver call failed") == 0);
    CHECK(loader.open(memory, fake_table, mini_bundle) &&
          mini_axpy(loader, nullptr, nullptr) == KILN_ERROR_NULL_POINTER);
    CHECK(std::strstr(loader.describe(other), "a required pointer is null: ") == other);
    kiln::memory none;
    const kiln::status unallocated = none.download(nullptr, 4);
    CHECK(std::strcmp(kiln::describe(text, unallocated, driver, loader), "a required pointer is null") == 0);
}

/* Closing a loader whose context is gone frees its storage without a driver call. */
void forgets()
{
    fake_reset();
    kiln::loader loader;
    loader.forget();
    CHECK(loader.open(memory, fake_table, mini_bundle).ok() &&
          kiln::status{mini_axpy(loader, nullptr, args)}.ok());
    fake.fail_at = fake.calls + 1; /* cuCtxGetCurrent */
    fake.fail_result = 201;
    CHECK(loader.close() == KILN_ERROR_DRIVER && loader.is_open());
    fake.current = FAKE_OTHER_CONTEXT;
    CHECK(loader.close() == KILN_ERROR_WRONG_CONTEXT && loader.is_open());
    const int calls = fake.calls;
    loader.forget();
    CHECK(!loader.is_open() && loader.close().ok() && fake.calls == calls);
    CHECK(loader.open(memory, fake_table, mini_bundle).ok());
}

/* A hook is a lambda without captures; its context has its data. */
void traces()
{
    struct seen {
        char line[128];
        uint64_t n;
        int calls;
    } all{};
    fake_reset();
    kiln_options options{};
    options.launch_hook_context = &all;
    options.launch_hook = [](void *context, const kiln_launch_event *event) {
        seen &s = *static_cast<seen *>(context);
        s.calls++;
        CHECK(kiln_find_size(event, "n", &s.n) == 1);
        kiln_describe_launch(event, s.line, sizeof s.line);
    };
    kiln::loader loader;
    CHECK(loader.open(memory, fake_table, mini_bundle, &options).ok());
    CHECK(kiln::status{mini_axpy(loader, nullptr, args)}.ok());
    CHECK(all.calls == 2 && all.n == args.n);
    CHECK(std::strncmp(all.line, "axpy n=", 7) == 0);
}

/* Device memory keeps its contents, and assignment frees the previous memory. */
void keeps_memory(const char *path)
{
    kiln::driver driver;
    CHECK(driver.load(path) && driver.set_device() && driver.set_device());
    kiln::memory kept;
    CHECK(kept.download(nullptr, 4) == KILN_ERROR_NULL_POINTER);
    const char text[] = "from the host";
    char back[sizeof text];
    CHECK(kept.address() == 0);
    CHECK(kept.upload(driver, text, sizeof text) && kept.download(back, sizeof back) &&
          std::strcmp(back, text) == 0);
    CHECK(kept.zeros(driver, sizeof text) && kept.download(back, sizeof back) && back[0] == 0 &&
          back[12] == 0);
    CHECK(kept.allocate(driver, 0) && kept.address() != 0);
    CHECK(kept.allocate(driver, ~size_t{} / 2) == KILN_ERROR_DRIVER && kept.address() == 0);
    CHECK(driver.set_device(99) == KILN_ERROR_DRIVER &&
          std::strstr(driver.describe(back), "driver call") == back);
}

/* Each context has a loader, which stays the same; without a context there is an error. */
void loads_by_context(const char *path)
{
    char text[128];
    kiln::loader *at{}, *other{};
    kiln::loaders<MINI_SLOTS, 2> nowhere{mini_bundle, "/nowhere/libcuda.so.1"};
    CHECK(nowhere.current(at) == KILN_ERROR_DRIVER_NOT_FOUND && at);
    CHECK(std::strcmp(kiln::describe(text, nowhere.driver().failure(), nowhere.driver(), *at),
                      "driver library not found: /nowhere/libcuda.so.1") == 0);

    kiln::loaders<MINI_SLOTS, 2> loaders{mini_bundle, path};
    kiln::driver &driver = loaders.driver();
    CHECK(loaders.load() && loaders.load() && driver.check("cuInit", driver->init(0)));
    CHECK(driver.check("cuCtxSetCurrent", driver->ctx_set_current(nullptr)) &&
          loaders.current(at) == KILN_ERROR_NO_CONTEXT);
    CHECK(driver.set_device() && loaders.current(at) && loaders.current(other) && at == other &&
          at->is_open());
    CUcontext primary{}, created[2]{};
    CHECK(driver.check("cuCtxGetCurrent", driver->ctx_get_current(&primary)));
    const auto create =
        reinterpret_cast<int (*)(CUcontext *, unsigned, int)>(dlsym(driver->library, "cuCtxCreate_v2"));
    CHECK(create(&created[0], 0, 0) == 0 && loaders.current(other) && at != other && other->is_open());
    CHECK(create(&created[1], 0, 0) == 0 && loaders.current(other) == KILN_ERROR_TOO_FEW_SLOTS);
    CHECK(driver.check("cuCtxSetCurrent", driver->ctx_set_current(primary)) && loaders.current(other) &&
          at == other);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1) {
        keeps_memory(argv[1]);
        loads_by_context(argv[1]);
    }
    closes();
    context();
    preloads();
    errors();
    causes();
    stale_causes();
    forgets();
    traces();
}
