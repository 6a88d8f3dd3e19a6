/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation fails once while a network is read and while a model is imported: an
 * error, or what there is without the fault. A layer type that no memory was left to look
 * up is none that is missing, so that no other layers stand in for it.
 */
#include "network/network.h"

#include "core/alloc.h"
#include "io/stream.h"
#include "tests/network/import/imported.h"
#include "tests/support/fault.h"

static strata_registry *registry;

/* What is looked up once is loaded: here look-ups fail, not the loader. */
static void open_faults(void)
{
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    strata_set_logger(NULL, NULL, -1);
    fault_json(false);
}

static void close_faults(void)
{
    strata_registry_destroy(registry);
}

TestSuite(network_faults, .init = open_faults, .fini = close_faults, .timeout = 600);

struct tally {
    long calls, errors, coped;
};

/* `run` gives a text, which its caller frees, or NULL and an error. */
static struct tally fail_each(char *(*run)(strata_error *err))
{
    strata_error err = {0};
    free(run(&err)); /* first use allocates what stays */
    fault_arm(FAULT_MEMORY, 0, false);
    char *right = run(&err);
    struct tally t = {.calls = fault_disarm()};
    cr_assert_not_null(right, "%s", err.message);
    const long before = fault_blocks();
    for (long k = 1; k <= t.calls; k++) {
        strata_error why = {0};
        fault_arm(FAULT_MEMORY, k, false);
        char *text = run(&why);
        fault_disarm();
        if (text)
            cr_expect_str_eq(text, right, "allocation %ld", k);
        else
            cr_expect(why.status == STRATA_ENOMEM && why.message[0],
                      "allocation %ld: status %d, %s", k, why.status, why.message);
        t.errors += !text;
        t.coped += text != NULL;
        free(text);
    }
    cr_expect_eq(fault_blocks(), before, "%ld blocks leaked", fault_blocks() - before);
    free(right);
    return t;
}

/* ---- a network ------------------------------------------------------------------------
 */

/* Of all that the planner may make, one by one. */
static const char network[] =
    "[network]\nformat = 1\noutputs = s, r, d1, d2\n[weights w]\nrandom = 1\n"
    "[input x]\nshape = 1 x 8 x 4 x 4\n[input m]\nshape = 1 x 4 x 8\n"
    "[layer c]\ntype = Convolution\ninputs = x\nfilters = 8\nkernel = 1x1\nweights = w\n"
    "[layer p]\ntype = Pooling\nkernel = 2x2\nstride = 2\n"
    "[layer e]\ntype = Convolution\ninputs = x\nfilters = 8\nkernel = 2x2\nstride = 2\n"
    "weights = w\n[layer s]\ntype = ElementWise\ninputs = p, e\n"
    "[layer r]\ntype = Reduce\ninputs = s\naxes = 2, 3\n"
    "[layer d1]\ntype = MatrixMultiply\ninputs = m\nunits = 3\nb = w\n"
    "[layer d2]\ntype = MatrixMultiply\ninputs = m\nunits = 5\nb = w\n";

static char *made_types(strata_error *err)
{
    const struct network_memory memory = {.text = network,
                                          .text_size = sizeof network - 1};
    strata_network *net = NULL;
    char *text = NULL;
    if (network_parse(&net, &memory, "made.ini", registry, err) == STRATA_OK) {
        const struct registry_layer *const types[] = {
            net->pointwise,  net->projection,           net->perceptron,
            net->bottleneck, net->inverted_residual,    net->pooling,
            net->slice,      net->shortcut_convolution, net->pooled_convolution,
            net->gated};
        text = calloc(ARRAY_LENGTH(types) + 1, 1);
        for (size_t i = 0; text && i < ARRAY_LENGTH(types); i++)
            text[i] = types[i] ? 'y' : 'n';
        if (!text)
            error_no_memory(err, 0, "a text");
    }
    strata_network_destroy(net);
    return text;
}

Test(network_faults, types_that_the_planner_makes_are_there_or_it_is_an_error)
{
    strata_error err = {0};
    char *text = made_types(&err);
    cr_assert_not_null(text, "%s", err.message);
    cr_expect_str_eq(text, "yyyyyyyyyy");
    free(text);
    const struct tally t = fail_each(made_types);
    cr_expect_gt(t.errors, 100, "%ld of %ld", t.errors, t.calls);
}

/* ---- a model --------------------------------------------------------------------------
 */

/* A pattern (a sum after a product), a layer of a plugin's domain, folded constants. */
static const char model[] = "ir 8\nopset 13\nopset core 1\ninput x f 2x6\n"
                            "init w f 6x3 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\n"
                            "init b f 3 1 2 3\ninit half f - 0.5\n"
                            "node Mul b,half -> bh\nnode MatMul x,w -> p\n"
                            "node Add p,bh -> s\nnode Sigmoid s -> g\n"
                            "node Mul s,g -> m\nnode core::Identity m -> y\n"
                            "output y f 2x3\n";

static char *imported(strata_error *err)
{
    static struct message bytes;
    const struct onnx_model *read = NULL;
    struct import *im = NULL;
    char *text = NULL;
    size_t size;
    if (!bytes.bytes)
        bytes = model_bytes(model);
    int status = onnx_parse(&read, bytes.bytes, bytes.size, "model.onnx", NULL, err);
    if (status == STRATA_OK)
        status = import_make(&im, read, registry, NULL, err);
    if (status == STRATA_OK)
        status = import_text(im, "model.safetensors", &text, &size, err);
    import_free(im);
    onnx_close(read);
    return text;
}

Test(network_faults, a_model_is_imported_as_ever_or_it_is_an_error)
{
    const struct tally t = fail_each(imported);
    cr_expect_gt(t.errors, 100, "%ld of %ld", t.errors, t.calls);
}

/* ---- a text ---------------------------------------------------------------------------
 */

enum { LINES = 4000 };

static char *printed(strata_error *err)
{
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    for (int i = 0; f && i < LINES; i++)
        fprintf(f, "line %d of %d\n", i, LINES);
    if (!f || !text_finish(f, &text))
        error_no_memory(err, 0, "a text");
    return text;
}

/* No bytes are missing in the middle of what was printed. */
Test(network_faults, a_text_is_whole_or_there_is_none)
{
    const struct tally t = fail_each(printed);
    cr_expect_eq(t.coped, 0, "%ld of %ld", t.coped, t.calls);
    cr_expect_gt(t.errors, 4, "it grows");
}
