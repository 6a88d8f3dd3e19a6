/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuDNN offers for convolutions, planned for an H200 that need not be there: cuDNN
 * plans from a description of a device too. What the kernels compute is tested with all
 * layers on CUDA.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <strata/plugin.h>

#include "plugins/convolution/cudnn/choice.h"

static const char h200[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"warpSize\":32,\"deviceVer\":900,\"driverVer\":13000,\"multiProcessorCount\":132,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,"
    "\"totalGlobalMem\":150000000000,\"regsPerBlock\":65536,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"pciDeviceId\":9013,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA H200\"}";

static struct cudnn_builder described;

static struct cudnn_target target(void)
{
    if (described.n == 0) {
        cudnnBackendDescriptor_t d =
            cudnn_make(&described, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device");
        cudnn_set(&described, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                  CUDNN_TYPE_CHAR, sizeof h200 - 1, h200);
        cudnn_finalize(&described, d);
        cr_assert_eq(described.status, CUDNN_STATUS_SUCCESS, "%s",
                     cudnnGetErrorString(described.status));
    }
    return (struct cudnn_target){.device = -1, .properties = described.made[0]};
}

struct window {
    int c, size, k, kernel, stride, groups;
};

static void shape(struct cudnn_shape *s, int64_t n, int64_t c, int64_t h, bool last)
{
    const int64_t dims[] = {n, c, h, h}, near[] = {c * h * h, 1, h * c, c},
                  far[] = {c * h * h, h * h, h, 1};
    memcpy(s->dims, dims, sizeof dims);
    memcpy(s->strides, last ? near : far, sizeof near);
}

static struct cudnn_problem problem(const struct window *w, int batch, int type,
                                    bool last)
{
    const int pad = w->kernel / 2, out = (w->size + 2 * pad - w->kernel) / w->stride + 1;
    struct cudnn_problem p;
    memset(&p, 0, sizeof p);
    p.rank = 4;
    p.type = type;
    p.tensor_cores = type == CUDNN_DATA_HALF;
    p.activation = -1;
    shape(&p.x, batch, w->c, w->size, last);
    shape(&p.w, w->k, w->c / w->groups, w->kernel, last);
    shape(&p.y, batch, w->k, out, last);
    for (int d = 0; d < 2; d++) {
        p.begin[d] = p.end[d] = pad;
        p.stride[d] = w->stride;
        p.dilation[d] = 1;
    }
    return p;
}

static const struct window resnet[] = {
    {8, 224, 64, 7, 2, 1},   {64, 56, 256, 1, 1, 1},    {128, 56, 128, 3, 2, 1},
    {256, 14, 256, 3, 1, 1}, {1024, 14, 2048, 1, 2, 1}, {512, 7, 512, 3, 1, 1},
};
enum { RESNET = sizeof resnet / sizeof resnet[0] };

/* The epilogues that networks of this kind have. */
static const struct epilogue {
    const char *name;
    int operands, activation;
} epilogues[] = {
    {"none", 0, -1},
    {"bias", 1 << CUDNN_BIAS, -1},
    {"bias, relu", 1 << CUDNN_BIAS, STRATA_RELU},
    {"bias, sum", 1 << CUDNN_BIAS | 1 << CUDNN_RESIDUAL, -1},
    {"bias, sum, relu", 1 << CUDNN_BIAS | 1 << CUDNN_RESIDUAL, STRATA_RELU},
};
enum { EPILOGUES = sizeof epilogues / sizeof epilogues[0] };

TestSuite(cudnn, .timeout = 600);

Test(cudnn, has_kernels_for_each_convolution_of_resnet)
{
    const struct cudnn_target t = target();
    for (int i = 0; i < RESNET; i++)
        for (int e = 0; e < EPILOGUES; e++) {
            struct cudnn_problem p = problem(&resnet[i], 8, CUDNN_DATA_HALF, true);
            p.operands = epilogues[e].operands;
            p.activation = epilogues[e].activation;
            const struct cudnn_choice *c = cudnn_choose(&t, &p);
            cr_assert_not_null(c);
            cr_expect_eq(c->n, CUDNN_TACTICS, "layer %d, %s: %d plans. %s", i,
                         epilogues[e].name, c->n, c->reason);
            for (int k = 0; k < c->n; k++)
                cr_expect(!c->plans[k].compiled, "layer %d, %s: plan %d is compiled", i,
                          epilogues[e].name, k);
        }
}

Test(cudnn, has_kernels_without_tensor_cores_in_every_layout)
{
    static const struct window groups[] = {{64, 14, 64, 3, 1, 1}, {64, 14, 64, 3, 1, 64}};
    const struct cudnn_target t = target();
    for (int i = 0; i < 8; i++)
        for (int e = 0; e < EPILOGUES; e++) {
            const int type = i & 1 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
            struct cudnn_problem p = problem(&groups[i >> 2], 3, type, i & 2);
            p.tensor_cores = 0;
            p.operands = epilogues[e].operands;
            p.activation = epilogues[e].activation;
            const struct cudnn_choice *c = cudnn_choose(&t, &p);
            cr_assert_not_null(c);
            cr_expect_gt(c->n, 0, "case %d, %s: %s", i, epilogues[e].name, c->reason);
        }
}

Test(cudnn, compiles_no_dense_convolution_for_its_activation)
{
    const struct cudnn_target t = target();
    for (int activation = 0; activation < STRATA_ACTIVATION_COUNT; activation++) {
        struct cudnn_problem p = problem(&resnet[1], 1, CUDNN_DATA_HALF, true);
        if (!cudnn_has_activation(activation))
            continue;
        p.operands = 1 << CUDNN_BIAS;
        p.activation = activation;
        const struct cudnn_choice *c = cudnn_choose(&t, &p);
        cr_assert_not_null(c);
        cr_expect(c->n > 0 || strstr(c->reason, "activation"), "%s", c->reason);
        for (int k = 0; k < c->n; k++)
            cr_expect(!c->plans[k].compiled, "activation %d: plan %d is compiled",
                      activation, k);
    }
}

/* The rule would be empty if the lists were the same. */
Test(cudnn, forbidding_tensor_cores_leaves_other_kernels)
{
    const struct cudnn_target t = target();
    struct cudnn_problem p = problem(&resnet[3], 8, CUDNN_DATA_HALF, true);
    const struct cudnn_choice *with = cudnn_choose(&t, &p);
    p.tensor_cores = 0;
    const struct cudnn_choice *without = cudnn_choose(&t, &p);
    cr_assert(with && without && with->n > 0 && without->n > 0);
    for (int i = 0; i < with->n; i++)
        for (int k = 0; k < without->n; k++)
            cr_expect_neq(with->plans[i].engine, without->plans[k].engine);
}

Test(cudnn, lists_no_plan_twice)
{
    const struct cudnn_target t = target();
    for (int i = 0; i < RESNET; i++) {
        struct cudnn_problem p = problem(&resnet[i], 1, CUDNN_DATA_HALF, true);
        const struct cudnn_choice *c = cudnn_choose(&t, &p);
        cr_assert(c && c->n > 1);
        for (int a = 0; a < c->n; a++)
            for (int b = 0; b < a; b++)
                cr_expect(c->plans[a].engine != c->plans[b].engine ||
                              strcmp(c->plans[a].knobs, c->plans[b].knobs) != 0,
                          "layer %d: plans %d and %d are engine %lld {%s}", i, a, b,
                          (long long)c->plans[a].engine, c->plans[a].knobs);
    }
}

Test(cudnn, keeps_what_it_chose)
{
    const struct cudnn_target t = target();
    struct cudnn_problem p = problem(&resnet[1], 1, CUDNN_DATA_HALF, true);
    const struct cudnn_choice *c = cudnn_choose(&t, &p);
    cr_expect_eq(cudnn_choose(&t, &p), c);
    p.operands = 1 << CUDNN_BIAS;
    cr_expect_neq(cudnn_choose(&t, &p), c);
}

Test(cudnn, says_why_there_is_no_plan)
{
    const struct cudnn_target t = target();
    struct cudnn_problem p = problem(&resnet[1], 1, CUDNN_DATA_HALF, true);
    p.y.dims[2]++; /* not what this window gives */
    const struct cudnn_choice *c = cudnn_choose(&t, &p);
    cr_assert_not_null(c);
    cr_expect_eq(c->n, 0);
    cr_expect(strstr(c->reason, "cuDNN"), "%s", c->reason);
}
