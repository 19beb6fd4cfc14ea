/* Writes an error as one line of text, without stdio. */
#include "internal.h"

/* Counts all characters, keeps those that fit. */
typedef struct writer {
    char *text;
    size_t bytes;
    size_t length;
} writer;

static ONCE void put(writer *w, const char *string);
static ONCE void put_part(writer *w, const char *string);
static ONCE void put_number(writer *w, const char *before, uint32_t number);
static ONCE void put_version(writer *w, const char *before, uint32_t version);
static void put_versions(writer *w, const kiln_error *error);
static void put_driver_result(writer *w, const kiln_driver *driver, int result);
static void put_images(writer *w, const kiln_device *device, const kiln_module *module);
static void put_target(writer *w, const kiln_image *image);
static void put_shared_bytes(writer *w, const kiln_device *device, const kiln_kernel *kernel);

size_t kiln_describe_error(const kiln_loader *loader, const kiln_error *error, const kiln_kernel *kernel,
                           char *text, size_t bytes)
{
    writer w = {.text = text, .bytes = text != NULL ? bytes : 0};
    if (error != NULL) {
        bool open = loader != NULL && loader->state == LOADER_OPEN;
        put(&w, kiln_status_string(error->status));
        put_part(&w, error->subject);
        put_part(&w, error->detail);
        if (error->needed != 0 || error->present != 0)
            put_versions(&w, error);
        if (error->driver_result != 0)
            put_driver_result(&w, loader != NULL ? loader->driver : NULL, error->driver_result);
        if (open && kernel != NULL &&
            (error->status == KILN_ERROR_NO_IMAGE || error->status == KILN_ERROR_DRIVER_TOO_OLD)) {
            put_images(&w, &loader->device, kernel->module);
            put_shared_bytes(&w, &loader->device, kernel);
        }
    }
    if (w.bytes != 0)
        w.text[w.length < w.bytes ? w.length : w.bytes - 1] = '\0';
    return w.length;
}

/* Describes a driver error as a closed loader with this driver would. */
size_t kiln_describe_driver(const kiln_driver *driver, const char *call, int result, char *text, size_t bytes)
{
    kiln_loader loader;
    loader.driver = driver;
    loader.state = LOADER_CLOSED;
    const kiln_error error = {
        .status = result != 0 ? KILN_ERROR_DRIVER : KILN_OK, .driver_result = result, .subject = call};
    return kiln_describe_error(&loader, &error, NULL, text, bytes);
}

static void put(writer *w, const char *string)
{
    for (; *string != '\0'; string++, w->length++) {
        if (w->length < w->bytes)
            w->text[w->length] = *string;
    }
}

static void put_part(writer *w, const char *string)
{
    if (string == NULL || string[0] == '\0')
        return;
    put(w, ": ");
    put(w, string);
}

/* Writes `before`, then the number. */
static void put_number(writer *w, const char *before, uint32_t number)
{
    char digits[11];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    put(w, before);
    put(w, first);
}

/* 12080 is 12.8. */
static void put_version(writer *w, const char *before, uint32_t version)
{
    put_number(w, before, version / 1000);
    put_number(w, ".", version % 1000 / 10);
}

static void put_versions(writer *w, const kiln_error *error)
{
    void (*const put_value)(writer *, const char *, uint32_t) =
        error->status == KILN_ERROR_DRIVER_TOO_OLD ? put_version : put_number;
    put_value(w, ": needs ", error->needed);
    put_value(w, ", has ", error->present);
}

/* Writes the result's name if the driver has one. The stub library returns the same error from every call, so it
 * gives no names. */
static void put_driver_result(writer *w, const kiln_driver *driver, int result)
{
    const char *name = NULL;
    if (result == STUB_LIBRARY)
        name = "the CUDA toolkit's stub library";
    else if (driver != NULL && driver->get_error_name != NULL && driver->get_error_name(result, &name) != 0)
        name = NULL;
    put_part(w, name != NULL ? name : "driver result");
    put(w, name != NULL ? " (" : " ");
    put_number(w, result < 0 ? "-" : "", result < 0 ? 0u - (uint32_t)result : (uint32_t)result);
    put(w, name != NULL ? ")" : "");
}

static void put_images(writer *w, const kiln_device *device, const kiln_module *module)
{
    static const char fits[][22] = {[KILN_FIT] = " fits",
                                    [KILN_FIT_DEVICE_TOO_OLD] = " is for newer devices",
                                    [KILN_FIT_OTHER_DEVICE] = " is for other devices",
                                    [KILN_FIT_DRIVER_TOO_OLD] = " needs driver ",
                                    [KILN_FIT_NOT_PTX] = " is not PTX"};
    put_number(w, "; device sm_", device->sm);
    for (uint32_t i = 0; i < module->image_count; i++) {
        const kiln_image *image = &module->images[i];
        put_target(w, image);
        const kiln_fit fit = kiln_image_fit(device, image);
        put(w, fits[(unsigned)fit]); /* the cast saves a sign extension that clang emits for KILN_AS_INT */
        if (fit == KILN_FIT_DRIVER_TOO_OLD)
            put_version(w, "", image->min_driver);
    }
}

static void put_target(writer *w, const kiln_image *image)
{
    static const char formats[][12] = {[KILN_IMAGE_PTX] = "; sm_", [KILN_IMAGE_CUBIN] = "; cubin sm_"};
    static const char kinds[][2] = {[KILN_TARGET_ARCH] = "a", [KILN_TARGET_FAMILY] = "f"};
    put_number(w, formats[image->format], image->sm);
    put(w, kinds[image->kind]);
}

/* Why there is no image: the generator omits targets with too little shared memory. */
static void put_shared_bytes(writer *w, const kiln_device *device, const kiln_kernel *kernel)
{
    uint32_t most = kernel->max_shared_bytes + kernel->static_shared_bytes;
    if (most <= device->max_shared_bytes)
        return;
    put_number(w, "; takes up to ", most);
    put_number(w, " bytes of shared memory, the device has ", device->max_shared_bytes);
}
