/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that share a weight, which exporters write as copies: under another name by an
 * Identity, or as a constant of its own. The network's file has it once, and so does the
 * engine, dense and packed.
 */
#include "engine/engine.h"
#include "tests/network/import/any_size/any_size.h"

enum { SIDE = 256, MATRIX_BYTES = SIDE * SIDE * 4 };

/* w, and v and u, which are the same; n, which is not. */
#define MATRICES                                                                         \
    "init a f - 0\ninit b f - 65536\ninit d f - 1\nnode Range a,b,d -> r\n"              \
    "init s i 2 256 256\nnode Reshape r,s -> q\nnode Sin q -> z\n"                       \
    "init h f - 0.01\nnode Mul z,h -> w\nnode Identity w -> v\nnode Mul z,h -> u\n"      \
    "node Cos q -> k\nnode Mul k,h -> n\n"

static const struct {
    const char *name, *text;
    int matrices; /* that are not the same */
} shared[] = {
    {"products",
     "input x f @x256\n" MATRICES "node MatMul x,w -> e\nnode Tanh e -> f\n"
     "node MatMul f,v -> g\nnode Sin g -> i\nnode MatMul i,u -> y\noutput y\n",
     1},
    {"products of other weights, too",
     "input x f @x256\n" MATRICES "node MatMul x,w -> e\nnode Tanh e -> f\n"
     "node MatMul f,n -> g\nnode Sin g -> i\nnode MatMul i,u -> y\noutput y\n",
     2},
    {"convolutions",
     "input x f @x256x4x4\n" MATRICES "init t i 4 256 256 1 1\nnode Reshape w,t -> w4\n"
     "node Reshape v,t -> v4\nnode Reshape u,t -> u4\nnode Conv x,w4 -> e\n"
     "node Sin e -> f\nnode Conv f,v4 -> g\nnode Cos g -> i\nnode Conv i,u4 -> y\n"
     "output y\n",
     1},
};

/* Of an engine's parts alone, not what they have of others. */
static uint64_t packed_bytes(const strata_engine *e)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < e->execution->n_nodes; i++)
        bytes += e->parts[i]->packs.bytes;
    return bytes;
}

Test(shared, a_weight_is_there_once, .timeout = 600)
{
    static const struct import_symbol batch = {.name = "N", .n = 1, .values = {3}};
    static const struct import_options o = {.symbols = &batch, .n_symbols = 1};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        struct free_model m = free_model_open(shared[i].text, "N", "", "");
        struct imported x;
        open_import(&x, &m, &o, shared[i].name);
        const uint64_t most = (uint64_t)shared[i].matrices * MATRIX_BYTES * 5 / 4;
        const uint64_t packed = packed_bytes(x.engine);
        const uint64_t found = strata_engine_weight_bytes(x.engine) - packed;
        cr_expect_lt(x.weights_size, most, "%s: %zu bytes\n%s", shared[i].name,
                     x.weights_size, x.text);
        cr_expect(found < most && packed < most,
                  "%s: %llu bytes dense, %llu bytes packed", shared[i].name,
                  (unsigned long long)found, (unsigned long long)packed);
        imported_free(&x);
        free_model_close(&m);
    }
}

static uint64_t bytes_now(const strata_handle *handle)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    cr_assert_eq(strata_get_memory_stats(handle, &stats, NULL), STRATA_OK);
    return stats.current_bytes;
}

/* Of an engine that is no more: whole, without room for its packs, and without room for
 * anything. */
Test(shared, a_pool_has_no_more_than_it_counts, .timeout = 600)
{
    static const uint64_t rooms[] = {UINT64_MAX, MATRIX_BYTES / 2, 0};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        for (int k = 0; k < 3; k++) {
            struct free_model m = free_model_open(shared[i].text, "1", "", "");
            struct imported x;
            open_import(&x, &m, NULL, shared[i].name);
            struct engine_pool pool = {.handle = x.handle, .most = rooms[k]};
            const uint64_t whole = strata_engine_weight_bytes(x.engine);
            engine_pool_keep(&pool, x.engine);
            cr_expect(k > 0 || pool.bytes == whole, "%s: %llu of %llu bytes are kept",
                      shared[i].name, (unsigned long long)pool.bytes,
                      (unsigned long long)whole);
            strata_context_destroy(x.context);
            strata_engine_destroy(x.engine);
            x.context = NULL;
            x.engine = NULL;
            const uint64_t found = bytes_now(x.handle);
            cr_expect(found <= pool.bytes && pool.bytes <= rooms[k],
                      "%s: %llu bytes, counted as %llu", shared[i].name,
                      (unsigned long long)found, (unsigned long long)pool.bytes);
            engine_pool_free(&pool);
            cr_expect_eq(bytes_now(x.handle), 0);
            imported_free(&x);
            free_model_close(&m);
        }
}

/* y = x*m, of rows of SIDE numbers. */
static void multiply(double *y, const double *x, double (*of)(double))
{
    for (int k = 0; k < SIDE; k++) {
        y[k] = 0;
        for (int i = 0; i < SIDE; i++)
            y[k] += x[i] * 0.01 * of(i * SIDE + k);
    }
}

Test(shared, answers_are_those_of_the_weights, .timeout = 600)
{
    for (int other = 0; other < 2; other++) {
        struct free_model m = free_model_open(shared[other].text, "1", "", "");
        struct imported x;
        double a[SIDE], b[SIDE];
        float in[SIDE], out[SIDE];
        strata_error err = {0};
        open_import(&x, &m, NULL, shared[other].name);
        fill(in, SIDE, 5);
        for (int i = 0; i < SIDE; i++)
            a[i] = (double)in[i];
        multiply(b, a, sin);
        for (int i = 0; i < SIDE; i++)
            b[i] = tanh(b[i]);
        multiply(a, b, other ? cos : sin);
        for (int i = 0; i < SIDE; i++)
            a[i] = sin(a[i]);
        multiply(b, a, sin);
        cr_assert_eq(strata_copy_in(x.context, 0, in, &err), STRATA_OK);
        cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s", err.message);
        cr_assert_eq(strata_copy_out(x.context, 1, out, &err), STRATA_OK);
        for (int i = 0; i < SIDE; i++)
            cr_expect(fabs((double)out[i] - b[i]) < 1e-5, "%s: %d is %g, should be %g",
                      shared[other].name, i, (double)out[i], b[i]);
        imported_free(&x);
        free_model_close(&m);
    }
}
