/* SPDX-License-Identifier: Apache-2.0
 *
 * A small network on CUDA through the whole stack: one copy of the weights, measured
 * plans and their files. (Larger ones: STRATA_TEST_DEVICE=cuda tests/engine/models and
 * tests/engine/random_networks.)
 */
#include "tests/cuda/chain.h"
#include "tests/cuda/device.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "io/weights/weights.h"
#include "planner/planner.h"

TestSuite(cuda_network, .fini = remove_files, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

static const char small[] = "[network]\nformat = 1\noutputs = prob\n"
                            "[build]\nprecision = fp16\nmath = tensor_op\n"
                            "[input x]\nshape = 2 x 32 x 9 x 7\n[weights w]\nrandom = 1\n"
                            "[layer a]\ntype = Convolution\nfilters = 64\nkernel = 3x3\n"
                            "pad = 1\nweight = w\nbias = w\n"
                            "[layer r]\ntype = Activation\nkind = relu\n"
                            "[layer b]\ntype = Convolution\nfilters = 64\nkernel = 1x1\n"
                            "weight = w\n"
                            "[layer s]\ntype = ElementWise\ninputs = r, b\nop = sum\n"
                            "[layer prob]\ntype = Softmax\naxis = 1\n";

/* Packed to FP16, with depths of 32 as 64 where an impl has them so, and nothing kept
 * beside it but the biases: twice would be more. What the allocator has given is what the
 * engine and its context tell. */
Test(cuda_network, weights_are_kept_once)
{
    enum { WEIGHTS = 64 * 32 * 9 + 64 * 64, PADDED = 64 * 64 * 9 + 64 * 64, BIASES = 64 };
    strata_handle *h = need_cuda();
    strata_memory_stats stats = {.struct_size = sizeof stats};
    struct net n;
    uint64_t bindings = 0;
    write_text(small);
    open_net(&n, h);
    const uint64_t weights = strata_engine_weight_bytes(n.engine);
    cr_expect(weights >= 2 * WEIGHTS && weights <= 2 * PADDED + 16 * BIASES,
              "%llu bytes of weights, of %d elements", (unsigned long long)weights,
              WEIGHTS + BIASES);
    cr_assert_eq(strata_context_prepare(n.context, NULL), STRATA_OK);
    for (int i = 0; i < strata_engine_bindings(n.engine); i++) {
        strata_binding b = {.struct_size = sizeof b};
        cr_assert_eq(strata_engine_binding(n.engine, i, &b, NULL), STRATA_OK);
        bindings += (uint64_t)b.bytes;
    }
    strata_get_memory_stats(h, &stats, NULL);
    cr_expect_eq(stats.current_bytes,
                 weights + strata_engine_arena_bytes(n.engine) + bindings);
    close_net(&n);
}

/* A plan from measured costs, the same from the file they were kept in, without a
 * measurement; both give what the host gives. */
Test(cuda_network, measured_plans_are_replayed_from_their_file)
{
    char costs[80];
    static float x[2 * 32 * 9 * 7], y[3][2 * 64 * 9 * 7];
    double largest = 0;
    strata_destroy(need_cuda());
    write_text(small);
    snprintf(costs, sizeof costs, "%s.costs", net_path);
    draw(x, ARRAY_LENGTH(x));
    for (int i = 0; i < 3; i++) {
        strata_error err = {0};
        struct net n = {.handle = i == 2 ? host_handle() : need_cuda()};
        OK(strata_registry_create(&n.registry, NULL, &err));
        OK(strata_network_load(&n.network, net_path, n.registry, NULL, &err));
        n.network->build.costs.kind = i == 0   ? COSTS_MEASURE
                                      : i == 1 ? COSTS_FILE
                                               : COSTS_ANALYTIC;
        if (i < 2) {
            char **file =
                i == 0 ? &n.network->build.costs.save : &n.network->build.costs.file;
            cr_assert_not_null(*file = duplicate(costs, NULL));
        }
        OK(strata_engine_build(&n.engine, n.handle, n.network, &err));
        cr_expect_eq(n.engine->planner->costs.measured > 0, i == 0, "%zu measured",
                     n.engine->planner->costs.measured);
        OK(strata_context_create(&n.context, n.engine, n.handle, &err));
        OK(strata_copy_in(n.context, 0, x, &err));
        OK(strata_context_run(n.context, &err));
        OK(strata_copy_out(n.context, 1, y[i], &err));
        close_net(&n);
    }
    unlink(costs);
    cr_expect_arr_eq(y[0], y[1], sizeof y[0], "the replayed plan is another");
    for (size_t i = 0; i < ARRAY_LENGTH(y[0]); i++)
        largest = fmax(largest, fabs((double)y[0][i] - (double)y[2][i]));
    cr_expect_leq(largest, 2e-3, "%g from the host's", largest);
}

/* Whatever plan wins, it gives what the host gives, and the engines and contexts of the
 * trials leave no memory behind. */
Test(cuda_network, trials_leave_a_right_engine_and_nothing_else)
{
    static float x[2 * 32 * 9 * 7], y[2][2 * 64 * 9 * 7];
    double largest = 0;
    strata_destroy(need_cuda());
    write_text(small);
    draw(x, ARRAY_LENGTH(x));
    for (int i = 0; i < 2; i++) {
        strata_error err = {0};
        struct net n = {.handle = i ? host_handle() : need_cuda()};
        strata_memory_stats stats = {.struct_size = sizeof stats};
        OK(strata_registry_create(&n.registry, NULL, &err));
        OK(strata_network_load(&n.network, net_path, n.registry, NULL, &err));
        n.network->build.costs.kind = i ? COSTS_ANALYTIC : COSTS_MEASURE;
        n.network->build.trials = UINT64_C(5000000000);
        OK(strata_engine_build(&n.engine, n.handle, n.network, &err));
        strata_get_memory_stats(n.handle, &stats, NULL);
        if (i == 0)
            cr_expect_eq(stats.current_bytes, strata_engine_weight_bytes(n.engine));
        OK(strata_context_create(&n.context, n.engine, n.handle, &err));
        OK(strata_copy_in(n.context, 0, x, &err));
        OK(strata_context_run(n.context, &err));
        OK(strata_copy_out(n.context, 1, y[i], &err));
        close_net(&n);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(y[0]); i++)
        largest = fmax(largest, fabs((double)y[0][i] - (double)y[1][i]));
    cr_expect_leq(largest, 2e-3, "%g from the host's", largest);
}

static const char windows[] =
    "[network]\nformat = 1\noutputs = y\n"
    "[build]\nprecision = bf16\nmath = tensor_op\ncosts = analytic\n"
    "[input x]\nshape = 7 x 24 x 8 x 14\n[weights w]\nrandom = 20\n"
    "[layer a]\ntype = Convolution\nfilters = 48\nkernel = 1x1\nweight = w\nbias = w\n"
    "[layer b]\ntype = Activation\nkind = hard_swish\n"
    "[layer c]\ntype = Convolution\nfilters = 48\nkernel = 3x3\nstride = 2\npad = 1\n"
    "groups = 48\nweight = w\nbias = w\n"
    "[layer y]\ntype = Activation\nkind = hard_swish\n";

/* Depthwise windows begin while the product before them still runs, and read no pixel
 * before it has ended: what is not written yet is NaN. */
Test(cuda_network, windows_wait_for_the_product_before_them)
{
    enum { RUNS = 30, COUNT = 7 * 48 * 4 * 7 };
    static float x[7 * 24 * 8 * 14], y[COUNT], wanted[COUNT];
    strata_handle *cuda = need_cuda();
    strata_error err = {0};
    struct net n;
    double largest = 0, off = 0;
    write_text(windows);
    draw(x, ARRAY_LENGTH(x));
    for (int device = 0; device < 2; device++) {
        open_net(&n, device ? cuda : host_handle());
        OK(strata_copy_in(n.context, 0, x, &err));
        for (int run = 0; run < (device ? RUNS : 1); run++) {
            const struct device_ops *ops = n.handle->device->ops;
            OK(ops->fill(n.handle->stream, n.context->arena, 0xff,
                         (size_t)n.context->arena_bytes, &err));
            OK(strata_stream_synchronize(n.handle->stream, &err));
            OK(strata_context_run(n.context, &err));
            OK(strata_copy_out(n.context, 1, device ? y : wanted, &err));
            for (int i = 0; i < COUNT; i++) {
                const double d = fabs((double)y[i] - (double)wanted[i]);
                largest = fmax(largest, fabs((double)wanted[i]));
                off = !device || isnan(off) || d <= off ? off : d; /* a NaN stays */
            }
        }
        close_net(&n);
    }
    cr_expect_leq(off, 0.05 * largest, "%g off, of %g", off, largest);
}

/* More inputs than one launch takes, at a batch above 1. */
Test(cuda_network, concatenates_any_number_of_inputs)
{
    enum { INPUTS = 101, BATCH = 2, PART = 3 * 5 * 7 };
    char text[4096];
    static float x[BATCH * PART], y[BATCH * INPUTS * PART];
    strata_error err = {0};
    struct net n;
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "[network]\nformat = 1\noutputs = y\n"
                                   "[input x]\nshape = %d x 3 x 5 x 7\n[layer y]\n"
                                   "type = Concatenation\ninputs = x",
                                   BATCH);
    for (int i = 1; i < INPUTS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",%sx",
                                 i % 20 ? " " : " \\\n    ");
    snprintf(text + used, sizeof text - used, "\n");
    write_text(text);
    open_net(&n, need_cuda());
    draw(x, ARRAY_LENGTH(x));
    OK(strata_copy_in(n.context, 0, x, &err));
    OK(strata_context_run(n.context, &err));
    OK(strata_copy_out(n.context, 1, y, &err));
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < INPUTS; i++)
            cr_expect_arr_eq(&y[(b * INPUTS + i) * PART], &x[b * PART], PART * sizeof *x,
                             "image %d, input %d", b, i);
    close_net(&n);
}

/* ---- products of lines at any place --------------------------------------------------
 */

enum { ODD = 75, ODD_UNITS = 3, ODD_IMAGES = 5 };

/* Beside the network file: units of 1 and `little`, which a product of ones sums up. */
static void write_odd(const char *precision, const char *impl, float little)
{
    static float weight[ODD_UNITS][ODD], bias[ODD_UNITS] = {-1, -1, -1};
    const struct weight_view views[] = {
        {"w.weight", WEIGHT_F32, 2, {ODD_UNITS, ODD}, weight, sizeof weight},
        {"w.bias", WEIGHT_F32, 1, {ODD_UNITS}, bias, sizeof bias},
    };
    char text[512], path[80];
    for (int i = 0; i < ODD_UNITS; i++) {
        weight[i][0] = 1;
        weight[i][ODD / 2] = little;
    }
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = y\n[build]\nprecision = %s\n"
             "math = tensor_op\ncosts = analytic\n[input x]\nshape = %d x %d\n"
             "[weights w]\nfile = net.ini.w.safetensors\n[layer y]\n"
             "type = FullyConnected\nunits = %d\nweights = w:w\nimpl = %s\n",
             precision, ODD_IMAGES, ODD, ODD_UNITS, impl);
    write_text(text);
    snprintf(path, sizeof path, "%s.w.safetensors", net_path);
    cr_assert_eq(weights_save(path, views, ARRAY_LENGTH(views), NULL), STRATA_OK);
}

/* Fails where the impl is not there, or not for that device. */
static int run_odd(strata_handle *h, float *y)
{
    float x[ODD_IMAGES * ODD];
    char path[80];
    struct net n = {.handle = h};
    strata_error err = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(x); i++)
        x[i] = 1;
    OK(strata_registry_create(&n.registry, NULL, &err));
    int status = strata_network_load(&n.network, net_path, n.registry, NULL, &err);
    if (status == STRATA_OK)
        status = strata_engine_build(&n.engine, h, n.network, &err);
    if (status == STRATA_OK) {
        OK(strata_context_create(&n.context, n.engine, h, &err));
        OK(strata_copy_in(n.context, 0, x, &err));
        OK(strata_context_run(n.context, &err));
        OK(strata_copy_out(n.context, 1, y, &err));
    }
    close_net(&n);
    snprintf(path, sizeof path, "%s.w.safetensors", net_path);
    unlink(path);
    return status;
}

/* 1 + little is 1 in halves, so that a product that is rounded before its bias of -1
 * comes to it is 0. */
Test(cuda_network, a_bias_is_added_before_a_product_is_rounded)
{
    static const char *const impls[] = {"cublaslt_0", "cublaslt_1", "cublaslt_2",
                                        "cublaslt_3", "cuda"};
    static const struct {
        const char *precision;
        float little;
    } halves[] = {{"fp16", 1.0F / 4096}, {"bf16", 1.0F / 512}};
    int ran = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(impls) * ARRAY_LENGTH(halves); i++) {
        const char *impl = impls[i / 2], *precision = halves[i % 2].precision;
        float y[ODD_IMAGES * ODD_UNITS];
        strata_handle *h = need_cuda();
        write_odd(precision, impl, halves[i % 2].little);
        if (run_odd(h, y) != STRATA_OK)
            continue;
        ran++;
        for (size_t k = 0; k < ARRAY_LENGTH(y); k++)
            cr_expect_eq(y[k], halves[i % 2].little, "%s, %s: %g", impl, precision, y[k]);
    }
    cr_expect_gt(ran, 0, "no impl takes it");
}
