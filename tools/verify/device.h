/* A driver, one of its devices, and a context. */
#ifndef VERIFY_DEVICE_H
#define VERIFY_DEVICE_H

#include <stdbool.h>

#include <kiln/kiln.h>

#include "../support/pool.h"

#define DEVICE_UNNAMED UINT64_MAX

/* The last launch's parameters. */
typedef struct launch_record {
    uint64_t count; /* launches since launch_record_clear */
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    bool overlaps; /* may begin before the preceding launch has ended */
} launch_record;

typedef struct device {
    kiln_driver driver;
    const kiln_index *index;
    kiln_loader loader;
    kiln_slot *slots;
    void *scratch; /* buffer for decompressed images */
    int ordinal, version;
    char name[128];
    bool is_emulated; /* it checks bounds itself: buffers are exact and have no guards */
    bool overlaps; /* kernels that wait for the preceding launch themselves may begin before it has ended */
    bool is_open, is_named;
    bool has_order; /* the environment sets the order in which an emulated device starts thread blocks */
    CUcontext context;
    CUfunction writer;        /* writer.c; null until it is loaded */
    CUdeviceptr arena, piece; /* buffers.c: memory kept between executions, or 0; the buffers */
    unsigned char *image;     /* the piece's copy on the host */
    size_t image_bytes, image_room;
    char log[4096]; /* the driver compiler's log */
} device;

typedef enum device_status { DEVICE_OK, DEVICE_NONE, DEVICE_FAILED } device_status;

/* path null: libcuda.so.1; DEVICE_UNNAMED: the first device. Returns DEVICE_NONE if there is no driver or no
 * device, and the caller named neither; the message says which is missing. */
device_status device_open(device *d, const char *path, uint64_t ordinal, const kiln_index *index, char *error,
                          size_t error_bytes);
void device_close(device *d);

/* Makes a new context and loads everything again: after a kernel fails, its context accepts no more work. */
device_status device_reopen(device *d, char *error, size_t error_bytes);

/* Lets launches overlap on a real device; on an emulated device they always do. False: the device is older than
 * sm_90, or its driver is too old. */
enum { DEVICE_FIRST_OVERLAP_SM = 90 };
bool device_overlap(device *d);

/* Writes "sm_90a". */
void device_describe_target(const kiln_image *image, char *text, size_t bytes);

/* Writes "CUDA_ERROR_INVALID_VALUE (invalid argument)". */
void device_describe_result(const device *d, int result, char *text, size_t bytes);

/* Writes the same, or for a negative result the loader's last error, followed by the driver compiler's log. */
void device_describe_failure(device *d, const kiln_kernel *kernel, int result, char *text, size_t bytes);

/* Launches through this driver are counted. They reach the driver unless they are held back. */
void launch_record_clear(void);
const launch_record *launch_record_read(void);
void launch_hold_back(bool held);

/* Returns the image data that the driver gets, decompressed if necessary; valid until another image is loaded.
 * Null: the codec rejects the data. */
const char *device_image_data(const device *d, const kiln_image *image);

/* Replaces the image's text in modules that are loaded from now on; if images are compressed, every image's
 * text. A null image ends the replacement. */
void device_replace_image(const device *d, const kiln_image *image, const char *text);

typedef enum block_order { BLOCKS_FORWARD, BLOCKS_REVERSE, BLOCKS_SHUFFLE } block_order;

/* Sets KILN_EMU_ORDER, the order in which an emulated device starts thread blocks, unless the environment sets it. */
void device_order_blocks(const device *d, block_order order);

/* Returns the kernel of the last launch; null if it is unknown. */
const kiln_kernel *launch_record_kernel(const device *d);

#endif
