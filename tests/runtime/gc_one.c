/* An application that uses one of two kernels. check_gc_sections.py checks what the linker kept. */
#include "mini.h"

static kiln_driver driver;
static kiln_slot slots[MINI_SLOTS];
static kiln_loader loader;

int main(void)
{
    kiln_status status = kiln_driver_load(&driver, NULL, NULL);
    if (status == KILN_OK)
        status = kiln_open(&loader, &driver, &mini_bundle, slots, MINI_SLOTS, NULL);
    if (status == KILN_OK)
        status = mini_axpy_f32(&loader, NULL, &(mini_axpy_args){.x = 256, .y = 512, .a = 2, .n = 1});
    return (int)status;
}
