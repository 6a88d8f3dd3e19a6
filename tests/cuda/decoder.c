/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders a token at a time, at sizes that share nothing, against the host in FP32.
 */
#include <math.h>

#include "engine/context/context.h"
#include "tests/cuda/device.h"
#include "tests/engine/batch_net.h"

TestSuite(cuda_decoder, .init = scratch_make, .fini = scratch_remove, .timeout = 1200);

enum { BLOCKS = 2, TOKENS = 200, ROOM = 256, MOST_WORDS = 256 };

static const struct sizes {
    const char *name, *precision;
    int hidden, heads, kv_heads, ffn, words, window; /* 0: all tokens are seen */
    bool interleaved, bias;
    double bound; /* of the root mean square of logits */
} all[] = {
    {"as many keys as heads", "fp16", 288, 6, 6, 768, 200, 0, true, false, 3e-3},
    {"13 heads share a key", "fp16", 1040, 13, 1, 2744, 77, 50, false, true, 3e-3},
    {"rows of several warps", "fp16", 2304, 18, 6, 6152, 50, 0, false, false, 3e-3},
    {"bf16", "bf16", 512, 8, 2, 4104, 120, 0, false, true, 2e-2},
};

static void product(FILE *f, const char *at, const char *name, const char *inputs,
                    int units, bool bias)
{
    fprintf(f,
            "[layer %s%s]\ntype = MatrixMultiply\ninputs = %s\ntranspose_b = yes\n"
            "units = %d\nb = w:%s%s\n",
            at, name, inputs, units, at, name);
    if (bias)
        fprintf(f, "bias = w:%s%s_bias\n", at, name);
}

static void norm(FILE *f, const char *at, const char *name, const char *input)
{
    fprintf(f,
            "[layer %s%s]\ntype = Normalization\ninputs = %s\nkind = rms\n"
            "scale = w:%s%s_scale\n",
            at, name, input, at, name);
}

static void block(FILE *f, const struct sizes *s, int i, const char *x)
{
    const int dim = s->hidden / s->heads;
    const char *turn = s->interleaved ? "interleaved = yes\n" : "";
    char at[16], in[64];
    snprintf(at, sizeof at, "b%d/", i);
    norm(f, at, "norm", x);
    snprintf(in, sizeof in, "%snorm", at);
    product(f, at, "query", in, s->hidden, s->bias);
    product(f, at, "key", in, s->kv_heads * dim, s->bias);
    product(f, at, "value", in, s->kv_heads * dim, s->bias);
    for (int k = 0; k < 2; k++)
        fprintf(f, "[state %s%ss]\nshape = 1 x %d x %d x %d\nnext = %sattention:%d\n", at,
                k ? "value" : "key", s->kv_heads, ROOM, dim, at, 1 + k);
    fprintf(f,
            "[layer %sq]\ntype = RotaryEmbedding\ninputs = %squery, places\nheads = "
            "%d\n%s[layer %sk]\ntype = RotaryEmbedding\ninputs = %skey, places\n"
            "heads = %d\n%s",
            at, at, s->heads, turn, at, at, s->kv_heads, turn);
    fprintf(f,
            "[layer %sattention]\ntype = Attention\ninputs = %sq, %sk, %svalue, none, "
            "%skeys, %svalues, places\nheads = %d\nkv_heads = %d\ncausal = yes\n"
            "cache = yes\n",
            at, at, at, at, at, at, s->heads, s->kv_heads);
    if (s->window)
        fprintf(f, "window_left = %d\n", s->window);
    snprintf(in, sizeof in, "%sattention", at);
    product(f, at, "output", in, s->hidden, false);
    fprintf(f, "[layer %sa]\ntype = ElementWise\nop = sum\ninputs = %soutput, %s\n", at,
            at, x);
    snprintf(in, sizeof in, "%sa", at);
    norm(f, at, "norm2", in);
    snprintf(in, sizeof in, "%snorm2", at);
    product(f, at, "gate", in, s->ffn, false);
    fprintf(f, "[layer %ssilu]\ntype = Activation\nkind = silu\n", at);
    product(f, at, "up", in, s->ffn, false);
    fprintf(f,
            "[layer %sgated]\ntype = ElementWise\nop = product\ninputs = %ssilu, %sup\n",
            at, at, at);
    snprintf(in, sizeof in, "%sgated", at);
    product(f, at, "down", in, s->hidden, false);
    fprintf(f, "[layer %sout]\ntype = ElementWise\nop = sum\ninputs = %sdown, %sa\n", at,
            at, at);
}

static void write_decoder(const struct sizes *s)
{
    FILE *f = fopen(in_scratch("net.ini"), "w");
    char x[16] = "embedding";
    cr_assert_not_null(f);
    fprintf(f,
            "[network]\nformat = 1\noutputs = logits\n[input ids]\nshape = 1 x 1\n"
            "dtype = i32\n[weights w]\nrandom = 1\n[state places]\nshape = 1\n"
            "dtype = i32\nnext = next_places\nroom = %d\n[layer embedding]\n"
            "type = Embedding\ninputs = ids\ntable = w:table\nrows = %d\ncolumns = %d\n",
            ROOM, s->words, s->hidden);
    for (int i = 0; i < BLOCKS; i++) {
        block(f, s, i, x);
        snprintf(x, sizeof x, "b%d/out", i);
    }
    norm(f, "", "norm", x);
    product(f, "", "logits", "norm", s->words, false);
    fprintf(f, "[layer tokens]\ntype = Shape\ninputs = ids\naxes = 1\nto = i32\n"
               "[layer next_places]\ntype = ElementWise\nop = sum\n"
               "inputs = places, tokens\n");
    cr_assert_eq(fclose(f), 0);
}

/* Logits behind each of TOKENS tokens. */
static void run(const char *device, const char *precision, const struct sizes *s,
                float *logits)
{
    struct net n = {0};
    strata_error err;
    strata_context *c;
    char set_precision[64];
    const char *set[] = {set_precision, "build.costs=analytic"};
    const strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = 2};
    snprintf(set_precision, sizeof set_precision, "build.precision=%s", precision);
    OK(strata_create(&n.handle, device, &err));
    OK(strata_registry_create(&n.registry, NULL, &err));
    OK(strata_network_load(&n.network, in_scratch("net.ini"), n.registry, &options,
                           &err));
    OK(strata_engine_build(&n.engine, n.handle, n.network, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int i = 0; i < TOKENS; i++) {
        const int32_t id = i * 7 % s->words;
        OK(strata_copy_in(c, 0, &id, &err));
        OK(strata_context_run(c, &err));
        OK(strata_copy_out(c, 1, logits + i * s->words, &err));
    }
    strata_context_destroy(c);
    close_net(&n);
}

static double distance(const float *y, const float *right, size_t count)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        error += pow((double)y[i] - (double)right[i], 2);
        size += pow((double)right[i], 2);
    }
    return sqrt(error / size);
}

Test(cuda_decoder, tokens_follow_as_on_the_host)
{
    static float right[TOKENS * MOST_WORDS], y[TOKENS * MOST_WORDS];
    strata_destroy(need_cuda());
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct sizes *s = &all[i];
        write_decoder(s);
        run("host", "fp32", s, right);
        run("cuda:0", s->precision, s, y);
        const double far = distance(y, right, (size_t)(TOKENS * s->words));
        cr_expect(far < s->bound, "%s: %g, at most %g", s->name, far, s->bound);
    }
}
