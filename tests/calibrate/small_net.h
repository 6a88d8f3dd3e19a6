/* SPDX-License-Identifier: Apache-2.0
 *
 * A small network with all that can be quantised or carries, its weights and data drawn
 * anew, for tests of calibration.
 */
#ifndef TESTS_CALIBRATE_SMALL_NET_H
#define TESTS_CALIBRATE_SMALL_NET_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calibrate/collected.h"
#include "calibrate/quantised.h"
#include "calibrate/sensitivity.h"
#include "calibrate/weights.h"

/* Two branches that meet in a Concatenation, a sum with a shortcut, and layers between.
 */
static const char net_text[] = "[network]\nformat = 1\noutputs = prob\n"
                               "[input x]\nshape = 1 x 3 x 9 x 7\n"
                               "[weights w]\nrandom = %u\n"
                               "[layer conv1]\ntype = Convolution\nfilters = 6\n"
                               "kernel = 3x3\npad = 1\nweights = w\n"
                               "[layer relu1]\ntype = Activation\n"
                               "[layer pool]\ntype = Pooling\nkernel = 2x2\nstride = 2\n"
                               "[layer left]\ntype = Convolution\nfilters = 5\n"
                               "kernel = 1x1\nweights = w\n"
                               "[layer right]\ntype = Convolution\ninputs = pool\n"
                               "filters = 3\nkernel = 1x1\nweights = w\nbias = none\n"
                               "[layer join]\ntype = Concatenation\n"
                               "inputs = left, right\n"
                               "[layer conv2]\ntype = Convolution\nfilters = 8\n"
                               "kernel = 3x3\npad = 1\ngroups = 2\nweights = w\n"
                               "[layer sum]\ntype = ElementWise\ninputs = conv2, join\n"
                               "[layer up]\ntype = Deconvolution\nfilters = 4\n"
                               "kernel = 2x2\nstride = 2\ngroups = 2\nweights = w\n"
                               "[layer dense]\ntype = FullyConnected\nunits = 7\n"
                               "weights = w\n"
                               "[layer flat]\ntype = Shuffle\nshape = 0, 7\n"
                               "[layer last]\ntype = MatrixMultiply\nunits = 5\n"
                               "b = w\n"
                               "[layer prob]\ntype = Softmax\naxis = 1\n";

enum { PIXELS = 3 * 9 * 7, SAMPLES = 12 };

struct bench {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *net;
    struct scheme scheme;
    struct probe floats;
    struct samples samples;
    float data[SAMPLES][PIXELS];
    size_t loads;
};

static uint64_t state;

static inline double draw(void) /* -1 to 1 */
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(int64_t)state / 9223372036854775808.0;
}

static inline void ok(int status, const strata_error *err)
{
    cr_assert_eq(status, STRATA_OK, "%s", err->message);
}

static inline int load(void *of, strata_context *c, size_t i, strata_error *err)
{
    struct bench *b = of;
    b->loads++;
    return strata_copy_in(c, 0, b->data[i], err);
}

static inline void open_text(struct bench *b, const char *text, const bool *keep)
{
    strata_error err = {0};
    const struct network_memory memory = {.text = text, .text_size = strlen(text)};
    b->samples = (struct samples){SAMPLES, b, load, NULL};
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PIXELS; p++)
            b->data[i][p] = (float)draw();
    ok(strata_create(&b->handle, "host", &err), &err);
    ok(strata_registry_create(&b->registry, NULL, &err), &err);
    ok(network_parse(&b->net, &memory, "net", b->registry, &err), &err);
    ok(scheme_make(&b->scheme, b->net, &quant_int8, keep, NULL, &err), &err);
    ok(probe_open(&b->floats, b->handle, b->net, &err), &err);
}

static inline void open_bench(struct bench *b)
{
    char text[sizeof net_text + 16];
    memset(b, 0, sizeof *b);
    state = (uint64_t)time(NULL) * 2654435761u;
    snprintf(text, sizeof text, net_text, (unsigned)(state >> 40));
    open_text(b, text, NULL);
}

static inline void close_bench(struct bench *b)
{
    probe_close(&b->floats);
    scheme_free(&b->scheme);
    strata_network_destroy(b->net);
    strata_registry_destroy(b->registry);
    strata_destroy(b->handle);
}

static inline int tensor(const strata_network *net, const char *name)
{
    for (size_t t = 0; t < net->n_tensors; t++)
        if (strcmp(net->tensors[t].name, name) == 0)
            return (int)t;
    cr_assert_fail("no tensor %s", name);
    return -1;
}

static inline const struct network_layer *layer(const strata_network *net,
                                                const char *name)
{
    return &net->layers[net->tensors[tensor(net, name)].producer];
}

static inline void collect_ranges(struct bench *b, struct ranges *r)
{
    struct collection c;
    strata_error err = {0};
    ok(collection_open(&c, &b->scheme, &err), &err);
    ok(collection_run(&c, b->floats.context, &b->samples, SAMPLES, &err), &err);
    ok(collection_ranges(r, &c, range_method_find("max"), &quant_int8, RANGE_SHARE, &err),
       &err);
    collection_free(&c);
}

#endif /* TESTS_CALIBRATE_SMALL_NET_H */
