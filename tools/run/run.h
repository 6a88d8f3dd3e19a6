/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of `strata run`: files into bindings, bindings into tables and files.
 */
#ifndef TOOLS_RUN_RUN_H
#define TOOLS_RUN_RUN_H

#include "engine/context/context.h"
#include "tools/values.h"

/* sizes.c: "NAME=FILE", or "FILE" where there is one binding of that side; see tool_file_of. The
 * index is that of the binding in every engine of the network. */
int run_find_binding(const strata_network *net, const char *text, bool is_input,
                     int *index, const char **file, strata_error *err);

/* The name that an input's shape begins with, as its section has it; "" and 0 where that
 * is a number. */
const char *run_first_name(const strata_network *net, const char *input, int *length);

/* Of the network's names, by the options' `--dim` and the shapes of their .npy
 * files; the largest where neither gives one. */
struct run_sizes {
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    bool given[NETWORK_MAX_SYMBOLS];
};
int run_find_sizes(struct run_sizes *s, const strata_network *net,
                   const struct tool_options *o, strata_error *err);
/* The next runs have those that are given. */
int run_set_sizes(strata_context *c, const struct tool_options *o, strata_error *err);

/* Fill binding `index` from a file, by content: .npy, image, IDX (item `item` of it), or
 * raw elements in the binding's own format. "random:SEED" makes values in [0, 1), rounded
 * for integers and BOOL8. */
int run_read_input(strata_context *c, const strata_engine *e, int index, const char *path,
                   int64_t item, strata_error *err);

/* The same look at the file without an engine: an error where it would not do. net has
 * the dims of the run. */
int run_look_at_input(const strata_network *net, int index, const char *path,
                      int64_t item, strata_error *err);

/* The same of an IDX file that was read before. */
int run_read_item(strata_context *c, const strata_engine *e, int index, const char *path,
                  const struct idx *images, int64_t item, strata_error *err);

/* Whether an array has these dims, but for ones in front. */
bool run_is_shape(const int64_t *dims, int rank, const struct weight_view *v);
/* One row, along the first dim, of an array that was read before. */
int run_read_row(strata_context *c, const strata_engine *e, int index, const char *path,
                 const struct weight_view *all, int64_t row, strata_error *err);

/* What can be told of the options' inputs, outputs and sizes before the network is
 * planned, which may take minutes: names, shapes, kinds of files. `options`, of struct
 * tool_options, stand beside it there as look and look_of. */
int run_look(const void *options, const strata_network *net, strata_error *err);

/* Each of the options' inputs into its binding, once; given[binding] becomes true. */
int run_read_given(strata_context *c, const strata_engine *e,
                   const struct tool_options *o, bool *given, strata_error *err);

/* The same, and random values of its own for every input that is not given. */
int run_read_inputs(strata_context *c, const strata_engine *e,
                    const struct tool_options *o, strata_error *err);

/* Values of a binding; free also after a failure. Warns of those that are none. */
int run_values(struct values *v, strata_context *c, const strata_engine *e, int index,
               strata_error *err);
/* Rows of the `top` largest values of each image, NaN first, with labels if there are
 * any: output, image, rank, index, value, label. */
int run_add_top(struct table *t, strata_context *c, const strata_engine *e,
                int index, int top, strata_error *err);
/* As .npy in logical order: FP64, integers and BOOL8 as they are, else FP32. */
int run_write_output(strata_context *c, const strata_engine *e, int index,
                     const char *path, strata_error *err);

#endif /* TOOLS_RUN_RUN_H */
