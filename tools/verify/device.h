/* A driver, a device of it, and a context. */
#ifndef VERIFY_DEVICE_H
#define VERIFY_DEVICE_H

#include <stdbool.h>

#include <kiln/kiln.h>

#include "../support/pool.h"

#define DEVICE_UNNAMED UINT64_MAX

/* What the last launch asked the driver for. */
typedef struct launch_record {
    uint64_t count; /* launches since launch_record_clear */
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    bool overlaps; /* it may begin before the preceding launch has ended */
} launch_record;

typedef struct device {
    kiln_driver driver;
    const kiln_index *index;
    kiln_loader loader;
    kiln_slot *slots;
    void *scratch; /* where compressed images are expanded */
    int ordinal, version;
    char name[128];
    bool is_emulated; /* it checks bounds by itself: buffers are exact and have no guards */
    bool overlaps; /* kernels that wait for the preceding launch themselves may begin before it has ended */
    bool is_open, is_named;
    bool has_order; /* the environment says in which order an emulated device begins thread blocks */
    CUcontext context;
    CUfunction writer;        /* writer.c; null until it is loaded */
    CUdeviceptr arena, piece; /* buffers.c: memory that is kept, 0 until there is any; what buffers are in */
    unsigned char *image;     /* of the piece */
    size_t image_bytes, image_room;
    char log[4096]; /* of the driver's compiler */
} device;

typedef enum device_status { DEVICE_OK, DEVICE_NONE, DEVICE_FAILED } device_status;

/* path null: libcuda.so.1; DEVICE_UNNAMED: the first device. DEVICE_NONE: no driver, or no device, and neither was named; the
 * message says which. */
device_status device_open(device *d, const char *path, uint64_t ordinal, const kiln_index *index, char *error,
                          size_t error_bytes);
void device_close(device *d);

/* After a failed kernel a context takes no more work: another one, with everything loaded again. */
device_status device_reopen(device *d, char *error, size_t error_bytes);

/* Lets launches overlap on a real device; on an emulated one they always do. False: the device is older than
 * sm_90, or its driver is too old. */
enum { DEVICE_FIRST_OVERLAP_SM = 90 };
bool device_overlap(device *d);

/* "sm_90a" */
void device_describe_target(const kiln_image *image, char *text, size_t bytes);

/* "CUDA_ERROR_INVALID_VALUE (invalid argument)" */
void device_describe_result(const device *d, int result, char *text, size_t bytes);

/* The same, or of a negative result the loader's last error, with the log of the driver's compiler. */
void device_describe_failure(device *d, const kiln_kernel *kernel, int result, char *text, size_t bytes);

/* Launches through this driver are counted, and passed on unless they are held back. */
void launch_record_clear(void);
const launch_record *launch_record_read(void);
void launch_hold_back(bool held);

/* What the driver is handed of an image: its data, or what its codec makes of that, until another one is loaded. Null: the
 * codec refuses it. */
const char *device_image_data(const device *d, const kiln_image *image);

/* Modules that are loaded from now on get this text in the place of the image's, of compressed ones of any image's; with a
 * null image none does. */
void device_replace_image(const device *d, const kiln_image *image, const char *text);

typedef enum block_order { BLOCKS_FORWARD, BLOCKS_REVERSE, BLOCKS_SHUFFLE } block_order;

/* In which order the thread blocks of later launches begin, on an emulated device: KILN_EMU_ORDER, unless the environment sets it
 *. */
void device_order_blocks(const device *d, block_order order);

/* Which kernel the last launch was of; null when that cannot be said. */
const kiln_kernel *launch_record_kernel(const device *d);

#endif
