/* SPDX-License-Identifier: Apache-2.0
 *
 * The families of operators, in the order of docs/onnx.md.
 */
#include "network/import/map.h"

extern const struct map_table map_arithmetic, map_attention, map_cast, map_constants,
    map_einsum, map_image, map_index, map_loss, map_matrix, map_normalize, map_own,
    map_quantize, map_recurrent, map_reduce, map_rnn, map_shape, map_signal,
    map_window;

/* clang-format off: a family a line */
const struct map_table *const map_tables[] = {
    &map_arithmetic,
    &map_cast,
    &map_reduce,
    &map_index,
    &map_shape,
    &map_constants,
    &map_window,
    &map_normalize,
    &map_matrix,
    &map_einsum,
    &map_attention,
    &map_recurrent,
    &map_rnn,
    &map_signal,
    &map_image,
    &map_quantize,
    &map_loss,
    &map_own,
    &map_refused,
    NULL,
};
/* clang-format on */
