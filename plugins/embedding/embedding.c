/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding: rows of a table, a weight, that indices choose. The table is read as it is
 * stored, FP32, FP16 or BF16; an index outside of it gives zeros. `places` are added to
 * the rows, one for each place of the indices' last dim.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/index.h"
#include "plugins/common/walk.h"

/* Elements converted at once. */
#define CHUNK 512

static int embedding_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_embedding *p = n->params;
    const strata_tensor *table = &n->weight[0];
    if (table->rank == 0 && (p->rows == 0 || p->columns == 0))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "rows is %lld and columns %lld; a table that is made up needs "
                           "both",
                           (long long)p->rows, (long long)p->columns);
    if (table->rank != 0 && table->rank != 2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "table has rank %d; needed are 2: rows and "
                           "columns",
                           (int)table->rank);
    expected[0].rank = 2;
    expected[0].dims[0] = p->rows ? p->rows : table->dims[0];
    expected[0].dims[1] = p->columns ? p->columns : table->dims[1];
    if (n->in[0].rank == 0)
        return n->weight[1].rank == 0
                   ? STRATA_OK
                   : STRATA_FAIL(n, STRATA_EINVAL, "one index has no places to add to");
    expected[1].rank = 2;
    expected[1].dims[0] = n->in[0].dims[n->in[0].rank - 1];
    expected[1].dims[1] = expected[0].dims[1];
    return STRATA_OK;
}

static int embedding_shape(const strata_node *n)
{
    const strata_tensor *index = &n->in[0], *table = &n->weight[0];
    strata_tensor *y = &n->out[0];
    if (!index_is_integer(index->dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "indices are of no integer type; i32 or i64 is needed: a Cast "
                           "gives one");
    if (index->rank == STRATA_MAX_RANK)
        return STRATA_FAIL(n, STRATA_EINVAL, "indices have rank %d; at most %d",
                           (int)index->rank, STRATA_MAX_RANK - 1);
    if (table->dims[0] == 0 && dense_count(index) > 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "the table has no rows");
    y->rank = index->rank + 1;
    memcpy(y->dims, index->dims, sizeof index->dims);
    y->dims[index->rank] = table->dims[1];
    y->dtype = STRATA_FP32; /* stands for every float */
    return STRATA_OK;
}

/* A row of n elements to y's element `to`, by way of FP32. from: of the table, below 0
 * zeros; place: what is added, or NULL. */
static void convert_row(const strata_tensor *y, int64_t to, const strata_tensor *table,
                        int64_t from, const float *place, int64_t n)
{
    float buffer[CHUNK];
    for (int64_t j = 0; j < n; j += CHUNK) {
        const int64_t part = n - j < CHUNK ? n - j : CHUNK;
        if (from < 0)
            memset(buffer, 0, (size_t)part * sizeof *buffer);
        else
            element_load_row(buffer, table->data, table->dtype, from + j, 1, part);
        for (int64_t i = 0; place && i < part; i++)
            buffer[i] += place[j + i];
        element_store_row(y->data, y->dtype, to + j, 1, buffer, part);
    }
}

static int embedding_run(const strata_run *r)
{
    const strata_tensor *index = &r->in[0], *table = &r->weight[0], *y = &r->out[0];
    const int64_t row = table->dims[1], size = index_size(y->dtype);
    const float *places =
        r->n_weights > 1 && r->weight[1].rank > 0 ? r->weight[1].data : NULL;
    const int64_t n_places = places ? r->weight[1].dims[0] : 1;
    const int same = y->dtype == table->dtype;
#pragma omp parallel for schedule(static) if (y->count * size >= INDEX_PARALLEL)
    for (int64_t i = 0; i < index->count; i++) {
        const int64_t at = index_at(index->data, index->dtype, i, table->dims[0]);
        if (places)
            convert_row(y, i * row, table, at * row, places + i % n_places * row, row);
        else if (same || at < 0)
            index_copy_row((char *)y->data + i * row * size,
                           at < 0 ? NULL : (const char *)table->data + at * row * size,
                           row * size);
        else
            convert_row(y, i * row, table, at * row, NULL, row);
    }
    return STRATA_OK;
}

static int embedding_reference(const strata_node *n, const void *const *in,
                               const void *const *weight, void *const *out)
{
    const int64_t *index = in[0], count = dense_count(&n->in[0]);
    const int64_t row = n->weight[0].dims[1];
    const double *table = weight[0];
    const double *places = n->weight[1].rank > 0 ? weight[1] : NULL;
    const int64_t n_places = places ? n->weight[1].dims[0] : 1;
    double *y = out[0];
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = index_wrapped(index[i], n->weight[0].dims[0]);
        for (int64_t j = 0; j < row; j++)
            y[i * row + j] = (at < 0 ? 0 : table[at * row + j]) +
                             (places ? places[i % n_places * row + j] : 0);
    }
    return STRATA_OK;
}

static const void *embedding_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     embedding_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

static const strata_attr attrs[] = {
    {.name = "rows",
     .type = STRATA_I64,
     .offset = offsetof(strata_embedding, rows),
     .min = 0,
     .max = 0x1p40,
     .doc = "rows of the table; 0: from the weight"},
    {.name = "columns",
     .type = STRATA_I64,
     .offset = offsetof(strata_embedding, columns),
     .min = 0,
     .max = 0x1p31,
     .doc = "elements of a row; 0: from the weight"},
};

static const strata_weight weights[] = {
    {.name = "table",
     .flags = STRATA_REQUIRED,
     .rank = 2,
     .dtypes = 1u << STRATA_FP32 | 1u << STRATA_FP16 | 1u << STRATA_BF16,
     .doc = "rows to choose from"},
    {.name = "places",
     .rank = 2,
     .doc = "rows to add, one for each place of the indices' last dim"},
};

static const strata_row rows[] = {
    {{INDEX_FORMATS}, {STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.6,
     .run = embedding_run},
};

static const strata_layer embedding = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Embedding",
    .doc = "Rows of a table that indices choose",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_embedding),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = embedding_shape,
    .weight_shape = embedding_weight_shape,
    .flops = walk_no_flops,
    .extension = embedding_extension,
};

static const strata_layer *const layers[] = {&embedding};
STRATA_MODULE("core", "1.0.0", "Embedding", layers)
