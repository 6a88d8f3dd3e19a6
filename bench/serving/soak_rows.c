/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of bench/serving/soak, and what each must become in each place of each batch.
 */
#include "bench/serving/soak.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void soak_tell(struct soak *s, const char *format, ...)
{
    char text[sizeof s->first];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!atomic_exchange(&s->told, 1))
        memcpy(s->first, text, sizeof text);
    fprintf(stderr, "process %d: %s\n", (int)getpid(), text);
}

char *soak_input(struct soak *s, int row)
{
    return s->data + (size_t)row * s->row_in;
}

static int64_t places_before(const struct soak *s, int batch)
{
    int64_t places = 0;
    for (int b = 0; b < batch; b++)
        places += s->batches[b];
    return places;
}

char *soak_output(struct soak *s, int batch, int64_t place, int row)
{
    const size_t at = (size_t)(places_before(s, batch) + place) * SOAK_ROWS + (size_t)row;
    return s->data + SOAK_ROWS * s->row_in + at * s->row_out;
}

int64_t soak_largest(const struct soak *s)
{
    return s->batches[s->n_batches - 1];
}

static int open_site(const struct soak *s, struct soak_sites *sites, int device,
                     strata_error *err)
{
    const int status = strata_create(&sites->handle[device], s->devices[device], err);
    return status != STRATA_OK
               ? status
               : strata_engine_load(&sites->engine[device], sites->handle[device],
                                    sites->registry, s->path, err);
}

int soak_open(const struct soak *s, struct soak_sites *sites, strata_error *err)
{
    int status = strata_registry_create(&sites->registry, NULL, err);
    for (int i = 0; i < s->n_devices && status == STRATA_OK; i++)
        status = open_site(s, sites, i, err);
    return status;
}

void soak_close(struct soak_sites *sites)
{
    for (int i = 0; i < SOAK_DEVICES; i++) {
        strata_engine_destroy(sites->engine[i]);
        strata_destroy(sites->handle[i]);
    }
    strata_registry_destroy(sites->registry);
}

/* Normal enough that no two rows are alike. */
static void fill_inputs(struct soak *s)
{
    unsigned seed = 19;
    for (size_t i = 0; i < SOAK_ROWS * s->row_in / sizeof(float); i++) {
        const float value = (float)rand_r(&seed) / (float)RAND_MAX * 4 - 2;
        memcpy(s->data + i * sizeof value, &value, sizeof value);
    }
}

static int measure_rows(struct soak *s, const strata_engine *e, strata_error *err)
{
    strata_binding in = {.struct_size = sizeof in}, out = {.struct_size = sizeof out};
    int status = strata_engine_binding(e, 0, &in, err);
    if (status == STRATA_OK)
        status = strata_engine_binding(e, 1, &out, err);
    if (status != STRATA_OK)
        return status;
    s->n_batches = strata_engine_batches(e, s->batches, SOAK_BATCHES);
    if (s->n_batches > SOAK_BATCHES || soak_largest(s) > SOAK_ROWS || !in.is_input ||
        out.is_input || strata_engine_bindings(e) != 2 || in.desc.dtype != STRATA_FP32) {
        soak_tell(s,
                  "the engine must have one FP32 input and one output, at most %d "
                  "batches of at most %d rows",
                  SOAK_BATCHES, SOAK_ROWS);
        return STRATA_EUNSUPPORTED;
    }
    s->row_in = (size_t)(in.bytes / soak_largest(s));
    s->row_out = (size_t)(out.bytes / soak_largest(s));
    const size_t places = (size_t)places_before(s, s->n_batches);
    const size_t needed = SOAK_ROWS * (s->row_in + places * s->row_out);
    if (needed <= s->room)
        return STRATA_OK;
    soak_tell(s, "rows of %zu bytes in and %zu out, at %zu places, need %zu MiB of %zu",
              s->row_in, s->row_out, places, needed >> 20, s->room >> 20);
    return STRATA_ENOMEM;
}

/* A batch of rows, the first one `from`, and round again; what comes out is kept, or
 * compared where it is there. */
static int run_reference(struct soak *s, strata_context *c, int batch, int from,
                         bool keep, strata_error *err)
{
    const int n = (int)s->batches[batch];
    char *in = malloc((size_t)n * s->row_in), *out = malloc((size_t)n * s->row_out);
    int status = in && out ? strata_context_set_batch(c, n, err) : STRATA_ENOMEM;
    for (int i = 0; i < n && status == STRATA_OK; i++)
        memcpy(in + (size_t)i * s->row_in, soak_input(s, (from + i) % SOAK_ROWS),
               s->row_in);
    if (status == STRATA_OK && (status = strata_copy_in(c, 0, in, err)) == STRATA_OK &&
        (status = strata_context_run(c, err)) == STRATA_OK)
        status = strata_copy_out(c, 1, out, err);
    for (int i = 0; i < n && status == STRATA_OK; i++) {
        char *kept = soak_output(s, batch, i, (from + i) % SOAK_ROWS);
        if (keep)
            memcpy(kept, out + (size_t)i * s->row_out, s->row_out);
        else if (memcmp(kept, out + (size_t)i * s->row_out, s->row_out) != 0)
            status = STRATA_EINTERNAL;
    }
    free(in);
    free(out);
    return status;
}

/* Each row in each place of each batch. */
static int run_references(struct soak *s, const struct soak_sites *sites, int device,
                          bool keep, strata_error *err)
{
    strata_context *c = NULL;
    int status =
        strata_context_create(&c, sites->engine[device], sites->handle[device], err);
    for (int b = 0; b < s->n_batches && status == STRATA_OK; b++)
        for (int from = 0; from < SOAK_ROWS && status == STRATA_OK; from++)
            status = run_reference(s, c, b, from, keep, err);
    if (status == STRATA_EINTERNAL)
        soak_tell(s, "%s has other bits than %s", s->devices[device], s->devices[0]);
    strata_context_destroy(c);
    return status;
}

static void describe_outputs(struct soak *s)
{
    const int last = s->n_batches - 1;
    for (int i = 0; i < SOAK_ROWS; i++) {
        const char *first = soak_output(s, last, 0, i);
        int j = 0;
        while (j < i && memcmp(first, soak_output(s, last, 0, j), s->row_out) != 0)
            j++;
        s->distinct += j == i;
        for (int64_t k = 1; k < s->batches[last]; k++)
            s->by_place |= memcmp(first, soak_output(s, last, k, i), s->row_out) != 0;
    }
}

int soak_reference(struct soak *s)
{
    struct soak_sites sites = {0};
    strata_error err = {0};
    int status = soak_open(s, &sites, &err);
    if (status == STRATA_OK)
        status = measure_rows(s, sites.engine[0], &err);
    if (status == STRATA_OK)
        fill_inputs(s);
    for (int i = 0; i < s->n_devices && status == STRATA_OK; i++)
        status = run_references(s, &sites, i, i == 0, &err);
    if (status == STRATA_OK)
        describe_outputs(s);
    else if (err.message[0])
        soak_tell(s, "the reference: %s", err.message);
    if (status == STRATA_OK && s->distinct < SOAK_ROWS) {
        soak_tell(s,
                  "rows have the same outputs, %d of %d differ: build the network with "
                  "an output ahead of its Softmax",
                  s->distinct, SOAK_ROWS);
        status = STRATA_EINVAL;
    }
    soak_close(&sites);
    return status != STRATA_OK;
}
