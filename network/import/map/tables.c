/* SPDX-License-Identifier: Apache-2.0
 *
 * The families of operators, in the order of docs/onnx.md.
 */
#include "network/import/map.h"

extern const struct map_table map_arithmetic, map_cast, map_constants, map_index,
    map_reduce, map_refused, map_shape, map_window;

const struct map_table *const map_tables[] = {
    &map_arithmetic, &map_cast,   &map_reduce,  &map_index, &map_shape,
    &map_constants,  &map_window, &map_refused, NULL,
};
