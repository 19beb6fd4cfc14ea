/* The interface between harness.c and a file of calls. */
#ifndef HEADERS_HARNESS_H
#define HEADERS_HARNESS_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

extern kiln_loader loader;
extern CUstream stream;
CUdeviceptr memory(void); /* zeros */
void report(const char *call, kiln_status status);

extern const kiln_bundle *const bundle;
void make_calls(void);

#ifdef __cplusplus
}
#endif

#endif
