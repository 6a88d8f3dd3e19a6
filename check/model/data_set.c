/* SPDX-License-Identifier: Apache-2.0
 *
 * Import, build, run, compare; inputs that have to be constants become some, and the
 * import begins again.
 */
#include "check/model/data_set.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sizes.h>

#include "check/harness/number.h"
#include "core/alloc.h"
#include "core/text.h"
#include "network/network.h"

struct run {
    const struct data_set_options *o;
    struct data_set_result *result;
    const struct onnx_model *model;
    const struct onnx_model **inputs;  /* files of the graph's inputs; NULL: absent */
    struct import_constant *constants; /* those of the options, then baked ones */
    size_t n_constants;
    struct import *im;
    void *weights;
    char *text;
    strata_network *network;
    strata_handle *handle;
    strata_engine *engine;
    strata_context *context;
    strata_error *err;
};

/* ---- files ---------------------------------------------------------------------------
 */

/* A tensor of the data set; *out is NULL where there is no such file. */
static int open_tensor(const struct onnx_model **out, const char *folder,
                       const char *kind, size_t i, strata_error *err)
{
    char *path = text_print("%s/%s_%zu.pb", folder, kind, i);
    *out = NULL;
    if (!path)
        return error_no_memory(err, 0, "a path");
    const bool none = access(path, F_OK) != 0 && errno == ENOENT;
    int status = none ? STRATA_OK : onnx_open_tensor(out, path, NULL, err);
    free(path);
    return status;
}

static const struct onnx_tensor *tensor_of(const struct onnx_model *file)
{
    return &file->graph.initializers[0];
}

/* The graph's inputs beside its initializers, in order: input_K.pb is the K-th. */
static int open_inputs(struct run *r)
{
    const struct onnx_graph *g = &r->model->graph;
    int status = STRATA_OK;
    r->inputs = zalloc(g->n_inputs + 1, sizeof *r->inputs, "inputs", r->err);
    for (size_t i = 0; r->inputs && status == STRATA_OK && i < g->n_inputs; i++)
        status = open_tensor(&r->inputs[i], r->o->folder, "input", i, r->err);
    return r->inputs ? status : STRATA_ENOMEM;
}

/* ---- import --------------------------------------------------------------------------
 */

/* Whether a further input was baked that the import asks for. */
static bool bake(struct run *r)
{
    const struct onnx_graph *g = &r->model->graph;
    size_t n;
    const char *const *wanted = import_wanted(r->im, &n);
    const size_t before = r->n_constants;
    for (size_t i = 0; r->o->bake && i < n; i++)
        for (size_t k = 0; k < g->n_inputs; k++)
            if (r->inputs[k] && strcmp(g->inputs[k].name, wanted[i]) == 0)
                r->constants[r->n_constants++] =
                    (struct import_constant){g->inputs[k].name, tensor_of(r->inputs[k])};
    return r->n_constants > before;
}

/* Import until nothing more has to be a constant. */
static int import_model(struct run *r, strata_registry *registry)
{
    struct import_options options =
        r->o->import ? *r->o->import : (struct import_options){0};
    int status = STRATA_EUNSUPPORTED;
    r->constants = zalloc(options.n_constants + r->model->graph.n_inputs + 1,
                          sizeof *r->constants, "constants", r->err);
    if (!r->constants)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < options.n_constants; i++)
        r->constants[r->n_constants++] = options.constants[i];
    options.constants = r->constants;
    do {
        import_free(r->im);
        error_clear(r->err);
        options.n_constants = r->n_constants;
        status = import_make(&r->im, r->model, registry, &options, r->err);
    } while (status == STRATA_EUNSUPPORTED && bake(r));
    return status;
}

static int load(struct run *r, strata_registry *registry)
{
    struct network_memory memory = {0};
    void *weights;
    size_t text_size, weights_size;
    int status = import_text(r->im, NETWORK_MEMORY_WEIGHTS, &r->text, &text_size, r->err);
    if (status == STRATA_OK)
        status = import_weights(r->im, &weights, &weights_size, r->err);
    if (status != STRATA_OK)
        return status;
    r->weights = weights;
    memory = (struct network_memory){.text = r->text,
                                     .text_size = text_size,
                                     .weights = weights,
                                     .weights_size = weights_size};
    return network_parse(&r->network, &memory, r->o->model, registry, r->err);
}

/* ---- run -----------------------------------------------------------------------------
 */

/* The dtype of a file's tensor where a binding's is `wanted`. Files made with NumPy have
 * BF16 as the UINT16 of the same bits. */
static int dtype_of(const struct onnx_tensor *t, int wanted)
{
    return t->type == ONNX_UINT16 && wanted == STRATA_BF16 ? wanted
                                                           : onnx_type_carrier(t->type);
}

/* A file's elements as those of a dtype that dtype_of gave. *memory is to be freed. */
static const void *elements_of(const struct onnx_tensor *t, int dtype, void **memory,
                               strata_error *err)
{
    *memory = NULL;
    if (onnx_type_core(t->type) == dtype || dtype == STRATA_BF16)
        return t->data;
    if ((*memory = zalloc((size_t)t->count + 1, sizeof(int64_t), "elements", err)))
        onnx_widen(*memory, t);
    return *memory;
}

/* Where sizes vary, those of the files; before any input is given, as a name's size holds
 * for all of them. */
static int set_shapes(struct run *r)
{
    const struct onnx_graph *g = &r->model->graph;
    int status = STRATA_OK;
    for (size_t i = 0; i < g->n_inputs && status == STRATA_OK; i++) {
        const struct onnx_tensor *t = r->inputs[i] ? tensor_of(r->inputs[i]) : NULL;
        const int index = import_find_input(r->im, g->inputs[i].name);
        if (t && t->rank > 0 && index >= 0 && import_reads_input(r->im, index))
            status =
                strata_context_set_shape(r->context, index, t->rank, t->dims, r->err);
        if (status != STRATA_OK)
            error_prefix(r->err, "input_%zu.pb", i);
    }
    return status;
}

static int feed_input(struct run *r, size_t i, int index)
{
    strata_binding b = {.struct_size = sizeof b};
    if (!r->inputs[i])
        return error_set(r->err, STRATA_ENOTFOUND, "%s: input_%zu.pb is absent",
                         r->o->folder, i);
    const struct onnx_tensor *t = tensor_of(r->inputs[i]);
    int status = strata_context_binding(r->context, index, &b, r->err);
    if (status != STRATA_OK)
        return status;
    if (t->count != strata_desc_count(&b.desc) ||
        dtype_of(t, b.desc.dtype) != b.desc.dtype)
        return error_set(r->err, STRATA_EINVAL,
                         "input_%zu.pb has %" PRId64
                         " elements of %s; '%s' needs %" PRId64 " of %s",
                         i, t->count, onnx_type_name(t->type), b.name,
                         strata_desc_count(&b.desc), b.format);
    void *memory;
    const void *data = elements_of(t, b.desc.dtype, &memory, r->err);
    if (b.bytes && data)
        memcpy(strata_context_data(r->context, index), data, (size_t)b.bytes);
    free(memory);
    return r->err->status;
}

static int feed(struct run *r)
{
    const struct onnx_graph *g = &r->model->graph;
    int status = STRATA_OK;
    for (size_t i = 0; i < g->n_inputs && status == STRATA_OK; i++) {
        const int index = import_find_input(r->im, g->inputs[i].name);
        if (index >= 0 && import_reads_input(r->im, index))
            status = feed_input(r, i, index);
    }
    return status;
}

/* Element i against what it should be. */
static bool agrees(struct run *r, int dtype, double found, double wanted)
{
    const bool given = r->o->relative > 0 || r->o->absolute > 0;
    const double relative = given ? r->o->relative : 1e-3;
    const double absolute = given ? r->o->absolute : 1e-7;
    const double bound = number_is_real(dtype) ? absolute + relative * fabs(wanted) : 0;
    r->result->values++;
    if ((isnan(found) && isnan(wanted)) || found == wanted)
        return true;
    const double distance = fabs(found - wanted);
    if (bound > 0 && distance / bound > r->result->worst)
        r->result->worst = distance / bound;
    if (distance <= bound) /* false for NaN */
        return true;
    r->result->wrong++;
    return false;
}

/* Where element k of a file's tensor lies in one that has more along the axis. */
static int64_t place_of(const strata_desc *d, const struct onnx_tensor *t, int axis,
                        int64_t k)
{
    int64_t row = 1;
    for (int i = axis + 1; i < t->rank; i++)
        row *= t->dims[i];
    const int64_t whole = t->dims[axis] * row;
    return whole ? k / whole * d->dims[axis] * row + k % whole : 0;
}

/* Whether an output has as many rows as there may be, where the file has those that
 * count, and the others are -1, of BOOL no: the axis they lie along; -1. */
static int spare_axis(const struct run *r, size_t i, const strata_desc *d,
                      const struct onnx_tensor *t, int index)
{
    const int axis = import_counted_axis(r->im, i);
    const void *data = strata_context_data(r->context, index);
    int64_t row = 1;
    if (axis < 0 || axis >= t->rank || d->rank != t->rank ||
        d->dims[axis] < t->dims[axis])
        return -1;
    for (int k = axis + 1; k < d->rank; k++)
        row *= d->dims[k];
    for (int64_t k = 0; k < strata_desc_count(d); k++) {
        double found[1]; /* or int64_t */
        number_load(found, 0, data, d->dtype, k);
        if (k / row % d->dims[axis] >= t->dims[axis] &&
            number_of(found, d->dtype, 0) != (d->dtype == STRATA_BOOL8 ? 0 : -1))
            return -1;
    }
    return axis;
}

static int compare_output(struct run *r, size_t i, const struct onnx_tensor *t, int index)
{
    strata_binding b = {.struct_size = sizeof b};
    char found_text[NUMBER_TEXT], wanted_text[NUMBER_TEXT];
    int status = strata_context_binding(r->context, index, &b, r->err);
    const int dtype = dtype_of(t, b.desc.dtype);
    bool same = b.desc.rank == (t->rank ? t->rank : 1);
    if (status != STRATA_OK)
        return status;
    const int spare = same ? spare_axis(r, i, &b.desc, t, index) : -1;
    for (int d = 0; same && d < t->rank; d++)
        same = d == spare || b.desc.dims[d] == t->dims[d];
    if (!same || dtype != b.desc.dtype)
        return error_set(r->err, STRATA_EINVAL,
                         "output %zu ('%s'): %s of rank %d, %" PRId64
                         " elements; output_%zu.pb has %s of rank %d, %" PRId64
                         " elements",
                         i, b.name, b.format, b.desc.rank, strata_desc_count(&b.desc), i,
                         onnx_type_name(t->type), t->rank, t->count);
    void *memory;
    const void *data = elements_of(t, dtype, &memory, r->err);
    for (int64_t k = 0; data && k < t->count; k++) {
        double found[1], wanted[1]; /* or int64_t */
        number_load(found, 0, strata_context_data(r->context, index), dtype,
                    spare < 0 ? k : place_of(&b.desc, t, spare, k));
        number_load(wanted, 0, data, dtype, k);
        if (agrees(r, dtype, number_of(found, dtype, 0), number_of(wanted, dtype, 0)) ||
            r->err->status != STRATA_OK)
            continue;
        error_set(r->err, STRATA_EINVAL,
                  "output %zu ('%s'), element %" PRId64 " is %s, should be %s", i, b.name,
                  k, number_text(found_text, found, dtype, 0),
                  number_text(wanted_text, wanted, dtype, 0));
    }
    free(memory);
    return r->err->status;
}

static int compare(struct run *r)
{
    const size_t n = r->model->graph.n_outputs;
    const int first = strata_engine_bindings(r->engine) - (int)n;
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < n; i++) {
        const struct onnx_model *file;
        status = open_tensor(&file, r->o->folder, "output", i, r->err);
        if (file && status == STRATA_OK)
            status = compare_output(r, i, tensor_of(file), first + (int)i);
        onnx_close(file);
    }
    return status;
}

static int run_engine(struct run *r)
{
    int status = strata_create(&r->handle, r->o->device ? r->o->device : "host", r->err);
    if (status == STRATA_OK)
        status = strata_engine_build(&r->engine, r->handle, r->network, r->err);
    if (status == STRATA_OK)
        status = strata_context_create(&r->context, r->engine, r->handle, r->err);
    if (status == STRATA_OK && strata_engine_dimensions(r->engine) > 0)
        status = set_shapes(r);
    if (status == STRATA_OK)
        status = feed(r);
    if (status == STRATA_OK)
        status = strata_context_run(r->context, r->err);
    return status == STRATA_OK ? compare(r) : status;
}

static void close_run(struct run *r)
{
    strata_context_destroy(r->context);
    strata_engine_destroy(r->engine);
    strata_destroy(r->handle);
    strata_network_destroy(r->network);
    import_free(r->im);
    for (size_t i = 0; r->inputs && i < r->model->graph.n_inputs; i++)
        onnx_close(r->inputs[i]);
    free(r->inputs);
    free(r->constants);
    free(r->weights);
    free(r->text);
    onnx_close(r->model);
}

int data_set_check(struct data_set_result *out, const struct data_set_options *o,
                   strata_registry *registry, strata_error *err)
{
    struct run r = {.o = o, .result = out, .err = err};
    *out = (struct data_set_result){0};
    int status = onnx_open(&r.model, o->model, NULL, err);
    if (status == STRATA_OK)
        status = open_inputs(&r);
    if (status == STRATA_OK)
        status = import_model(&r, registry);
    if (status == STRATA_OK)
        status = load(&r, registry);
    if (status == STRATA_OK)
        status = run_engine(&r);
    close_run(&r);
    return status;
}
