/* The loader's most recent failure. */
#include "internal.h"

/* The failure has its own lock: a failed launch must not wait for a module that another thread loads. */
kiln_status kiln_record(kiln_loader *loader, const kiln_error *error)
{
    if (loader != NULL) {
        kiln_acquire(loader, &loader->error_lock);
        loader->error = *error;
        release_lock(&loader->error_lock);
    }
    return error->status;
}

kiln_status kiln_fail(kiln_loader *loader, kiln_status status, const char *subject, const char *detail)
{
    return kiln_fail_call(loader, status, subject != NULL ? subject : "", detail != NULL ? detail : "", 0);
}

kiln_status kiln_fail_call(kiln_loader *loader, kiln_status status, const char *subject, const char *detail,
                           int driver_result)
{
    return kiln_record(
        loader, &(kiln_error){
                    .status = status, .driver_result = driver_result, .subject = subject, .detail = detail});
}

kiln_status kiln_fail_count(kiln_loader *loader, kiln_status status, const char *subject, const char *detail,
                            uint32_t needed, uint32_t present)
{
    return kiln_record(
        loader,
        &(kiln_error){
            .status = status, .subject = subject, .detail = detail, .needed = needed, .present = present});
}

kiln_status kiln_last_error(kiln_loader *loader, kiln_error *error)
{
    if (loader == NULL || error == NULL)
        return KILN_ERROR_NULL_POINTER;
    kiln_acquire(loader, &loader->error_lock);
    *error = loader->error;
    release_lock(&loader->error_lock);
    if (error->status == KILN_OK)
        error->subject = error->detail = ""; /* null in a zeroed loader */
    return KILN_OK;
}
