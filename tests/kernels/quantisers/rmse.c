/* Measures the error of quantising 65,536 samples of the standard normal distribution to 4 bits in groups of 64 and back, relative
 * to their root mean square. Uses the generated functions: fused, and step by step.
 *
 *     quantisers_rmse DRIVER
 */
#include <math.h>

#include "../../calls.h"

#include "random.h"
#include "sample.h"

enum { COUNT = 65536, GROUPS = COUNT / 64 };

static float samples[COUNT], back[COUNT];
static CUdeviceptr in, out, packed, scale, zero;

static double relative_error(void)
{
    double error = 0, power = 0;
    download(back, out, sizeof back);
    for (size_t i = 0; i < COUNT; i++) {
        double difference = (double)back[i] - (double)samples[i];
        error += difference * difference;
        power += (double)samples[i] * (double)samples[i];
    }
    return sqrt(error / power);
}

static void int4(uint32_t mode, bool is_fused)
{
    if (is_fused) {
        need(sample_int4_quantize(
                 &loader, NULL,
                 &(sample_int4_quantize_args){
                     .in = in, .scale = scale, .zero = zero, .packed = packed, .n = COUNT, .mode = mode}) ==
                 KILN_OK,
             "int4_quantize");
    } else {
        need(sample_int4_scale(&loader, NULL,
                               &(sample_int4_scale_args){
                                   .in = in, .scale = scale, .zero = zero, .n = COUNT, .mode = mode}) ==
                 KILN_OK,
             "int4_scale");
        need(sample_int4_pack(
                 &loader, NULL,
                 &(sample_int4_pack_args){
                     .in = in, .scale = scale, .zero = zero, .packed = packed, .n = COUNT, .mode = mode}) ==
                 KILN_OK,
             "int4_pack");
    }
    need(sample_int4_unpack(
             &loader, NULL,
             &(sample_int4_unpack_args){
                 .packed = packed, .scale = scale, .zero = zero, .out = out, .n = COUNT, .mode = mode}) ==
             KILN_OK,
         "int4_unpack");
}

static void nf4(bool is_fused)
{
    if (is_fused) {
        need(sample_nf4_quantize(&loader, NULL,
                                 &(sample_nf4_quantize_args){
                                     .in = in, .scale = scale, .packed = packed, .n = COUNT}) == KILN_OK,
             "nf4_quantize");
    } else {
        need(sample_nf4_scale(&loader, NULL,
                              &(sample_nf4_scale_args){.in = in, .scale = scale, .n = COUNT}) == KILN_OK,
             "nf4_scale");
        need(sample_nf4_pack(
                 &loader, NULL,
                 &(sample_nf4_pack_args){.in = in, .scale = scale, .packed = packed, .n = COUNT}) == KILN_OK,
             "nf4_pack");
    }
    need(sample_nf4_unpack(
             &loader, NULL,
             &(sample_nf4_unpack_args){.packed = packed, .scale = scale, .out = out, .n = COUNT}) == KILN_OK,
         "nf4_unpack");
}

int main(int argc, char **argv)
{
    random_stream s = random_open(1, "rmse");
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    for (uint64_t i = 0; i < COUNT; i++)
        samples[i] = (float)random_normal(s, i);
    in = upload(samples, sizeof samples);
    out = allocate(sizeof back);
    packed = allocate(COUNT / 2);
    scale = allocate(GROUPS * sizeof(float));
    zero = allocate(GROUPS * sizeof(float));
    for (int is_fused = 1; is_fused >= 0; is_fused--) {
        const char *how = is_fused ? "fused" : "steps";
        int4(SAMPLE_INT4_QUANTIZE_MODE_SYM, is_fused);
        printf("int4-sym %s %.6f\n", how, relative_error());
        int4(SAMPLE_INT4_QUANTIZE_MODE_ASYM, is_fused);
        printf("int4-asym %s %.6f\n", how, relative_error());
        nf4(is_fused);
        printf("nf4 %s %.6f\n", how, relative_error());
    }
    return kiln_close(&loader) != KILN_OK;
}
