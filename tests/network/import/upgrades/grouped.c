/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupQueryAttention of com.microsoft, held to its definition written out here; caches
 * that become states; and what of it is refused.
 */
#include <math.h>

#include "tests/network/import/imported.h"

TestSuite(import_grouped, .timeout = 600);

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, DIM = 4, MOST = 8, PLACES = 12, ROOM = 4096 };

struct grouped_case {
    const char *name;
    int length, past;   /* past 0: none is given */
    int total;          /* total_sequence_length */
    int lengths[BATCH]; /* keys of each row with the new ones */
    int window;         /* 0: none */
    int turned;         /* elements of a head that turn; 0: none */
    bool packed, interleaved;
    double softcap;
    int present; /* places of present keys */
};

static const struct grouped_case cases[] = {
    {"a first prompt", .length = 3, .total = 3, .lengths = {3, 3}, .present = 3},
    {"packed, turned", .length = 3, .total = 3, .lengths = {3, 3}, .turned = 4,
     .packed = true, .present = 3},
    {"a step behind a past that grows", .length = 1, .past = 4, .total = 5,
     .lengths = {5, 5}, .turned = 4, .packed = true, .present = 5},
    {"a step of rows of other lengths", .length = 1, .past = 4, .total = 5,
     .lengths = {5, 3}, .turned = 4, .present = 5},
    {"a step into a cache with room", .length = 1, .past = 8, .total = 5,
     .lengths = {5, 2}, .turned = 2, .packed = true, .interleaved = true, .present = 8},
    {"a prompt into a cache with room, padded", .length = 3, .past = 8, .total = 3,
     .lengths = {3, 2}, .turned = 4, .present = 8},
    {"some tokens behind others, a window", .length = 2, .past = 8, .total = 7,
     .lengths = {7, 7}, .window = 3, .turned = 4, .packed = true, .present = 8},
    {"a soft cap", .length = 2, .past = 3, .total = 5, .lengths = {5, 5}, .softcap = 0.5,
     .present = 5},
};

/* ---- the model -----------------------------------------------------------------------
 */

struct tensors {
    double q[BATCH * MOST * HEADS * DIM];
    double k[BATCH * MOST * KV_HEADS * DIM], v[BATCH * MOST * KV_HEADS * DIM];
    double past_k[BATCH * KV_HEADS * MOST * DIM], past_v[BATCH * KV_HEADS * MOST * DIM];
    double cos[PLACES * DIM / 2], sin[PLACES * DIM / 2];
};

static double next_number(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 20) / 2048.0 - 1;
}

static void fill(double *out, size_t n, unsigned *state)
{
    for (size_t i = 0; i < n; i++)
        out[i] = next_number(state);
}

static void fill_all(struct tensors *t, unsigned seed)
{
    fill(t->q, sizeof t->q / sizeof *t->q, &seed);
    fill(t->k, sizeof t->k / sizeof *t->k, &seed);
    fill(t->v, sizeof t->v / sizeof *t->v, &seed);
    fill(t->past_k, sizeof t->past_k / sizeof *t->past_k, &seed);
    fill(t->past_v, sizeof t->past_v / sizeof *t->past_v, &seed);
    fill(t->cos, sizeof t->cos / sizeof *t->cos, &seed);
    fill(t->sin, sizeof t->sin / sizeof *t->sin, &seed);
}

static void put_numbers(FILE *f, const double *v, int n)
{
    for (int i = 0; i < n; i++)
        fprintf(f, " %.9g", v[i]);
}

static void put_constant(FILE *f, const char *name, const char *dims, const double *v,
                         int n)
{
    fprintf(f, "init %s f %s", name, dims);
    put_numbers(f, v, n);
    fputc('\n', f);
}

static const char *dims_text(char out[64], int a, int b, int c, int d)
{
    if (d)
        snprintf(out, 64, "%dx%dx%dx%d", a, b, c, d);
    else
        snprintf(out, 64, "%dx%dx%d", a, b, c);
    return out;
}

static void put_query(FILE *f, const struct grouped_case *c, const struct tensors *t)
{
    const int q = HEADS * DIM, kv = KV_HEADS * DIM, rows = BATCH * c->length;
    char dims[64];
    if (!c->packed) {
        put_constant(f, "q", dims_text(dims, BATCH, c->length, q, 0), t->q, rows * q);
        put_constant(f, "k", dims_text(dims, BATCH, c->length, kv, 0), t->k, rows * kv);
        put_constant(f, "v", dims_text(dims, BATCH, c->length, kv, 0), t->v, rows * kv);
        return;
    }
    fprintf(f, "init q f %s", dims_text(dims, BATCH, c->length, q + 2 * kv, 0));
    for (int r = 0; r < rows; r++) {
        put_numbers(f, t->q + r * q, q);
        put_numbers(f, t->k + r * kv, kv);
        put_numbers(f, t->v + r * kv, kv);
    }
    fputc('\n', f);
}

static char *model_of(const struct grouped_case *c, const struct tensors *t)
{
    char *text, dims[64];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    const int past = BATCH * KV_HEADS * c->past * DIM, pairs = c->turned / 2;
    fputs("ir 8\nopset 21\nopset com.microsoft 1\n", f);
    put_query(f, c, t);
    if (c->past) {
        dims_text(dims, BATCH, KV_HEADS, c->past, DIM);
        put_constant(f, "a", dims, t->past_k, past);
        put_constant(f, "b", dims, t->past_v, past);
    }
    if (pairs) {
        snprintf(dims, sizeof dims, "%dx%d", PLACES, pairs);
        put_constant(f, "c", dims, t->cos, PLACES * pairs);
        put_constant(f, "s", dims, t->sin, PLACES * pairs);
    }
    fprintf(f, "init l i %d %d %d\ninit n i - %d\n", BATCH, c->lengths[0] - 1,
            c->lengths[1] - 1, c->total);
    fprintf(f, "node com.microsoft::GroupQueryAttention q,%s,%s,l,n%s -> y,pk,pv ",
            c->packed ? "_,_" : "k,v", c->past ? "a,b" : "_,_", pairs ? ",c,s" : "");
    fprintf(f, "num_heads=%d kv_num_heads=%d do_rotary=%d rotary_interleaved=%d ", HEADS,
            KV_HEADS, pairs > 0, c->interleaved);
    fprintf(f, "local_window_size=%d softcap=%gf\noutput y\noutput pk\noutput pv\n",
            c->window ? c->window : -1, c->softcap);
    fclose(f);
    return text;
}

/* ---- the definition ------------------------------------------------------------------
 */

static void turn(const struct grouped_case *c, const struct tensors *t, const double *x,
                 int place, double out[DIM])
{
    const int pairs = c->turned / 2;
    memcpy(out, x, DIM * sizeof *x);
    for (int i = 0; i < pairs; i++) {
        const int a = c->interleaved ? 2 * i : i, b = c->interleaved ? a + 1 : a + pairs;
        const double cosine = t->cos[place * pairs + i], sine = t->sin[place * pairs + i];
        out[a] = x[a] * cosine - x[b] * sine;
        out[b] = x[a] * sine + x[b] * cosine;
    }
}

static int taken(const struct grouped_case *c, int b)
{
    return c->past && c->lengths[b] > c->length ? c->lengths[b] - c->length : 0;
}

/* The key at a place, and its value. */
static void key_at(const struct grouped_case *c, const struct tensors *t, int b, int head,
                   int place, double key[DIM], double value[DIM])
{
    const int fresh = place - taken(c, b);
    if (fresh < 0) {
        const int at = ((b * KV_HEADS + head) * c->past + place) * DIM;
        memcpy(key, t->past_k + at, DIM * sizeof *key);
        memcpy(value, t->past_v + at, DIM * sizeof *value);
        return;
    }
    const int at = ((b * c->length + fresh) * KV_HEADS + head) * DIM;
    turn(c, t, t->k + at, place, key);
    memcpy(value, t->v + at, DIM * sizeof *value);
}

static void attend(const struct grouped_case *c, const struct tensors *t, int b, int i,
                   int head, double y[DIM])
{
    const int place = taken(c, b) + i;
    const int first = c->window && place >= c->window ? place - c->window + 1 : 0;
    double query[DIM], key[DIM], value[DIM], sum = 0;
    turn(c, t, t->q + ((b * c->length + i) * HEADS + head) * DIM, place, query);
    memset(y, 0, DIM * sizeof *y);
    for (int j = first; j <= place; j++) {
        double score = 0;
        key_at(c, t, b, head / (HEADS / KV_HEADS), j, key, value);
        for (int d = 0; d < DIM; d++)
            score += query[d] * key[d] / sqrt(DIM);
        score = exp(c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score);
        sum += score;
        for (int d = 0; d < DIM; d++)
            y[d] += score * value[d];
    }
    for (int d = 0; d < DIM; d++)
        y[d] /= sum;
}

/* ---- both ----------------------------------------------------------------------------
 */

static void expect_answers(const struct grouped_case *c, const struct tensors *t,
                           const struct value *y)
{
    double wanted[DIM];
    cr_assert_eq(value_count(y), BATCH * c->length * HEADS * DIM, "%s", c->name);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < c->length && taken(c, b) + i < c->lengths[b]; i++)
            for (int head = 0; head < HEADS; head++) {
                attend(c, t, b, i, head, wanted);
                for (int d = 0; d < DIM; d++) {
                    const double found =
                        value_real(y, ((b * c->length + i) * HEADS + head) * DIM + d);
                    cr_expect(fabs(found - wanted[d]) < 1e-5,
                              "%s: row %d, token %d, head %d: %g, should be %g", c->name,
                              b, i, head, found, wanted[d]);
                }
            }
}

static void expect_present(const struct grouped_case *c, const struct tensors *t,
                           const struct value *keys, const struct value *values)
{
    double key[DIM], value[DIM];
    cr_assert_eq(keys->dims[2], c->present, "%s: %lld places", c->name,
                 (long long)keys->dims[2]);
    for (int b = 0; b < BATCH; b++)
        for (int head = 0; head < KV_HEADS; head++)
            for (int j = 0; j < c->lengths[b]; j++) {
                const int at = ((b * KV_HEADS + head) * c->present + j) * DIM;
                key_at(c, t, b, head, j, key, value);
                for (int d = 0; d < DIM; d++)
                    cr_expect(fabs(value_real(keys, at + d) - key[d]) < 1e-5 &&
                                  fabs(value_real(values, at + d) - value[d]) < 1e-5,
                              "%s: row %d, head %d, place %d", c->name, b, head, j);
            }
}

Test(import_grouped, it_is_what_its_definition_says)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct tensors t;
        fill_all(&t, (unsigned)k + 1);
        char *text = model_of(&cases[k], &t);
        struct imported i = import_model_text(text);
        cr_assert_eq(i.status, STRATA_OK, "%s: %s", cases[k].name, i.err.message);
        const struct value *y = imported_constant(&i, 0);
        const struct value *keys = imported_constant(&i, 1);
        const struct value *values = imported_constant(&i, 2);
        cr_assert(y && keys && values, "%s: it is computed", cases[k].name);
        expect_answers(&cases[k], &t, y);
        expect_present(&cases[k], &t, keys, values);
        imported_close(&i);
        free(text);
    }
}

/* ---- decoders ------------------------------------------------------------------------
 */

/* One block, as the builder of models for ONNX Runtime writes it. */
static const char decoder[] =
    "ir 8\nopset 21\nopset com.microsoft 1\n"
    "input ids i batchxlength\ninput mask i batchxtotal\n"
    "input past.key f batchx1xpastx2\ninput past.value f batchx1xpastx2\n"
    "init table f 3x6 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\n"
    "init one i 1 1\ninit first i - 1\n"
    "node ReduceSum mask,one -> sum keepdims=0\nnode Sub sum,one -> less\n"
    "node Cast less -> seqlens to=6\nnode Shape mask -> dims\n"
    "node Gather dims,first -> wide\nnode Cast wide -> all to=6\n"
    "node Gather table,ids -> x\n"
    "node com.microsoft::GroupQueryAttention x,_,_,past.key,past.value,seqlens,all -> "
    "y,present.key,present.value num_heads=1 kv_num_heads=1\n"
    "output y\noutput present.key\noutput present.value\n";

/* The same, whose dims of heads have a name. */
#define ANGLES "1 2 3 4 5 6 7 8"
#define NAMED(query, inputs, more)                                                       \
    "ir 8\nopset 21\nopset com.microsoft 1\n"                                            \
    "input ids i batchxlength\ninput mask i batchxtotal\n"                               \
    "input past.key f batchx1xpastxdim\ninput past.value f batchx1xpastxdim\n"           \
    "init table f 3x6 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\n"                             \
    "init w f 6x6 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 "  \
    "8 9\ninit b f 6 1 2 3 4 5 6\ninit c f 8x1 " ANGLES "\n"                             \
    "init one i 1 1\ninit first i - 1\n"                                                 \
    "node ReduceSum mask,one -> sum keepdims=0\nnode Sub sum,one -> less\n"              \
    "node Cast less -> seqlens to=6\nnode Shape mask -> dims\n"                          \
    "node Gather dims,first -> wide\nnode Cast wide -> all to=6\n"                       \
    "node Gather table,ids -> x\n" query                                                 \
    "node com.microsoft::GroupQueryAttention q,_,_,past.key,past.value,seqlens,"         \
    "all" inputs " -> y,present.key,present.value num_heads=1 kv_num_heads=1" more "\n"  \
    "output y\noutput present.key\noutput present.value\n"

static char *text_of(const char *model, const struct import_options *options)
{
    char *text;
    size_t size;
    struct imported i = import_model_text(model);
    import_free(i.im);
    i.im = NULL;
    i.status = import_make(&i.im, i.model, i.registry, options, &i.err);
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    cr_assert_eq(import_text(i.im, "w.safetensors", &text, &size, &i.err), STRATA_OK);
    imported_close(&i);
    return text;
}

static char *decoder_text(const struct import_options *options)
{
    return text_of(decoder, options);
}

Test(import_grouped, dims_of_heads_follow_from_products)
{
    static const char *const models[] = {
        NAMED("node MatMul x,w -> q\n", "", ""),
        NAMED("node MatMul x,w -> p\nnode Add p,b -> q\n", "", ""),
        NAMED("node Relu x -> q\n", ",c,c", " do_rotary=1"),
    };
    static const struct import_options options = {0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char *text = text_of(models[i], &options);
        cr_expect(strstr(text, "[input past.key]\nshape = batch x 1 x past x 2\n") &&
                      strstr(text, "[input past.value]\nshape = batch x 1 x past x 2\n"),
                  "%zu: %s", i, text);
        cr_expect_null(strstr(text, "dim = "), "%zu: %s", i, text);
        free(text);
    }
}

/* Its window is that of the mask; keys outside of it stay in the state, unseen. */
Test(import_grouped, a_windowed_cache_is_a_state_of_all_keys)
{
    static const char model[] = NAMED("node MatMul x,w -> q\n", "",
                                      " local_window_size=3 sliding_window_cache=1");
    const struct import_options options = {.cache = 16};
    char *text = text_of(model, &options);
    cr_expect(strstr(text, "[state past.key]\nshape = batch x 1 x 16 x 2\n"), "%s", text);
    cr_expect(strstr(text, "window_left = 2\n"), "%s", text);
    free(text);
    expect_import_refused("without states", model, "or any with --cache, whose states");
}

Test(import_grouped, all_sizes_stay_free)
{
    const struct import_options none = {0};
    char *text = decoder_text(&none);
    cr_expect(strstr(text, "[input past.key]\nshape = batch x 1 x past x 2\n"), "%s",
              text);
    cr_expect(strstr(text, "length = 1..512: 512\ntotal = 1..512: 512\n"), "%s", text);
    cr_expect(strstr(text, "end = 0, 0, length, 0\n"), "%s", text);
    free(text);
}

Test(import_grouped, caches_are_states_and_tokens_the_only_input)
{
    const struct import_options options = {.cache = ROOM};
    char *text = decoder_text(&options);
    const char *outputs = strstr(text, "outputs = ");
    cr_expect(outputs && !memchr(outputs, ',', strcspn(outputs, "\n")), "%s", text);
    cr_expect(!strstr(text, "[input mask]") && !strstr(text, "total"), "%s", text);
    cr_expect(strstr(text, "\n[state past.key]\nshape = batch x 1 x 4096 x 2\n"), "%s",
              text);
    cr_expect(strstr(text, "\n[state places]\nshape = batch\ndtype = i32\n"
                           "next = next_places\nroom = 4096\n"),
              "%s", text);
    free(text);
}

Test(import_grouped, without_caches_none_are_states)
{
    struct imported i = import_model_text("ir 8\nopset 21\ninput x f 1x2\n"
                                          "node Relu x -> y\noutput y\n");
    const struct import_options options = {.cache = ROOM};
    import_free(i.im);
    i.im = NULL;
    i.status = import_make(&i.im, i.model, i.registry, &options, &i.err);
    cr_expect_eq(i.status, STRATA_EINVAL);
    cr_expect(strstr(i.err.message, "no GroupQueryAttention of the model"), "%s",
              i.err.message);
    imported_close(&i);
}

/* ---- what is refused -----------------------------------------------------------------
 */

#define NODE(inputs, attributes)                                                         \
    "ir 8\nopset 21\nopset com.microsoft 1\ninput q f 1x2x6\ninit l i 1 1\n"             \
    "init n i - 2\ninit h f 1 0\n"                                                       \
    "node com.microsoft::GroupQueryAttention " inputs " -> y num_heads=1 "               \
    "kv_num_heads=1 " attributes "\noutput y\n"

Test(import_grouped, what_attention_has_not_is_refused_by_name)
{
    static const struct {
        const char *text, *what;
    } refused[] = {
        {NODE("q,_,_,_,_,l,n,_,_,_,_,h", ""), "input 'head_sink' is given"},
        {NODE("q,_,_,_,_,l,n,_,_,_,_,_,h", ""), "input 'k_scale' is given"},
        {NODE("q,_,_,_,_,l,n", "smooth_softmax=1"), "'smooth_softmax' is 1"},
        {NODE("q,_,_,_,_,l,n", "sliding_window_cache=1"), "'sliding_window_cache' is 1"},
        {NODE("q,_,_,_,_,l,n", "causal=0"), "'causal' is 0; 1 is taken"},
        {NODE("q,_,_,_,_,l,n", "do_rotary=1"), "'do_rotary' needs cos_cache"},
        {NODE("q,q,_,_,_,l,n", ""), "key and value be both there"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_import_refused(refused[i].what, refused[i].text, refused[i].what);
}
