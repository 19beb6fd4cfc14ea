/* The driver and the devices that it imitates: cuInit reads both from the environment. Attributes of devices. */
#include "../check/check.h"
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

emu_driver emu_the_driver;

static const emu_device_model *model_named(emu_text name)
{
    char text[16];
    for (size_t i = 0; i < emu_device_model_count; i++) {
        snprintf(text, sizeof text, "sm_%u", emu_device_models[i].number);
        if (emu_text_is(name, text))
            return &emu_device_models[i];
    }
    return NULL;
}

static bool read_devices(emu_driver *d)
{
    const char *list = getenv("KILN_EMU_DEVICE");
    if (!list || !*list)
        list = "sm_90";
    for (const char *at = list; *at;) {
        emu_text name = {at, strcspn(at, ",")};
        const emu_device_model *model = model_named(name);
        if (!model || d->device_count == EMU_MOST_DEVICES) {
            fprintf(stderr, "kiln emulator: KILN_EMU_DEVICE=%s: '%.*s' is not a device; there are", list,
                    EMU_TEXT(name));
            for (size_t i = 0; i < emu_device_model_count; i++)
                fprintf(stderr, " sm_%u", emu_device_models[i].number);
            fprintf(stderr, "\n");
            return false;
        }
        d->devices[d->device_count] = (emu_device){.model = model, .slot = (unsigned)d->device_count};
        d->device_count++;
        at += name.size + (at[name.size] == ',');
    }
    return true;
}

/* Makes the UUID from the model, the slot and a constant, so that it is the same in every run. */
static CUuuid uuid_of(const emu_device *d)
{
    CUuuid uuid = {{(char)d->model->number, (char)d->slot}};
    memcpy(uuid.bytes + 2, "kiln-emulated-", 14);
    return uuid;
}

/* True if the text is a prefix of the UUID as nvidia-smi prints it ("GPU-..."). */
static bool begins_uuid(const emu_device *d, emu_text text)
{
    CUuuid uuid = uuid_of(d);
    char whole[64];
    size_t size = (size_t)snprintf(whole, sizeof whole, "GPU");
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        size += (size_t)snprintf(whole + size, sizeof whole - size, "%s%02x",
                                 i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned char)uuid.bytes[i]);
    return text.size <= size && memcmp(text.at, whole, text.size) == 0;
}

/* Returns the device that an entry of CUDA_VISIBLE_DEVICES names, by index or by an unambiguous prefix of its UUID; -1: none. */
static int identify(const emu_device *devices, int count, emu_text text)
{
    char *end;
    if (text.size < 4 || memcmp(text.at, "GPU-", 4) != 0) {
        long index = strtol(text.at, &end, 10);
        return end == text.at || index < 0 || index >= count ? -1 : (int)index;
    }
    int found = -1, matches = 0;
    for (int i = 0; i < count; i++)
        if (begins_uuid(&devices[i], text)) {
            found = i;
            matches++;
        }
    return matches == 1 ? found : -1;
}

/* Keeps the devices that CUDA_VISIBLE_DEVICES lists, in its order, up to the first invalid entry. Keeps none if one is listed
   twice. */
static void choose_visible(emu_driver *d)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    emu_device all[EMU_MOST_DEVICES];
    int count = d->device_count, index;
    bool is_listed[EMU_MOST_DEVICES] = {false};
    if (!list)
        return;
    memcpy(all, d->devices, sizeof all);
    d->device_count = 0;
    for (const char *at = list; *at;) {
        emu_text text = {at, strcspn(at, ",")};
        if ((index = identify(all, count, text)) < 0)
            break;
        if (is_listed[index]) {
            d->device_count = 0;
            break;
        }
        is_listed[index] = true;
        d->devices[d->device_count++] = all[index];
        at += text.size + (at[text.size] == ',');
    }
    if (!d->device_count)
        fprintf(stderr, "kiln emulator: CUDA_VISIBLE_DEVICES=%s leaves none of %d device%s\n", list, count,
                count == 1 ? "" : "s");
}

static bool read_driver_version(emu_driver *d)
{
    const char *text = getenv("KILN_EMU_DRIVER");
    char *end;
    d->version = 13010;
    if (!text || !*text)
        return true;
    long version = strtol(text, &end, 10);
    if (*end || version < 10000 || version > 13010 || version % 10) {
        fprintf(stderr,
                "kiln emulator: KILN_EMU_DRIVER=%s: expected a version from 10000 to 13010, such as 12020\n",
                text);
        return false;
    }
    d->version = (int)version;
    d->is_version_chosen = true;
    return true;
}

static void set_phase(emu_phase phase)
{
    __atomic_store_n(&emu_the_driver.phase, phase, __ATOMIC_RELEASE);
}

/* The driver is unusable in a forked child, as NVIDIA's is. With KILN_EMU_FORK=1 the child goes on with its copy of the
   state. */
static void enter_child(void)
{
    const char *keeps = getenv("KILN_EMU_FORK");
    if (!keeps || strcmp(keeps, "1") != 0)
        set_phase(EMU_FORKED);
}

static void begin_exit(void)
{
    set_phase(EMU_EXITING);
}

CUresult emu_ready(void)
{
    static const CUresult results[] = {[EMU_BEFORE_INIT] = CUDA_ERROR_NOT_INITIALIZED,
                                       [EMU_READY] = CUDA_SUCCESS,
                                       [EMU_FORKED] = CUDA_ERROR_NOT_INITIALIZED,
                                       [EMU_EXITING] = CUDA_ERROR_DEINITIALIZED};
    return results[__atomic_load_n(&emu_the_driver.phase, __ATOMIC_ACQUIRE)];
}

static CUresult initialise(void)
{
    emu_driver fresh = {0};
    emu_limits limits; /* read only to report wrong values */
    if (!read_devices(&fresh) || !read_driver_version(&fresh) || !emu_read_checks(&fresh.checks) ||
        !emu_read_limits(&limits))
        return CUDA_ERROR_INVALID_VALUE;
    choose_visible(&fresh);
    if (!fresh.device_count)
        return CUDA_ERROR_NO_DEVICE;
    for (int i = 0; i < fresh.device_count; i++)
        fresh.devices[i].ordinal = i;
    if (pthread_atfork(NULL, NULL, enter_child) != 0 || atexit(begin_exit) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    emu_check_memory(fresh.checks);
    emu_the_driver = fresh;
    set_phase(EMU_READY);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult r = emu_the_driver.phase == EMU_BEFORE_INIT ? initialise() : emu_ready();
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    emu_driver d = {0};
    if (!read_driver_version(&d))
        return CUDA_ERROR_INVALID_VALUE;
    *version = d.version;
    return CUDA_SUCCESS;
}

CUresult emu_find_device(CUdevice ordinal, emu_device **device)
{
    emu_driver *d = &emu_the_driver;
    EMU_CHECK(emu_ready());
    if (ordinal < 0 || ordinal >= d->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = &d->devices[ordinal];
    return CUDA_SUCCESS;
}

#define FIND_DEVICE(d, ordinal)                                                                              \
    emu_device *d = NULL;                                                                                    \
    EMU_CHECK(emu_find_device(ordinal, &d))

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !count)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    *count = emu_the_driver.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FIND_DEVICE(d, ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = d->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!name || size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)size, "kiln emulated sm_%u", d->model->number);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    *uuid = uuid_of(d);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = d->model->memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)(d->model->number / 10);
    *minor = (int)(d->model->number % 10);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!text || size < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)size, "0000:%02x:00.0", d->slot + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    FIND_DEVICE(d, device);
    FIND_DEVICE(other, peer);
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    *can = 0;
    (void)d, (void)other;
    return CUDA_SUCCESS;
}

#define MOST_ATTRIBUTES 160

/* CUdevice_attribute. Unlisted attributes are features that the emulator lacks: 0. */
static int attribute_value(const emu_device *d, int attribute)
{
    const emu_device_model *m = d->model;
    const int values[MOST_ATTRIBUTES] = {
        [1] = 1024,                                /* MAX_THREADS_PER_BLOCK */
        [2] = 1024,                                /* MAX_BLOCK_DIM_X */
        [3] = 1024,                                /* MAX_BLOCK_DIM_Y */
        [4] = 64,                                  /* MAX_BLOCK_DIM_Z */
        [5] = 2147483647,                          /* MAX_GRID_DIM_X */
        [6] = 65535,                               /* MAX_GRID_DIM_Y */
        [7] = 65535,                               /* MAX_GRID_DIM_Z */
        [8] = (int)EMU_SHARED_PER_BLOCK,           /* MAX_SHARED_MEMORY_PER_BLOCK */
        [9] = 65536,                               /* TOTAL_CONSTANT_MEMORY */
        [10] = EMU_LANES,                          /* WARP_SIZE */
        [11] = 2147483647,                         /* MAX_PITCH */
        [12] = (int)EMU_REGISTERS_PER_BLOCK,       /* MAX_REGISTERS_PER_BLOCK */
        [13] = (int)m->clock_khz,                  /* CLOCK_RATE */
        [14] = 512,                                /* TEXTURE_ALIGNMENT */
        [15] = 1,                                  /* GPU_OVERLAP */
        [16] = (int)m->multiprocessors,            /* MULTIPROCESSOR_COUNT */
        [19] = 1,                                  /* CAN_MAP_HOST_MEMORY */
        [30] = 512,                                /* SURFACE_ALIGNMENT */
        [31] = 1,                                  /* CONCURRENT_KERNELS */
        [33] = d->ordinal + 1,                     /* PCI_BUS_ID */
        [36] = (int)m->memory_clock_khz,           /* MEMORY_CLOCK_RATE */
        [37] = (int)m->bus_bits,                   /* GLOBAL_MEMORY_BUS_WIDTH */
        [38] = (int)m->l2_bytes,                   /* L2_CACHE_SIZE */
        [39] = (int)m->threads_per_multiprocessor, /* MAX_THREADS_PER_MULTIPROCESSOR */
        [40] = 2,                                  /* ASYNC_ENGINE_COUNT */
        [41] = 1,                                  /* UNIFIED_ADDRESSING */
        [75] = (int)(m->number / 10),              /* COMPUTE_CAPABILITY_MAJOR */
        [76] = (int)(m->number % 10),              /* COMPUTE_CAPABILITY_MINOR */
        [78] = 1,                                  /* STREAM_PRIORITIES_SUPPORTED */
        [79] = 1,                                  /* GLOBAL_L1_CACHE_SUPPORTED */
        [80] = 1,                                  /* LOCAL_L1_CACHE_SUPPORTED */
        [81] = (int)m->shared_per_multiprocessor,  /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
        [82] = (int)EMU_REGISTERS_PER_BLOCK,       /* MAX_REGISTERS_PER_MULTIPROCESSOR */
        [83] = 1,                                  /* MANAGED_MEMORY */
        [90] = 1,                                  /* COMPUTE_PREEMPTION_SUPPORTED */
        [97] = (int)m->shared_per_block_optin,     /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
        [106] = (int)m->blocks_per_multiprocessor, /* MAX_BLOCKS_PER_MULTIPROCESSOR */
        [111] =
            m->number >= 80 ? (int)EMU_RESERVED_SHARED_PER_BLOCK : 0, /* RESERVED_SHARED_MEMORY_PER_BLOCK */
        [115] = 1,                                                    /* MEMORY_POOLS_SUPPORTED */
        [120] = m->number >= 90,                                      /* CLUSTER_LAUNCH */
    };
    return values[attribute];
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    FIND_DEVICE(d, device);
    if (!value || attribute <= 0 || attribute >= MOST_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_value(d, attribute);
    return CUDA_SUCCESS;
}
