/* The driver's state: initialisation from the environment, and the registry of handles. */
#include "../check/check.h"
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

emu_driver emu_the_driver;

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct entry {
    struct entry *next;
    const void *object;
    emu_kind kind;
} entry;

static entry *registry[1024];

static entry **bucket_of(const void *object)
{
    return &registry[((uintptr_t)object >> 4) % (sizeof registry / sizeof *registry)];
}

void emu_register(void *object, emu_kind kind)
{
    entry *e = emu_alloc(sizeof *e);
    pthread_mutex_lock(&registry_lock);
    *e = (entry){*bucket_of(object), object, kind};
    *bucket_of(object) = e;
    pthread_mutex_unlock(&registry_lock);
}

void emu_unregister(void *object)
{
    pthread_mutex_lock(&registry_lock);
    for (entry **e = bucket_of(object); *e; e = &(*e)->next)
        if ((*e)->object == object) {
            entry *gone = *e;
            *e = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&registry_lock);
}

bool emu_is(const void *object, emu_kind kind)
{
    bool found = false;
    pthread_mutex_lock(&registry_lock);
    for (entry *e = *bucket_of(object); e; e = e->next)
        found |= e->object == object && e->kind == kind;
    pthread_mutex_unlock(&registry_lock);
    return found;
}

void *emu_any_of(emu_kind kind, CUcontext context)
{
    const void *found = NULL;
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < sizeof registry / sizeof *registry; i++)
        for (entry *e = registry[i]; e; e = e->next)
            if (e->kind == kind &&
                (kind == EMU_STREAM ? ((const struct CUstream_st *)e->object)->context
                                    : ((const struct CUevent_st *)e->object)->context) == context)
                found = e->object;
    pthread_mutex_unlock(&registry_lock);
    return (void *)(uintptr_t)found;
}

uint64_t emu_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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
        d->devices[d->device_count] = (emu_device){.model = model, .ordinal = d->device_count};
        d->device_count++;
        at += name.size + (at[name.size] == ',');
    }
    return true;
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

static bool are_limits_right(void)
{
    emu_limits limits;
    return emu_read_limits(&limits);
}

CUresult cuInit(unsigned flags)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!emu_the_driver.is_initialised) {
        emu_driver fresh = {0};
        if (read_devices(&fresh) && read_driver_version(&fresh) && emu_read_checks(&fresh.checks) &&
            are_limits_right()) {
            fresh.is_initialised = true;
            emu_check_memory(fresh.checks);
            emu_the_driver = fresh;
        } else {
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
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

emu_device *emu_device_at(CUdevice ordinal)
{
    emu_driver *d = &emu_the_driver;
    return ordinal >= 0 && ordinal < d->device_count ? &d->devices[ordinal] : NULL;
}
