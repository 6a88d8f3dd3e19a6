/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/cuda/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/harness/trial.h"

#define MOST_KINDS 16384
#define MOST_RUNS 65536

struct sample {
    uint64_t one_in, state, *only; /* only: IDs, ascending; NULL: all */
    size_t n_only, cases, shard, shards;
    FILE *runs; /* or NULL */
    struct kind {
        const struct registry_impl *impl;
        int row;
        uint64_t format;
        int64_t vector; /* power of 2, up to 16, that the channels are a multiple of */
    } seen[MOST_KINDS];
    size_t n;
};

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

bool sample_is_asked_for(void)
{
    return setting("STRATA_TEST_SAMPLE") || setting("STRATA_TEST_RUNS_FROM");
}

/* ---- settings -------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool read_ids(struct sample *s, const char *path)
{
    FILE *file = fopen(path, "r");
    s->only = calloc(MOST_RUNS, sizeof *s->only);
    while (file && s->only && s->n_only < MOST_RUNS &&
           fscanf(file, "%" SCNx64, &s->only[s->n_only]) == 1)
        s->n_only++;
    const bool whole = file && s->only && feof(file);
    if (file)
        fclose(file);
    if (whole)
        qsort(s->only, s->n_only, sizeof *s->only, compare_ids);
    return whole;
}

static bool read_settings(struct sample *s)
{
    const char *one_in = setting("STRATA_TEST_SAMPLE");
    const char *shard = setting("STRATA_TEST_SHARD");
    const char *to = setting("STRATA_TEST_RUNS_TO");
    const char *from = setting("STRATA_TEST_RUNS_FROM");
    s->one_in = one_in ? strtoull(one_in, NULL, 10) : 1;
    s->shards = 1;
    if (shard && sscanf(shard, "%zu/%zu", &s->shard, &s->shards) != 2)
        return false;
    if (to && !(s->runs = fopen(to, "a")))
        return false;
    return s->one_in > 0 && s->shard < s->shards && (!from || read_ids(s, from));
}

struct sample *sample_open(uint64_t seed)
{
    struct sample *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->state = seed;
    if (read_settings(s))
        return s;
    sample_close(s);
    return NULL;
}

void sample_close(struct sample *s)
{
    if (!s)
        return;
    if (s->runs)
        fclose(s->runs);
    free(s->only);
    free(s);
}

/* ---- what is taken ----------------------------------------------------------------- */

bool sample_has_case(struct sample *s)
{
    return s->cases++ % s->shards == s->shard;
}

static bool left_out(const char *impl)
{
    for (const char *p = setting("STRATA_TEST_WITHOUT"); p && *p;) {
        const size_t n = strcspn(p, ",");
        if (n > 0 && strncmp(impl, p, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

static bool is_chosen(struct sample *s, const struct trial *t, int row)
{
    const bool source = t->node.node.n_in == 0;
    const strata_tensor *x = source ? &t->node.out[0] : &t->node.in[0];
    const int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    const struct kind k = {.impl = t->impl,
                           .row = row,
                           .format = source ? t->formats.out[0] : t->formats.in[0],
                           .vector = (channels | 16) & -(channels | 16)};
    for (size_t i = 0; i < s->n; i++)
        if (s->seen[i].impl == k.impl && s->seen[i].row == k.row &&
            s->seen[i].format == k.format && s->seen[i].vector == k.vector) {
            s->state = s->state * UINT64_C(6364136223846793005) + 1;
            return (s->state >> 33) % s->one_in == 0;
        }
    if (s->n < MOST_KINDS)
        s->seen[s->n++] = k;
    return true;
}

/* FNV-1a. */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (h ^ '\n') * UINT64_C(1099511628211);
}

static uint64_t id_of(const struct sample *s, const struct trial *t, int row)
{
    char text[256], number[64];
    uint64_t h = hash(UINT64_C(14695981039346656037), t->impl->impl.name);
    snprintf(number, sizeof number, "%d %d %zu", row, (int)t->as, s->cases);
    h = hash(hash(h, number), t->attrs);
    trial_shapes(t, text, sizeof text);
    h = hash(h, text);
    trial_formats(t, text, sizeof text);
    return hash(h, text);
}

bool sample_takes(const struct trial *t, int row, void *user)
{
    struct sample *s = user;
    if (left_out(t->impl->impl.name))
        return false;
    const uint64_t id = id_of(s, t, row);
    const bool chosen =
        s->only ? bsearch(&id, s->only, s->n_only, sizeof id, compare_ids) != NULL
                : is_chosen(s, t, row);
    if (chosen && s->runs) {
        fprintf(s->runs, "run %016" PRIx64 " %s\n", id, t->impl->impl.name);
        fflush(s->runs);
    }
    return chosen;
}
