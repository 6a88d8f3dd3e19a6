/* SPDX-License-Identifier: Apache-2.0
 *
 * An ONNX model as files of a network, as `strata import` writes them and the commands
 * that take a network use them.
 */
#ifndef TOOLS_IMPORT_MODEL_H
#define TOOLS_IMPORT_MODEL_H

#include "network/import/import.h"
#include "tools/tool.h"

/* What the options of `strata import` say. All zero is the default. */
struct model_options {
    struct import_options import; /* without its lists, which are those below */
    struct import_shape *shapes;
    struct import_symbol *symbols;
    struct import_constant *constants;
    struct import_state *states;
    const struct onnx_model **tensors; /* files of constants: .pb */
    struct weights **arrays;           /* .npy */
    struct onnx_tensor **made;         /* what the arrays are as tensors */
    const char *report; /* a file that the caller writes behind an import; or NULL */
    size_t n_shapes, n_symbols, n_constants, n_states, n_tensors, n_arrays, n_made;
    size_t shapes_capacity, symbols_capacity, constants_capacity, states_capacity,
        tensors_capacity, arrays_capacity, made_capacity;
};
/* "x=1x3x224x224"; "batch=1", "batch=1,8" or "length=1..512:128"; "axes=FILE.npy". EINVAL
 * tells what is wrong with the text. */
int model_add_shape(struct model_options *o, const char *text, strata_error *err);
int model_add_symbol(struct model_options *o, const char *text, strata_error *err);
int model_add_constant(struct model_options *o, const char *text, strata_error *err);
/* "h_next=h": an output and the input that it is in the next run. */
int model_add_state(struct model_options *o, const char *text, strata_error *err);
/* "4096": tokens that caches have room for. */
int model_set_cache(struct model_options *o, const char *text, strata_error *err);
/* Options as the import takes them; its lists stay those of `o`. */
struct import_options model_import_options(const struct model_options *o);
void model_options_free(struct model_options *o);

/* Whether the file is called .onnx, or begins as models do and is no engine. */
bool model_is_onnx(const char *path);
/* Write ini, and the weights beside it as NAME.safetensors; ini NULL: neither. *out, if
 * not NULL, is what was imported, also where it was refused; the caller's, and it needs
 * *model. */
int model_import(const char *path, const char *ini, const struct model_options *o,
                 strata_registry *registry, const struct onnx_model **model,
                 struct import **out, strata_error *err);
/* *ini, malloc'ed: the model as a network in the user's cache folder, imported if it is
 * not yet there or the file has changed. */
int model_cached(char **ini, const char *path, strata_registry *registry,
                 strata_error *err);

/* operators.c: the table of operators, of the model at `path` or, if it is NULL, of all;
 * an exit code. */
int operators_print(const char *path, int format);

#endif /* TOOLS_IMPORT_MODEL_H */
