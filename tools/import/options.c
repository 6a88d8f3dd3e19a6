/* SPDX-License-Identifier: Apache-2.0
 *
 * What the options of `strata import` give inputs: dims, values of symbols, constants.
 */
#include "tools/import/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "io/weights/weights.h"
#include "network/network.h"

enum { MOST_NUMBERS = 64 }; /* of a constant that the command line says */

/* NAME of "NAME=REST", malloc'ed, and *rest. */
static char *split(const char *text, const char *needed, const char **rest,
                   strata_error *err)
{
    const char *at = strrchr(text, '=');
    if (!at || at == text || !at[1]) {
        error_set(err, STRATA_EINVAL, "'%s' is not %s", text, needed);
        return NULL;
    }
    char *name = strndup(text, (size_t)(at - text));
    *rest = at + 1;
    if (!name)
        error_no_memory(err, strlen(text), "an option");
    return name;
}

/* How many numbers are in "1x3x224x224" or "1,3": at most `most`; 0: it reads otherwise.
 */
static int read_numbers(int64_t *out, const char *text, int most)
{
    for (int n = 0; n < most; n++) {
        char *end;
        errno = 0;
        const long long v = strtoll(text, &end, 10);
        if (end == text || errno || v < 0 || v > NETWORK_MAX_DIM)
            return 0;
        out[n] = v;
        if (*end == '\0')
            return n + 1;
        if (*end != 'x' && *end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

/* How many integers are in "-1" or "1,3,224"; 0: it reads otherwise. */
static int read_integers(int64_t out[MOST_NUMBERS], const char *text)
{
    for (int n = 0; n < MOST_NUMBERS; n++) {
        char *end;
        errno = 0;
        out[n] = strtoll(text, &end, 10);
        if (end == text || errno || (*end && *end != ','))
            return 0;
        if (*end == '\0')
            return n + 1;
        text = end + 1;
    }
    return 0;
}

/* Numbers of which one is no integer, 0 at a mistake. */
static int read_reals(float out[MOST_NUMBERS], const char *text)
{
    for (int n = 0; n < MOST_NUMBERS; n++) {
        char *end;
        out[n] = (float)text_to_real(text, &end);
        if (end == text || (*end && *end != ','))
            return 0;
        if (*end == '\0')
            return n + 1;
        text = end + 1;
    }
    return 0;
}

/* The name and the numbers of "NAME=NUMBERS"; NULL: it is something else. */
static char *read_option(int64_t *numbers, int *n, const char *text, int most,
                         const char *needed, strata_error *err)
{
    const char *rest;
    char *name = split(text, needed, &rest, err);
    if (name && (*n = read_numbers(numbers, rest, most)) > 0)
        return name;
    if (name)
        error_set(err, STRATA_EINVAL, "'%s' is not %s", text, needed);
    free(name);
    return NULL;
}

int model_add_shape(struct model_options *o, const char *text, strata_error *err)
{
    struct import_shape s = {0};
    if (grow(&o->shapes, &o->shapes_capacity, o->n_shapes, sizeof s, err) != STRATA_OK ||
        !(s.name = read_option(s.dims, &s.rank, text, STRATA_MAX_RANK,
                               "NAME=DIMS, as in x=1x3x224x224", err)))
        return err->status;
    o->shapes[o->n_shapes++] = s;
    return STRATA_OK;
}

/* "1..512", "1..512:32,128" or "32..512/32", as [profile] has it; of the sizes that are
 * listed the end is one. False: it reads otherwise. */
static bool read_range(struct import_symbol *s, const char *text)
{
    char *end;
    int n = 0;
    errno = 0;
    const long long least = strtoll(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0)
        return false;
    text = end + 2;
    const long long most = strtoll(text, &end, 10);
    if (end == text || errno || least < 0 || most <= least || most > NETWORK_MAX_DIM)
        return false;
    if (*end == '/') {
        s->step = strtoll(end + 1, &end, 10);
        if (errno || s->step < 1 || (most - least) % s->step)
            return false;
    }
    if (*end == ':' && (n = read_numbers(s->values, end + 1, CONFIG_MAX_SIZES - 1)) == 0)
        return false;
    for (int i = 0; i < n; i++)
        if (s->values[i] < least || s->values[i] > most ||
            (s->step && (s->values[i] - least) % s->step))
            return false;
    s->values[n++] = most;
    s->n = (size_t)n;
    s->least = least;
    s->range = true;
    return *end == '\0' || *end == ':';
}

int model_add_symbol(struct model_options *o, const char *text, strata_error *err)
{
    static const char needed[] =
        "NAME=N, NAME=N,N,... or NAME=N..N:N,..., as in batch=1,8, "
        "length=1..512:128 or height=32..512/32";
    struct import_symbol s = {0};
    const char *rest;
    int n = 0;
    if (grow(&o->symbols, &o->symbols_capacity, o->n_symbols, sizeof s, err) != STRATA_OK)
        return err->status;
    char *name = split(text, needed, &rest, err);
    if (!name)
        return err->status;
    if (!read_range(&s, rest)) {
        s = (struct import_symbol){0};
        n = read_numbers(s.values, rest, CONFIG_MAX_SIZES);
        s.n = (size_t)n;
    }
    if (s.n == 0) {
        free(name);
        return error_set(err, STRATA_EINVAL, "'%s' is not %s", text, needed);
    }
    s.name = name;
    o->symbols[o->n_symbols++] = s;
    return STRATA_OK;
}

/* The ONNX type of a file's elements; ONNX_UNDEFINED: there is none. */
static enum onnx_type type_of(enum weight_dtype dtype)
{
    for (int t = 0; t < ONNX_TYPE_COUNT; t++)
        if (onnx_type_core((enum onnx_type)t) >= 0 &&
            weight_dtype_of(onnx_type_core((enum onnx_type)t)) == dtype)
            return (enum onnx_type)t;
    return ONNX_UNDEFINED;
}

static const struct onnx_tensor *open_array(struct model_options *o, const char *path,
                                            strata_error *err)
{
    struct weights *file;
    if (grow(&o->arrays, &o->arrays_capacity, o->n_arrays, sizeof(struct weights *),
             err) != STRATA_OK ||
        grow(&o->made, &o->made_capacity, o->n_made, sizeof(struct onnx_tensor *), err) !=
            STRATA_OK ||
        weights_open(&file, path, NULL, err) != STRATA_OK)
        return NULL;
    o->arrays[o->n_arrays++] = file;
    const struct weight_view v =
        weights_count(file) == 1 ? weights_at(file, 0) : (struct weight_view){0};
    struct onnx_tensor *t = zalloc(1, sizeof *t, "a constant", err);
    if (!t)
        return NULL;
    o->made[o->n_made++] = t;
    *t = (struct onnx_tensor){.name = "",
                              .type = type_of(v.dtype),
                              .rank = v.rank,
                              .data = v.data,
                              .bytes = v.bytes,
                              .count = network_elements(v.dims, v.rank)};
    memcpy(t->dims, v.dims, sizeof t->dims);
    if (weights_count(file) == 1 && t->type != ONNX_UNDEFINED)
        return t;
    error_set(err, STRATA_EINVAL, "%s: a constant is one array of a type that Strata has",
              path);
    return NULL;
}

/* What is said by a text; `bytes` are copied. */
static const struct onnx_tensor *make_list(struct model_options *o, enum onnx_type type,
                                           const void *bytes, size_t size, int64_t n,
                                           strata_error *err)
{
    struct said {
        struct onnx_tensor tensor; /* first: it is freed by this address */
        int64_t data[MOST_NUMBERS];
    } * s;
    if (grow(&o->made, &o->made_capacity, o->n_made, sizeof(struct onnx_tensor *), err) !=
            STRATA_OK ||
        !(s = zalloc(1, sizeof *s, "a constant", err)))
        return NULL;
    memcpy(s->data, bytes, size);
    s->tensor = (struct onnx_tensor){.name = "",
                                     .type = type,
                                     .rank = 1,
                                     .dims = {n},
                                     .data = s->data,
                                     .bytes = size,
                                     .count = n};
    o->made[o->n_made++] = &s->tensor;
    return &s->tensor;
}

static const struct onnx_tensor *open_tensor(struct model_options *o, const char *path,
                                             strata_error *err)
{
    const size_t n = strlen(path);
    int64_t numbers[MOST_NUMBERS];
    float reals[MOST_NUMBERS];
    const unsigned char truth = strcmp(path, "true") == 0;
    const int given = read_integers(numbers, path);
    const int n_reals = given > 0 ? 0 : read_reals(reals, path);
    if (truth || strcmp(path, "false") == 0) /* which branch a model takes */
        return make_list(o, ONNX_BOOL, &truth, 1, 1, err);
    if (given > 0)
        return make_list(o, ONNX_INT64, numbers, (size_t)given * sizeof *numbers, given,
                         err);
    if (n_reals > 0)
        return make_list(o, ONNX_FLOAT, reals, (size_t)n_reals * sizeof *reals, n_reals,
                         err);
    if (n < 3 || strcmp(path + n - 3, ".pb") != 0)
        return open_array(o, path, err);
    if (grow(&o->tensors, &o->tensors_capacity, o->n_tensors, sizeof(void *), err) !=
            STRATA_OK ||
        onnx_open_tensor(&o->tensors[o->n_tensors], path, NULL, err) != STRATA_OK)
        return NULL;
    return &o->tensors[o->n_tensors++]->graph.initializers[0];
}

int model_add_constant(struct model_options *o, const char *text, strata_error *err)
{
    const char *path;
    int status = grow(&o->constants, &o->constants_capacity, o->n_constants,
                      sizeof *o->constants, err);
    char *name = status == STRATA_OK
                     ? split(text, "NAME=FILE, as in axes=axes.npy, or NAME=true, NAME=3",
                             &path, err)
                     : NULL;
    const struct onnx_tensor *t = name ? open_tensor(o, path, err) : NULL;
    if (!t) {
        free(name);
        return err->status;
    }
    o->constants[o->n_constants++] = (struct import_constant){name, t};
    return STRATA_OK;
}

int model_add_state(struct model_options *o, const char *text, strata_error *err)
{
    const char *rest;
    int status =
        grow(&o->states, &o->states_capacity, o->n_states, sizeof *o->states, err);
    char *output = status == STRATA_OK
                       ? split(text, "OUTPUT=INPUT, as in h_next=h", &rest, err)
                       : NULL;
    char *input = output ? strdup(rest) : NULL;
    if (!input) {
        free(output);
        return err->status ? err->status
                           : error_no_memory(err, strlen(text), "an option");
    }
    o->states[o->n_states++] = (struct import_state){output, input};
    return STRATA_OK;
}

int model_set_cache(struct model_options *o, const char *text, strata_error *err)
{
    if (read_numbers(&o->import.cache, text, 1) == 1 && o->import.cache > 0)
        return STRATA_OK;
    o->import.cache = 0;
    return error_set(err, STRATA_EINVAL, "'%s' is no number of tokens, as in 4096", text);
}

struct import_options model_import_options(const struct model_options *o)
{
    struct import_options out = o->import;
    out.shapes = o->shapes;
    out.n_shapes = o->n_shapes;
    out.symbols = o->symbols;
    out.n_symbols = o->n_symbols;
    out.constants = o->constants;
    out.n_constants = o->n_constants;
    out.states = o->states;
    out.n_states = o->n_states;
    return out;
}

void model_options_free(struct model_options *o)
{
    for (size_t i = 0; i < o->n_shapes; i++)
        free((char *)o->shapes[i].name);
    for (size_t i = 0; i < o->n_symbols; i++)
        free((char *)o->symbols[i].name);
    for (size_t i = 0; i < o->n_constants; i++)
        free((char *)o->constants[i].name);
    for (size_t i = 0; i < o->n_states; i++) {
        free((char *)o->states[i].output);
        free((char *)o->states[i].input);
    }
    for (size_t i = 0; i < o->n_tensors; i++)
        onnx_close(o->tensors[i]);
    for (size_t i = 0; i < o->n_arrays; i++)
        weights_close(o->arrays[i]);
    for (size_t i = 0; i < o->n_made; i++)
        free(o->made[i]);
    free(o->shapes);
    free(o->symbols);
    free(o->constants);
    free(o->states);
    free(o->tensors);
    free(o->arrays);
    free(o->made);
    *o = (struct model_options){0};
}
